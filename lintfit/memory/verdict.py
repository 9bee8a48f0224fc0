"""The range around the likely peak, from named uncertainties, and the verdict on a card.

``low`` is what must be there. ``high`` is what to plan for: everything below that may come on top. ``fits`` needs
``high`` to fit, ``does-not-fit`` needs ``low`` not to; what lies between is ``tight``.
"""

from __future__ import annotations

from lintfit.memory.activations import known
from lintfit.memory.framework import CONTEXT, CONTEXT_HOPPER, NCCL
from lintfit.memory.result import Components, Moment, Range, Verdict
from lintfit.memory.rollout import vllm_bytes
from lintfit.memory.spec import GIB, Spec
from lintfit.memory.states import States

FRAGMENTATION = 0.26
"""Share of the allocated peak that the caching allocator may need on top to run at all: the largest of 339 replayed
allocation logs (median 0.03, 90th percentile 0.14). It agrees with 454 Megatron runs of which none died below 80 %
of the card (Fujii et al., arXiv 2411.06465)."""

DESKTOP = int(0.5 * GIB)
"""What a display server and other programs hold on a GeForce card; data-centre cards drive no screen."""

OLDER_LOSS = 14 / 12
"""transformers up to 4.48 holds 14 bytes of logits per token and vocabulary entry where later versions hold 12."""

ZERO3_EXTRA = 3 * GIB
"""What ZeRO-3 runs show beyond the sum of their parts (gathers beside their copies, blocks of many sizes): 16.3 GiB
where formulas give 13 for Llama-3.1-8B with offload on 8 H200 (ml-engineering, DeepSpeed 0.19.2), 13 GB a card in
LLaMA-Factory issue 5977."""

UNSEEN = 2.0
"""For a layer that nobody has counted (remote code, an unknown architecture) the likely peak is doubled: the
published errors of estimators on models that they do not know are of this size."""

LONG_SEQUENCE = 131_072
"""Tokens of one rank beyond which no plain implementation trains: such runs tile the loss and the MLP, split the
sequence or offload checkpoints (ALST, arXiv 2506.13996: an 8B model ends at 32K on one H100 without), so only the
model states are certain."""

EVALUATED = frozenset({"load", "initialize", "step", "save"})


def bounds(spec: Spec, points: tuple[Moment, ...], beside: Range, held: States) -> tuple[Range, tuple[str, ...]]:
    """Low, likely and high bytes of the peak, and the assumptions that the range rests on."""
    peak = max(points, key=lambda moment: moment.allocated)
    allocated = peak.allocated
    notes: list[str] = []
    low = allocated
    if spec.seq_len // spec.sequence_parallel > LONG_SEQUENCE and "sequence_parallel" not in spec.stated:
        low = max(moment.allocated for moment in points if moment.phase in EVALUATED)
        notes.append(
            f"sequence of {spec.seq_len} tokens on one GPU: such runs split or tile it, which the spec does not say; "
            "the low end counts the model states only"
        )
    hopper = bool(spec.gpu and spec.gpu.compute_capability and spec.gpu.compute_capability >= (9, 0))
    context = CONTEXT_HOPPER if hopper else CONTEXT
    outside = context.high + (NCCL.high if spec.gpus > 1 else 0)
    if spec.gpu is not None and "GeForce" in spec.gpu.name:
        outside += DESKTOP
    planned = max(int(moment.allocated + _unsure(spec, moment.components)) for moment in points)
    high = int(planned * (1 + FRAGMENTATION)) + outside
    if not known(spec.facts) or not spec.facts.exact:
        high = max(high, int(UNSEEN * (allocated + beside.low)))
    high = max(high + vllm_bytes(spec), allocated + beside.likely)
    return Range(low + beside.low, allocated + beside.likely, high), tuple(notes)


def _unsure(spec: Spec, parts: Components) -> float:
    """Bytes at one moment that may come on top because the spec leaves something open."""
    extra = 0.0
    if "transformers" not in spec.versions:
        extra += parts.get("logits", 0) * (OLDER_LOSS - 1)
    if spec.engine == "deepspeed" and spec.zero_stage == 3:
        extra += min(ZERO3_EXTRA, 4 * spec.facts.parameters)
    return extra


def judge(span: Range, capacity: int | None) -> Verdict:
    """``fits`` where the high end fits the card, ``does-not-fit`` where the low end does not, else ``tight``."""
    if capacity is None:
        return Verdict.UNKNOWN
    if span.high <= capacity:
        return Verdict.FITS
    return Verdict.DOES_NOT_FIT if span.low > capacity else Verdict.TIGHT
