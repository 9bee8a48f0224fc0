"""A loss that a kernel may compute in the place of the model's own, where nobody says whose code trains."""

from __future__ import annotations

from collections.abc import Iterable

from lintfit.catalog.language import language
from lintfit.memory.result import ALLOCATED, Moment
from lintfit.memory.spec import Spec
from lintfit.memory.tensors.tensor_parallel import logit_parts

OVERWRITTEN = 4
"""Bytes an entry of fp32 logits, in whose place Unsloth's and FOAK's ``fast_cross_entropy_loss`` write the gradient."""

NOTE = "the model's own loss (fused_kernels not stated; the low end has a kernel's, as Unsloth's or Liger's)"


def left_open(spec: Spec) -> bool:
    """Whether a kernel may compute the loss."""
    if spec.loss != "full" or spec.own_loss:
        return False
    return spec.stated.isdisjoint({"fused_kernels", "front_end", "trainer"})


def least(spec: Spec, points: Iterable[Moment]) -> int:
    """Bytes of the largest moment with such a kernel: the gradient overwrites the logits; where the kind of loss is not
    stated either, there need not be whole logits at all (Liger's ``FusedLinearCrossEntropy``)."""
    if not left_open(spec):
        return max(map(ALLOCATED, points))
    if "loss" not in spec.stated:
        return max(point.allocated - point.components.get("logits", 0) for point in points)
    once = OVERWRITTEN * spec.micro_batch_size * spec.local_seq * -(-language(spec.facts).vocab // logit_parts(spec))
    return max(point.allocated - min(once, max(0, point.components.get("logits", 0) - once)) for point in points)
