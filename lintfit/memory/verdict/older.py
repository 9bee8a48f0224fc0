"""What versions of the last two years do to the model states, where a spec does not say which versions run.

The likely figure is that of the newest versions. Of the others only those are looked at that differ: a library's change
in that time, at the last version before it. Activations are :mod:`.alternatives`' matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from lintfit.frozen import replace
from lintfit.memo import Memo
from lintfit.memory.alike import alike
from lintfit.memory.engines.model_states import states
from lintfit.memory.engines.states import States
from lintfit.memory.framework import idle_logits
from lintfit.memory.result import Components, Moment
from lintfit.memory.spec import Spec
from lintfit.memory.verdict.headroom import FRAGMENTATION, OLDER_LOSS
from lintfit.memory.versions import running
from lintfit.versions import RECENT, release

COPIES_MASTERS = "0.16.9"
"""The last DeepSpeed whose offloaded step puts the masters on the GPU (:data:`..engines.zero12.COPIES_MASTERS`); like
those up to 0.18.2 it makes its buckets before the backward."""

FLATTENS_ON_HOST = "0.18.2"
"""A DeepSpeed that flattens parameters on the host, without the masters' copy
(:data:`..engines.flattening.ON_GPU_SINCE`)."""

SHARDS_WITHOUT_ZERO = "0.17.5"
"""The last DeepSpeed that shards masters and states of bf16 models at stage 0
(:data:`..engines.zero12.ACCUMULATES_AS_IT_IS_SINCE`)."""

CASTS_ADAPTERS = "0.19.1"
"""The last DeepSpeed that casts adapters with the model that ``zero.Init`` made
(:data:`..tensors.weights.UNCAST_SINCE`)."""

FUSED = "adamw_torch_fused"
"""What the Trainer takes since transformers 5, beside torch 2.8 and later."""

OLDEST_TRANSFORMERS = (release(RECENT["transformers"]) or ())[:2]

NAMED = {
    "model loaded": "load",
    "engine initialized": "initialize",
    "loss, backward": "backward_start",
    "end of backward": "backward_end",
    "optimizer step": "step",
    "checkpoint saved": "save",
}
"""Of moments the field of :class:`.states.States` that they are made of; those of other names go by their phase."""

BY_PHASE = {"forward": "forward", "backward": "first_gradient", "evaluate": "evaluate"}


class Older(NamedTuple):
    """Model states under other versions: by field what they have more, in bytes, and what the estimate says of it."""

    more: Mapping[str, Components]
    note: str

    @property
    def less(self) -> bool:
        """Whether anything is less."""
        return any(size < 0 for parts in self.more.values() for size in parts.values())


_FOUND: Memo[tuple[Older, ...]] = Memo()


def restated(spec: Spec, held: States, peak: int) -> tuple[Older, ...]:
    """The model states of the versions that the run may have beside the newest, as far as they are others.

    ``peak``: bytes of the largest moment. Another optimizer's step is looked at where it may come near that.
    """
    if spec.engine == "deepspeed":
        same = spec.offload_optimizer == "none" and spec.method != "lora" and not _may_overlap(spec)
        if same and not _may_shard_without_zero(spec):
            return ()
    elif not _may_step_higher(held.step, peak):
        return ()
    return _FOUND.get(alike(spec), "", lambda: tuple(_differing(spec, held)))


def _may_overlap(spec: Spec) -> bool:
    """Whether the DeepSpeed JSON, which nobody shows, may switch ``overlap_comm`` on, as the examples do: two buckets
    in the place of one."""
    return spec.engine == "deepspeed" and spec.zero_stage in (1, 2) and not spec.deepspeed_config


def _may_shard_without_zero(spec: Spec) -> bool:
    """Whether a DeepSpeed up to :data:`SHARDS_WITHOUT_ZERO` would shard what later ones keep whole."""
    return spec.engine == "deepspeed" and spec.zero_stage == 0 and spec.mixed_precision == "bf16"


def _may_step_higher(step: Components, peak: int) -> bool:
    """Whether a step that copies parameters may come above the peak: it takes no more than there are states for them,
    and gaps."""
    own = step.get("optimizer_states", 0)
    comes_and_goes = 2 * step.get("gradients", 0) + own
    return step.get("parameters", 0) + own + (1 + FRAGMENTATION) * comes_and_goes > peak


def changed(older: Older, points: Iterable[Moment]) -> Iterator[Moment]:
    """The moments that other model states change, with these."""
    for point in points:
        more = older.more.get(_field(point))
        if more is not None:
            yield _with(point, more)


def least(older: Older, points: Iterable[Moment], peak: int) -> int:
    """Bytes of torch's allocator at the largest moment with other model states, where these are ``peak`` bytes."""
    if not older.less:
        return peak
    none: Components = {}
    return max([_with(point, older.more.get(_field(point), none)).allocated for point in points])


