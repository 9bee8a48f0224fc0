"""The language model of a run as one rank runs it: what its micro-batches of any size have in common."""

from __future__ import annotations

from lintfit.catalog.facts import ModelFacts
from lintfit.catalog.language import language
from lintfit.frozen import frozen
from lintfit.memo import Memo
from lintfit.memory.activations.families import known, traits
from lintfit.memory.activations.frames import Frame, frame
from lintfit.memory.activations.recipe import Beside, Recipe, of, with_beside
from lintfit.memory.activations.traits import Traits
from lintfit.memory.alike import on_any_gpu
from lintfit.memory.loss.preference import sequences
from lintfit.memory.micro_batch.frozen_recipes import among_layers, at_end, at_lookup
from lintfit.memory.micro_batch.opened import opens_inputs
from lintfit.memory.micro_batch.stream import Shape, embedding_bytes, stream_bytes
from lintfit.memory.spec import Spec
from lintfit.memory.tensors.frozen_parts import FrozenParts, frozen_parts
from lintfit.memory.tensors.tensor_parallel import local


@frozen
class Model:
    """A run's language model on one rank.

    ``whole``: the model that it is a part of, or itself. ``facts``: the rank's share of it. ``how``, ``own``: what sets
    its class apart around the layers, and in them. ``recipe``: of all of it; ``lookup``, ``layers``, ``ending``: of
    what lies between tokens and first layer, of any layer, and behind the last, where parts are frozen (``left``).
    ``stream``, ``embedded``: bytes of an element of the residual stream, and of the embeddings. ``checkpoints``: layers
    are checkpointed, ``reentrant``: where they are, so. ``opens``: see :func:`.opened.opens_inputs`. ``notes``: what is
    left out, or another model's.
    """

    whole: ModelFacts
    facts: ModelFacts
    how: Frame
    own: Traits
    recipe: Recipe
    lookup: Recipe
    layers: Recipe
    ending: Recipe
    left: FrozenParts
    stream: int
    embedded: int
    checkpoints: bool
    reentrant: bool
    opens: bool
    notes: tuple[str, ...]


_MODELS: Memo[Model] = Memo()


def model_of(spec: Spec, beside: Beside | None = None) -> Model:
    """The language model of a run, with what its layers attend to ``beside`` the text."""
    return _MODELS.get(on_any_gpu(spec), beside, lambda: _made(spec, beside))


def shape_of(spec: Spec, model: Model) -> Shape:
    """A micro-batch of a run on one rank."""
    return Shape(sequences(spec), spec.local_seq, model.stream)


def _made(spec: Spec, beside: Beside | None) -> Model:
    recipe = of(spec) if beside is None else with_beside(of(spec), beside)
    facts = local(language(spec.facts), spec.tensor_parallel)
    return Model(
        whole=spec.facts,
        facts=facts,
        how=frame(facts),
        own=traits(facts),
        recipe=recipe,
        lookup=at_lookup(spec, recipe),
        layers=among_layers(spec, recipe),
        ending=at_end(spec, recipe),
        left=frozen_parts(spec),
        stream=stream_bytes(facts, recipe),
        embedded=embedding_bytes(recipe),
        checkpoints=spec.gradient_checkpointing is not False,
        reentrant=spec.use_reentrant,
        opens=opens_inputs(spec),
        notes=_notes(spec),
    )


def _notes(spec: Spec) -> tuple[str, ...]:
    kind = language(spec.facts).model_type
    notes = () if known(spec.facts) else (f"activations of {kind} follow the nearest architecture's layer",)
    if spec.facts.vision is not None and spec.images is None:
        notes = (*notes, "activations of the vision tower (the spec does not say how many images a sample has)")
    return notes
