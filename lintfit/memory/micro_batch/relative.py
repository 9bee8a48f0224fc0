"""What DeBERTa and MPNet make once for all of their layers: masks, and what belongs to relative positions."""

from __future__ import annotations

from lintfit.catalog.architectures import deberta_v2
from lintfit.catalog.config import Config
from lintfit.catalog.facts import ModelFacts
from lintfit.frozen import replace
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.deberta import convolution, item_of_table
from lintfit.memory.activations.profile import counted, recorded
from lintfit.memory.activations.recipe import Recipe
from lintfit.memory.activations.tape import INDEX, rounded
from lintfit.memory.micro_batch.around import Around
from lintfit.memory.micro_batch.model import Model
from lintfit.memory.micro_batch.step import Stretch
from lintfit.memory.micro_batch.stream import Shape


def masks_and_positions(facts: ModelFacts, recipe: Recipe, batch: int, seq: int) -> int:
    """Bytes of the mask of every sequence, a product of what the batch brings (whole numbers of 8 bytes) or of ones in
    fp32; of the relative position of every pair; and of the vectors of all of these behind their norm, if any."""
    mask = rounded(batch * seq * seq * (INDEX if recipe.padded else 4))
    made = _vectors(facts, recipe) if deberta_v2.normed(_config(facts)) else 0
    return mask + (rounded(seq * seq * INDEX) + made if _span(facts) else 0)


def relative(model: Model, shape: Shape) -> Around:
    """The gradient of these vectors, or of MPNet's biases, which waits beside each layer, since all add to it from the
    last one on; and the places in the table of the biases, which its backward asks for."""
    facts, recipe = model.facts, model.recipe
    bucketed = model.how.positions == "bucketed"
    buckets = rounded(shape.seq * shape.seq * INDEX) if bucketed and not model.lookup.frozen else 0
    if recipe.frozen or not (bucketed or _span(facts)):
        return Around(graphed=buckets)
    size = bucketed_biases(facts, recipe, shape.batch, shape.seq) if bucketed else _vectors(facts, recipe)
    return Around(graphed=buckets, waiting=(*[size] * (facts.layers - 1), 0))


def bucketed_biases(facts: ModelFacts, recipe: Recipe, batch: int, seq: int) -> int:
    """Bytes of the biases that MPNet makes once for every head of every sequence."""
    return rounded(batch * facts.heads * seq * seq * recipe.weights)


def with_convolution(layers: list[Stretch], model: Model, shape: Shape, kept: float, *, flows: bool) -> list[Stretch]:
    """The layers with what follows the first of them in v2's large models, which nothing checkpoints.

    The gradient of the embeddings that it makes waits beside that layer; ``flows``: whether they need one.
    """
    if not layers or not _config(model.facts).count("conv_kernel_size"):
        return layers
    t = Layer(model.facts, model.recipe)
    x = t.new(model.facts.hidden, shape.stream)
    profile = counted(recorded(t, x, convolution(t, x, flows=flows)), shape.batch, shape.seq, kept=kept)
    head, *rest = layers
    size = profile.input if flows else 0
    found = [replace(head, length=1, waiting=head.waiting + size), Stretch(1, profile, False, listed=False)]
    return [*found, *([replace(head, length=head.length - 1)] if head.length > 1 else []), *rest]


def _config(facts: ModelFacts) -> Config:
    return Config(facts.config, {}, facts.name)


def _span(facts: ModelFacts) -> int:
    return deberta_v2.span(_config(facts))


def _vectors(facts: ModelFacts, recipe: Recipe) -> int:
    return rounded(2 * _span(facts) * facts.hidden * item_of_table(facts, recipe))
