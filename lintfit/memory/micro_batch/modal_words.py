"""Words that stand for images or sound in Gemma 3n's whole model, which every token goes through.

The class looks every token up in two small tables besides, norms and projects what it finds, and takes it where the
token is one of theirs (``Gemma3nModel.forward``, ``Gemma3nMultimodalEmbedder``).
"""

from __future__ import annotations

from typing import NamedTuple

from lintfit.catalog.architectures import gemma3n
from lintfit.catalog.facts import ModelFacts
from lintfit.memory.activations import gemma4
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.families import traits
from lintfit.memory.activations.recipe import Recipe
from lintfit.memory.activations.tape import CAST, INDEX, rounded
from lintfit.memory.micro_batch.embedding import opens_inputs
from lintfit.memory.spec import Spec


class ModalWords(NamedTuple):
    """In bytes: what the graph keeps; what the model's forward has names for, and what of that the graph keeps."""

    kept: int = 0
    named: int = 0
    named_kept: int = 0


def named_streams(facts: ModelFacts, batch: int, seq: int, item: int) -> int:
    """Bytes of Gemma 3n's other streams, which the model's forward lists (``temp_hidden_states``) while layers run."""
    streams = traits(facts).streams
    return (streams(facts) - 1) * rounded(batch * seq * facts.hidden * item) if streams is not None else 0


def modal_words(spec: Spec, recipe: Recipe, batch: int, seq: int, item: int, *, checkpoints: bool) -> ModalWords:
    """What the two tables take; nothing for any other model."""
    facts, tokens = spec.facts, batch * seq
    if facts.model_type != "gemma3n":
        return ModalWords()
    leaf = checkpoints and opens_inputs(spec)
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
        kept += sum(storage.size(batch, seq) for storage in t.saved() if storage.kind != CAST)
        kept += rounded(tokens * INDEX) if x.grad else 0
    marks = 2 * rounded(tokens)
    flows = trained or leaf or not recipe.frozen
    embeds = rounded(tokens * facts.hidden * item)
    kept += marks if flows else 0
    kept += embeds if leaf else 0
    own = rounded(tokens * facts.layers * gemma4.narrow(facts) * item)
    return ModalWords(kept, 2 * embeds + marks + 2 * rounded(tokens * INDEX) + own, marks if flows else 0)
