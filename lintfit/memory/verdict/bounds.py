"""The range around the likely peak, from named uncertainties, and the verdict on a GPU.

``low`` is what must be there. ``high`` is what to plan for: everything below that may come on top. ``fits`` needs
``high`` to fit, ``does-not-fit`` needs ``low`` not to; what lies between is ``tight``.
"""

from __future__ import annotations

from collections.abc import Iterable

from lintfit.memory.engines.model_states import states
from lintfit.memory.engines.states import States
from lintfit.memory.engines.zero_config import optimizer_name
from lintfit.memory.framework import CACHED_SHARE, context, framework, nccl, side_streams
from lintfit.memory.moments import at_the_loss, moments
from lintfit.memory.result import ALLOCATED, Moment, Range, Verdict
from lintfit.memory.rollouts.rollout import vllm_bytes
from lintfit.memory.spec import GIB, Spec
from lintfit.memory.tensors.optimizers import BLOCKWISE, counted
from lintfit.memory.verdict import kernels, own_loss
from lintfit.memory.verdict.alternatives import cheaper, dearer
from lintfit.memory.verdict.headroom import held_chunks, left_whole, planned
from lintfit.memory.verdict.older import Older, changed, least, of_older_loss, restated

DESKTOP = int(0.5 * GIB)
"""What a display server and other programs hold on a GeForce GPU; data-centre GPUs drive no screen."""

UNSEEN = 2.0
"""Where even the parameters are those of a similar model, the peak is doubled and halved: the published errors of
estimators on models that they do not know are of this size."""

LONG_SEQUENCE = 131_072
"""Tokens of one rank beyond which no plain implementation trains: such runs tile the loss and the MLP, split the
sequence or offload checkpoints (ALST, arXiv 2506.13996: an 8B model ends at 32K on one H100 without), so only the
model states are certain."""

STATES_ALONE = frozenset({"load", "initialize", "resume", "step", "save"})
"""Phases that the length of the sequence has no part in."""


def bounds(spec: Spec, points: tuple[Moment, ...], beside: Range, held: States) -> tuple[Range, tuple[str, ...]]:
    """Low, likely and high bytes of the peak, and the assumptions that the range rests on.

    ``points``: the moments of the run as the spec is taken; ``beside``: bytes outside torch's allocator.
    """
    peak = _largest(points)
    others = restated(spec, held, peak.allocated)
    low, notes = _low(spec, points, held, others)
    shown = 0
    of_others = [moment for older in others for moment in changed(older, points)]
    notes.extend(older.note for older in others)
    chunks = held_chunks(spec)
    if chunks:
        notes.append(
            f"a chunked loss that frees its chunks, as TRL's (whose it is is not stated; LitGPT's and torchtune's keep "
            f"{chunks / GIB:.1f} GiB of logits, which the high end counts)"
        )
    left = left_whole(spec)
    if left:
        notes.append(
            f"every linear layer quantised (which of them the checkpoint leaves in 16 bits its config.json says: "
            f"--model-config FILE; the high end counts {left / GIB:.1f} GiB)"
        )
    high = planned(spec, [*points, *of_others], held, chunks)
    for other in dearer(spec):
        own = states(other.spec) if other.restated else held
        its = moments(other.spec, own)[0]
        high = max(high, planned(other.spec, its, own, held_chunks(other.spec)))
        if other.either:
            low = min(low, kernels.least(other.spec, its))
        if _largest(its).allocated > peak.allocated:
            shown = max(shown, _largest(its).allocated + around(other.spec, its, own)[0].likely)
        notes.append(other.note)
    high += _outside(spec) + left
    if own_loss.has_own(spec):
        low, high = min(low, own_loss.least(spec, points)), high + own_loss.more(points)
        notes.append(own_loss.NOTE)
    if not spec.facts.exact:
        high = max(high, int(UNSEEN * (peak.allocated + beside.low)))
        low = int(low / UNSEEN)
    if not counted(optimizer_name(spec)):
        alone = optimizer_name(spec).lower().startswith(BLOCKWISE)
        low -= peak.allocated - max(_without_optimizer(moment, gradients=alone) for moment in points)
    likely = peak.allocated + beside.likely
    high = max(high + vllm_bytes(spec), likely, shown, _shown(spec, peak, likely, of_others))
    return Range(low + beside.low, likely, high), tuple(filter(None, notes))


def around(spec: Spec, points: tuple[Moment, ...], held: States) -> tuple[Range, tuple[str, ...]]:
    """Bytes beside the tensors at the largest moment, and the assumptions behind them."""
    peak = _largest(points)
    logits, loss = peak.components.get("logits", 0), at_the_loss(points, peak)
    return framework(spec, peak.allocated, held, logits, loss, side_streams(spec, points, peak))


def _shown(spec: Spec, peak: Moment, likely: int, others: list[Moment]) -> int:
    """What nvidia-smi may show with older versions, as far as the GPU has room for what is cached.

    ``others``: the moments that they change.
    """
    more = max([moment.allocated for moment in others], default=0) - peak.allocated
    stepping = int((1 + CACHED_SHARE) * more) if more > 0 else 0
    needed = likely + stepping
    shown = needed + of_older_loss(spec, peak.components.get("logits", 0))
    return shown if spec.capacity_bytes is None else min(shown, max(needed, spec.capacity_bytes))


def _low(spec: Spec, points: tuple[Moment, ...], held: States, others: tuple[Older, ...]) -> tuple[int, list[str]]:
    """Bytes that torch's allocator must have, by all that the spec may mean, and what that rests on."""
    low = kernels.least(spec, points)
    notes = [kernels.NOTE] if kernels.left_open(spec) else []
    if spec.seq_len // spec.sequence_parallel > LONG_SEQUENCE and "sequence_parallel" not in spec.stated:
        low = max(moment.allocated for moment in points if moment.phase in STATES_ALONE)
        notes.append(
            f"sequence of {spec.seq_len} tokens on one GPU: such runs split or tile it, which the spec does not say; "
            "the low end counts the model states only"
        )
    for older in others if spec.engine == "deepspeed" else ():
        low = min(low, least(older, points, low))
    for other in cheaper(spec):
        own = states(other.spec) if other.restated else held
        low = min(low, kernels.least(other.spec, moments(other.spec, own)[0]) - other.less)
        notes.append(other.note)
    return low, notes


def _without_optimizer(moment: Moment, *, gradients: bool) -> int:
    """Bytes of a moment without an optimizer's states and what its step allocates; ``gradients``: nor these."""
    own = ("optimizer_states", "temporaries") if moment.phase == "step" else ("optimizer_states",)
    own = (*own, "gradients") if gradients else own
    return moment.allocated - sum(moment.components.get(part, 0) for part in own)


def _largest(points: Iterable[Moment]) -> Moment:
    return max(points, key=ALLOCATED)


def _outside(spec: Spec) -> int:
    """Bytes to plan for that torch's allocator does not see."""
    geforce = spec.gpu is not None and "GeForce" in spec.gpu.name
    return context(spec).high + nccl(spec).high + (DESKTOP if geforce else 0)


def judge(span: Range, capacity: int | None) -> Verdict:
    """``fits`` where the high end fits the GPU, ``does-not-fit`` where the low end does not, else ``tight``."""
    if capacity is None:
        return Verdict.UNKNOWN
    if span.high <= capacity:
        return Verdict.FITS
    return Verdict.DOES_NOT_FIT if span.low > capacity else Verdict.TIGHT
