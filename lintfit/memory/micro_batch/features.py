"""The features that models have around their layers; most have one or two, a plain decoder none.

What few models have is imported where one does: it comes with the modules of their layers.
"""

from __future__ import annotations

from lintfit.memo import Memo
from lintfit.memory.activations.tape import rounded
from lintfit.memory.micro_batch.around import NOTHING, Around, Feature
from lintfit.memory.micro_batch.buffers import BUFFERS, CACHED_TABLES, OF_SOUND
from lintfit.memory.micro_batch.embedding import DROPOUT, LEAF, NORM, PROJECTION, SUMMANDS
from lintfit.memory.micro_batch.model import Model
from lintfit.memory.micro_batch.stream import Shape


def _own_inputs(model: Model, shape: Shape) -> Around:
    from lintfit.memory.micro_batch.own_inputs import own_inputs

    return own_inputs(model, shape)


def _seen_again(model: Model, shape: Shape) -> Around:
    from lintfit.memory.micro_batch.seen_again import seen_again

    return seen_again(model, shape)


def _modal_words(model: Model, shape: Shape) -> Around:
    from lintfit.memory.micro_batch.modal_words import modal_words

    return modal_words(model, shape)


def _named_streams(model: Model, shape: Shape) -> Around:
    """All streams but one, which the model's forward lists while layers run (``Gemma3nTextModel``:
    ``temp_hidden_states``)."""
    assert model.own.streams is not None
    each = rounded(shape.batch * shape.seq * model.facts.hidden * model.embedded)
    return Around(named=(model.own.streams(model.facts) - 1) * each)


def _relative(model: Model, shape: Shape) -> Around:
    from lintfit.memory.micro_batch.relative import relative

    return relative(model, shape)


FEATURES = (
    BUFFERS,
    CACHED_TABLES,
    OF_SOUND,
    DROPOUT,
    LEAF,
    NORM,
    PROJECTION,
    SUMMANDS,
    Feature(lambda model: model.own.shares is not None, _own_inputs),
    Feature(lambda model: model.own.sees_embeddings, _seen_again),
    Feature(lambda model: model.own.streams is not None, _named_streams),
    Feature(lambda model: model.whole.model_type == "gemma3n", _modal_words),
    Feature(lambda model: model.how.positions in ("bucketed", "relative"), _relative),
)

_OF: Memo[tuple[Feature, ...]] = Memo()


def features(model: Model) -> tuple[Feature, ...]:
    """Those that a run's model has."""
    return _OF.get(model, "", lambda: tuple(each for each in FEATURES if each.has(model)))


def around_layers(model: Model, shape: Shape) -> Around:
    """What all of them take together in a micro-batch."""
    found = NOTHING
    for feature in features(model):
        found = found.plus(feature.takes(model, shape))
    return found
