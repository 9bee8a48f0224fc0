"""Between the tokens and the first layer: the embeddings' output, what is done to it, and the embeddings' gradient."""

from __future__ import annotations

from lintfit.catalog.facts import ModelFacts
from lintfit.memo import Memo
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.frames import embedding_width, projection
from lintfit.memory.activations.tape import CAST, INDEX, rounded
from lintfit.memory.micro_batch.around import Around, Feature
from lintfit.memory.micro_batch.model import Model
from lintfit.memory.micro_batch.opened import hooks_inputs
from lintfit.memory.micro_batch.stream import Shape
from lintfit.memory.tensors.parameters import Inventory

SORTED_EMBEDDING = 3072
"""Tokens above which the embedding's backward sorts (``embedding_dense_backward_cuda``)."""


def trains_embedding(held: Inventory) -> bool:
    """Whether words are looked up in a table that is trained."""
    return _TRAINS.get(
        held, "", lambda: any(weight.role == "embedding" and weight.where != "vision" for weight in held.trainables)
    )


_TRAINS: Memo[bool] = Memo()


def drops(model: Model) -> bool:
    """Whether there is a dropout behind the embeddings, whose result is another tensor."""
    return model.lookup.dropout and bool(model.how.drops and model.facts.config.get(model.how.drops))


def _keeps_mask(model: Model) -> bool:
    """Frozen embeddings have a gradient only where checkpointing over adapters asks for one."""
    return drops(model) and (model.checkpoints or not model.lookup.frozen)


def _mask(model: Model, shape: Shape) -> Around:
    """The mask of the dropout, one byte an element."""
    return Around(graphed=_size(model, shape, 1))


DROPOUT = Feature(_keeps_mask, _mask)
"""A dropout behind the embeddings."""


def _another(model: Model) -> bool:
    """Whether the first layer takes something else than the embeddings."""
    how, config = model.how, model.facts.config
    zeroes = how.zeroes_padding and (model.recipe.padded or bool(config.get("token_dropout")))
    return (how.changes and model.recipe.transformers < how.scales_itself) or drops(model) or zeroes


def _leaf(model: Model, shape: Shape) -> Around:
    return Around(graphed=_size(model, shape, model.embedded))


LEAF = Feature(lambda model: model.opens and _another(model), _leaf)
"""The embeddings' output where it is a leaf (:func:`.opened.opens_inputs`) and not the first layer's input.

A leaf stays as long as the graph; a model that scales it, drops some of it or adds positions keeps both. The fms runs
of PowerLM-3b with LoRA (Granite) show it: 2h bytes a token.
"""


def _norm(model: Model, shape: Shape) -> Around:
    """Its input, an RMSNorm's and under autocast LayerNorm's in fp32, and fp32 numbers a token.

    A leaf is counted by :data:`LEAF`. ERNIE 3.0's forward makes the ids of its tasks, which the table's backward asks
    for.
    """
    rows, frozen, tokens = model.how.normed, model.lookup.frozen, shape.batch * shape.seq
    kept = rows * rounded(tokens * 4)
    if model.facts.config.get("use_task_id") and not frozen:
        kept += rounded(tokens * INDEX)
    if model.embedded == 2 and (model.lookup.autocast or rows == 1):
        return Around(graphed=kept + _size(model, shape, 4))
    itself = _size(model, shape, model.embedded)
    if model.how.ends and _summed(model.facts):  # and no leaf
        return Around(graphed=kept + itself)
    return Around(graphed=kept if frozen else kept + itself, summands_kept=itself)


NORM = Feature(lambda model: model.how.normed > 0 and (model.opens or not model.lookup.frozen), _norm)
"""A norm behind the embeddings, where a gradient comes that far."""


def _summed(facts: ModelFacts) -> bool:
    """Whether an encoder adds anything to the embeddings of its words; DeBERTa v3 does not."""
    return bool(facts.config.get("position_biased_input", True) or facts.config.get("type_vocab_size"))


def _product(model: Model, shape: Shape) -> Around:
    """What the graph keeps of the product and of its adapter; and what a norm gives in front of it, which the forward
    has a name for.

    Without a graph the embeddings are a leaf wherever a hook opens them, and autocast caches the product's copy of it.
    """
    through, recipe = projection(model.facts), model.lookup
    assert through is not None
    normed = model.how.normed > 0
    item = 4 if normed and recipe.autocast else model.embedded
    leaf = recipe.frozen and model.opens and not normed
    t = Layer(model.facts, recipe)
    x = t.new(embedding_width(model.facts), item, grad=leaf or not recipe.frozen)
    x.storage.external = leaf
    t.linear(through.module, x, x.width, model.facts.hidden, bias=through.biased)
    sizes = [(storage.kind == CAST, storage.size(shape.batch, shape.seq)) for storage in t.saved()]
    kept, casts = (sum(size for copied, size in sizes if copied is of_weights) for of_weights in (False, True))
    if not normed:
        copied = item == 4 and recipe.autocast and hooks_inputs(model.checkpoints, recipe.transformers)
        return Around(graphed=kept, casts=casts, bare=_size(model, shape, 2) if copied else 0)
    size, saved = _size(model, shape, item), recipe.trains(through.module) and not recipe.autocast
    return Around(graphed=kept, casts=casts, summands=size, summands_kept=size if saved else 0)


PROJECTION = Feature(lambda model: projection(model.facts) is not None, _product)
"""A product between the embeddings and the first layer."""


def _sum(model: Model) -> bool:
    how = model.how
    return how.changes and not (how.scaled or how.encoder or how.opens)


def _summands(model: Model, shape: Shape) -> Around:
    """The embeddings, or what a product makes of them, and learned positions; sinusoids have no name."""
    how, each = model.how, model.facts.hidden * model.embedded
    words = model.facts.hidden * 2 if projection(model.facts) and model.lookup.autocast else each
    tokens = shape.batch * shape.seq
    if how.positions == "sinusoids":
        return Around(summands=rounded(tokens * words))
    rows = (tokens if how.positions == "learned each" else shape.seq) if how.learned else 0
    return Around(summands=rounded(tokens * words) + rounded(rows * each))


SUMMANDS = Feature(_sum, _summands)
"""What the first layer's input is the sum of, or what BLOOM and nanochat norm: the model's forward has names for these
while its layers run."""


def _size(model: Model, shape: Shape, item: int) -> int:
    """Bytes of a tensor of the embeddings' width with ``item`` bytes an element."""
    return rounded(shape.batch * shape.seq * embedding_width(model.facts) * item)


def scratch(tokens: int, hidden: int, item: int) -> int:
    """The embedding's incoming gradient, and above 3072 tokens fp32 rows and sorted indices.

    ``aten/src/ATen/native/cuda/Embedding.cu``: the sorting kernel sums rows in fp32 and holds six int64 a token.
    """
    scratch = tokens * hidden * item
    return scratch + (tokens * (4 * hidden + 6 * INDEX) if tokens > SORTED_EMBEDDING else 0)
