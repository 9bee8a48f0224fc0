"""Where gradients are beyond their backward and the optimizer's step: accumulation, and when a loop lets go of them.

``zero_grad`` sets them to None (torch since 2.0). The Trainer calls it behind the step; a loop that calls it in front
of the next forward pass has them beside its evaluation and its checkpoints, one that calls it in front of the backward
pass beside the whole forward pass, too. With ``set_to_none=False`` they are never gone.
"""

from __future__ import annotations

from lintfit.memory.spec import Spec
from lintfit.memory.tensors.optimizers import updates_in_backward


def in_backward(spec: Spec) -> bool:
    """Whether the optimizer takes each gradient as soon as it is made: as stated, else by its name on one process."""
    if "optimizer_in_backward" in spec.stated or spec.engine != "single":
        return spec.optimizer_in_backward
    return spec.optimizer_in_backward or updates_in_backward(spec.optimizer)


def added_to(spec: Spec) -> bool:
    """Whether new gradients are added to those of earlier micro-batches, or to zeros that the last step's became."""
    return (spec.gradient_accumulation_steps > 1 or spec.zero_grad == "never") and not in_backward(spec)


def stay_in_forward(spec: Spec) -> bool:
    """Whether earlier gradients are there while a micro-batch goes forward."""
    return added_to(spec) or (spec.zero_grad == "backward" and not in_backward(spec))


def stay_behind_step(spec: Spec) -> bool:
    """Whether they are there between steps."""
    return spec.zero_grad != "step" and not in_backward(spec)
