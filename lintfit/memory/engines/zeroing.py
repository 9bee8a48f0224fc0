"""Where gradients are beyond their backward and the optimizer's step: accumulation, and when a loop lets go of them.

``zero_grad`` sets them to None (torch since 2.0). The Trainer calls the model's behind the step; a loop that calls it
in front of the next forward pass has them beside its evaluation and its checkpoints, one that calls it in front of the
backward pass beside the whole forward pass, too. With ``set_to_none=False`` they are never gone.
"""

from __future__ import annotations

from lintfit.memory.spec import Spec, ZeroGrad
from lintfit.memory.tensors.optimizers import updates_in_backward
from lintfit.memory.versions import since


def in_backward(spec: Spec) -> bool:
    """Whether the optimizer takes each gradient as soon as it is made: as stated, else by its name on one process."""
    if "optimizer_in_backward" in spec.stated or spec.engine != "single":
        return spec.optimizer_in_backward
    return spec.optimizer_in_backward or updates_in_backward(spec.optimizer)


SETS_TO_NONE = (2, 0)
"""The first torch version whose ``Module.zero_grad`` lets go of gradients; before, it filled them with zeros."""


def gone(spec: Spec) -> ZeroGrad:
    """When gradients go: as stated, else behind the step where the torch of the run lets go of them there.

    The Trainer asks the model for it; TRL's PPO, and a loop by hand that names its outputs, more often than not ask
    Accelerate's optimizer, which has always set them to None.
    """
    by_hand = spec.trainer == "ppo" or spec.loop_outputs != "dropped"
    if "zero_grad" in spec.stated or spec.zero_grad != "step" or by_hand:
        return spec.zero_grad
    return "step" if since(spec, "torch", SETS_TO_NONE) else "never"


def added_to(spec: Spec) -> bool:
    """Whether new gradients are added to those of earlier micro-batches, or to zeros that the last step's became."""
    return (spec.gradient_accumulation_steps > 1 or gone(spec) == "never") and not in_backward(spec)


def stay_in_forward(spec: Spec) -> bool:
    """Whether earlier gradients are there while a micro-batch goes forward."""
    return added_to(spec) or (gone(spec) == "backward" and not in_backward(spec))


def stay_behind_step(spec: Spec) -> bool:
    """Whether they are there between steps."""
    return gone(spec) != "step" and not in_backward(spec)