def _field(point: Moment) -> str:
    return NAMED.get(point.name, BY_PHASE.get(point.phase, ""))


def _with(point: Moment, more: Components) -> Moment:
    parts = point.components
    return Moment(point.name, point.phase, {**parts, **{name: parts.get(name, 0) + more[name] for name in more}})


def _differing(spec: Spec, held: States) -> Iterator[Older]:
    for other, note in _runs(spec):
        found = states(other)
        fields = {*NAMED.values(), *BY_PHASE.values()}
        more = {field: _difference(getattr(found, field), getattr(held, field)) for field in fields}
        if any(more.values()):
            yield Older({field: parts for field, parts in more.items() if parts}, note)


def _difference(one: Components, other: Components) -> Components:
    each = {name: one.get(name, 0) - other.get(name, 0) for name in {*one, *other}}
    return {name: size for name, size in each.items() if size}


def _runs(spec: Spec) -> Iterator[tuple[Spec, str]]:
    if _may_overlap(spec):
        yield replace(spec, deepspeed_config={"zero_optimization": {"overlap_comm": True}}), ""
    if spec.engine == "deepspeed":
        if "deepspeed" in spec.versions:
            return
        # A transformers that is stated says of which months the rest is (:data:`.alternatives.WITH_COPIED_MASTERS`).
        if "transformers" not in spec.versions and spec.zero_stage in (1, 2) and spec.offload_optimizer != "none":
            yield (
                running(spec, "deepspeed", COPIES_MASTERS),
                "a DeepSpeed whose offloaded step casts on the host (version not stated; 0.14.1 to 0.16.9 put the fp32 "
                "masters on the GPU: the high end)",
            )
        if spec.zero_stage in (1, 2) and spec.offload_optimizer != "none":
            yield running(spec, "deepspeed", FLATTENS_ON_HOST), ""
        if _may_shard_without_zero(spec):
            yield (
                running(spec, "deepspeed", SHARDS_WITHOUT_ZERO),
                "a DeepSpeed from 0.17.6 on (version not stated; up to 0.17.5 bf16 without ZeRO sharded masters and "
                "optimizer states over the ranks and kept gradients in fp32, too: the other end)",
            )
        if spec.zero_stage == 3 and spec.method == "lora":
            yield running(spec, "deepspeed", CASTS_ADAPTERS), ""
        return
    if "transformers" not in spec.versions and "optimizer" not in spec.stated and spec.optimizer == FUSED:
        yield (
            replace(spec, optimizer="adamw_torch"),
            "the fused AdamW of transformers 5 (version not stated; transformers 4, and torch before 2.8, take copies "
            "of the parameters to step: the high end)",
        )


def of_older_loss(spec: Spec, logits: int) -> int:
    """Bytes of logits that transformers up to 4.48 would hold more and leave more cached, beside ``logits`` bytes."""
    if "transformers" in spec.versions:
        return 0
    idle = idle_logits(spec, OLDEST_TRANSFORMERS) - idle_logits(spec)
    return int(logits * (OLDER_LOSS - 1)) + max(0, idle)
