"""Words that stand for images or sound in Gemma 3n's whole model, which every token goes through.

The class looks every token up in two small tables besides, norms and projects what it finds, and takes it where the
token is one of theirs (``Gemma3nModel.forward``, ``Gemma3nMultimodalEmbedder``).
"""

from __future__ import annotations

from lintfit.catalog.architectures import gemma3n
from lintfit.memory.activations import gemma4
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.tape import CAST, INDEX, rounded
from lintfit.memory.micro_batch.around import Around
from lintfit.memory.micro_batch.model import Model
from lintfit.memory.micro_batch.stream import Shape


def modal_words(model: Model, shape: Shape) -> Around:
    """What the two tables take."""
    facts, recipe, leaf, item = model.whole, model.lookup, model.opens, model.embedded
    tokens = shape.batch * shape.seq
    kept = 0
    trained = False
    for key, defaults in (("vision_config", gemma3n.VISION), ("audio_config", gemma3n.AUDIO)):
        width = int({**defaults, **(facts.config.get(key) or {})}["hidden_size"])
        t = Layer(facts, recipe)
        x = t.new(width, item, recipe.trains("embedding"))
        made = gemma4.norm(
            t, t.linear("embedding_projection", gemma4.norm(t, x, width), width, facts.hidden), scaled=False
        )
        trained = trained or made.grad
        kept += sum(storage.size(shape.batch, shape.seq) for storage in t.saved() if storage.kind != CAST)
        kept += rounded(tokens * INDEX) if x.grad else 0
    marks = 2 * rounded(tokens)
    flows = trained or leaf or not recipe.frozen
    embeds = rounded(tokens * facts.hidden * item)
    kept += marks if flows else 0
    kept += embeds if leaf else 0
    own = rounded(tokens * facts.layers * gemma4.narrow(facts) * item)
    named = 2 * embeds + marks + 2 * rounded(tokens * INDEX) + own
    return Around(graphed=kept, named=named, named_kept=marks if flows else 0)
