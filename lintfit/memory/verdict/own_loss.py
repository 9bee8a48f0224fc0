"""A loss that the script makes of the logits itself: no two are alike, so that the range covers the usual ones."""

from __future__ import annotations

from lintfit.catalog.language import language
from lintfit.memory.result import Moment
from lintfit.memory.spec import DTYPE_BYTES, OWN_LOSS, Spec

COPIES = 3
"""Copies of the logits, in their own dtype, that no loss does without: themselves, a log-softmax, their gradient
(``torch.nn.functional.cross_entropy`` on the model's own logits; torch's count in bf16 and fp32)."""

NOTE = "a loss of the script's own counted as the model's (the low end has it in the logits' dtype, the high end both)"


def has_own(spec: Spec) -> bool:
    """Whether whole logits go into a loss of the script's."""
    return spec.own_loss and spec.loss == "full" and spec.trainer in OWN_LOSS


def least(spec: Spec, points: tuple[Moment, ...]) -> int:
    """Bytes of the largest moment where the loss needs no more than :data:`COPIES`."""
    dtype = spec.weights_dtype if spec.mixed_precision == "no" else spec.mixed_precision
    entries = spec.micro_batch_size * (spec.seq_len - 1) * language(spec.facts).vocab  # the last token predicts none
    needed = COPIES * DTYPE_BYTES[dtype] * entries // (spec.sequence_parallel * spec.tensor_parallel)
    return max(point.allocated - max(0, point.components.get("logits", 0) - needed) for point in points)


def more(points: tuple[Moment, ...]) -> int:
    """Bytes on top where the model computes its own loss as well: as many logits again."""
    return max(point.components.get("logits", 0) for point in points)
