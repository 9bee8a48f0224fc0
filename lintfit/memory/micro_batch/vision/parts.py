"""The encoder's layers, mergers and projector that leave a graph, in their order."""

from __future__ import annotations

from lintfit.frozen import replace
from lintfit.memory.activations.profile import Profile, counted
from lintfit.memory.activations.tape import rounded
from lintfit.memory.activations.towers import (
    LAYERED,
    form,
    handed_on,
    inner_merges,
    order,
    style,
    tower_of,
)
from lintfit.memory.micro_batch.step import Stretch
from lintfit.memory.micro_batch.vision.images import pictures
from lintfit.memory.micro_batch.vision.shapes import recipe_of, sequences_of, stream_of
from lintfit.memory.micro_batch.vision.trained import (
    adapts_patches,
    checkpoints_encoder,
    hooked,
    trained_names,
    trains_connector,
    trains_encoder,
)
from lintfit.memory.spec import Spec

CHECKPOINTED = frozenset({"block", "gated_block"})
"""The parts that are layers of the encoder."""


MERGERS = frozenset({"inner_merge", "merge", "merge, checkpointed", "merge, reentrant"})
"""The parts behind the encoder's layers, or between them, that train as the connector does."""


def parts_of(spec: Spec, kept: float) -> tuple[Stretch, ...]:
    """The encoder's parts that leave a graph, in their order.

    A frozen encoder leaves none, but where its patches are made to need a gradient (:func:`hooked`). ``kept``: the
    share of a checkpoint's input that stays on the GPU.
    """
    adapted, begins = trains_encoder(spec), adapts_patches(trained_names(spec))
    maker = _Maker(spec, kept)
    if hooked(spec) or begins or adapted:
        return _layers(spec, maker, begins=begins, hooked=hooked(spec) or begins or not maker.encoder.frozen)
    return _mergers(spec, maker) if trains_connector(spec) else ()


class _Maker:
    """Counts each kind of part once."""

    def __init__(self, spec: Spec, kept: float) -> None:
        recipe = recipe_of(spec)
        copied = tuple(name.split(".")[-2] for name in trained_names(spec) if ".modules_to_save" in name)
        recipe = replace(recipe, trained_modules=(*recipe.trained_modules, *copied))
        self.facts, self.how, self.kept = spec.facts, style(spec.facts), kept
        self.reentrant = spec.use_reentrant or self.how.checkpoints_itself
        self.stream = stream_of(recipe, self.how)
        self.encoder = recipe if trains_encoder(spec) else replace(recipe, frozen=True)
        self.connector = recipe if trains_connector(spec) else replace(recipe, frozen=True)
        self.merge = "merge"
        if spec.facts.model_type in LAYERED and checkpoints_encoder(spec, self.how):
            self.merge = "merge, reentrant" if spec.use_reentrant else "merge, checkpointed"
        self.made: dict[tuple[object, ...], Profile] = {}

    def part(
        self, name: str, shape: tuple[int, int], *, flows: bool, checkpointed: bool = False, waiting: int = 0
    ) -> Stretch:
        """``shape``: sequences and their positions; ``flows``: whether its input needs a gradient; ``waiting``: bytes
        of gradients that wait for it."""
        key = name, flows, shape, checkpointed
        if key not in self.made:
            recipe, several = self.connector if name in MERGERS else self.encoder, shape[0] > 1
            own = form(self.facts, recipe, name, stream=self.stream, flows=flows, watched=checkpointed, batched=several)
            self.made[key] = counted(own, *shape, checkpointed=checkpointed, reentrant=self.reentrant, kept=self.kept)
        return Stretch(1, self.made[key], checkpointed, waiting)


def _layers(spec: Spec, maker: _Maker, *, begins: bool, hooked: bool) -> tuple[Stretch, ...]:
    """All parts; ``begins``: whether the patches have an adapter; ``hooked``: whether they need a gradient."""
    facts, how = spec.facts, maker.how
    batch, seq = sequences_of(spec, maker.encoder, how)
    state = rounded(batch * seq * tower_of(facts).hidden * maker.stream)
    checkpoints = checkpoints_encoder(spec, how) or how.checkpoints_itself
    parts = [maker.part("adapted_stem" if begins else "stem", (batch, seq), flows=hooked)]
    merged = 0
    for index, (name, size) in enumerate(order(facts)):
        shape = (batch, seq) if size is None else (max(1, batch * seq // size), size)
        waiting = state * handed_on(facts, index) + merged
        again = checkpoints and name in CHECKPOINTED
        parts.append(maker.part(name, shape, flows=hooked or index > 0, checkpointed=again, waiting=waiting))
        merged += inner_features(spec) if name == "inner_merge" else 0
    return (*parts, maker.part(maker.merge, (batch, seq), flows=True, waiting=merged))


def _mergers(spec: Spec, maker: _Maker) -> tuple[Stretch, ...]:
    """What trains behind a frozen encoder: mergers inside it are no layers, and train whatever these do."""
    shape, count = sequences_of(spec, maker.encoder, maker.how), inner_merges(spec.facts)
    each = inner_features(spec) if count else 0
    inner = [maker.part("inner_merge", shape, flows=False, waiting=index * each) for index in range(count)]
    return (*inner, maker.part(maker.merge, shape, flows=False, waiting=count * each))


def inner_features(spec: Spec) -> int:
    """Bytes of what a merger inside the encoder gives, and of its gradient."""
    seen, recipe = pictures(spec), recipe_of(spec)
    rows = seen.number * (seen.patches // tower_of(spec.facts).merge)
    return rounded(rows * spec.facts.hidden * (2 if recipe.autocast else recipe.weights))
