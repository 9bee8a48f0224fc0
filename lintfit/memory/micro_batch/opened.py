"""Whether gradient checkpointing opens the embeddings' output for gradients (``enable_input_require_grads``)."""

from __future__ import annotations

from lintfit.memory.spec import Spec
from lintfit.memory.tensors.frozen_parts import frozen_parts
from lintfit.memory.versions import transformers_version

OPENS_EVERY_INPUT = (5, 0)
"""The first transformers whose ``gradient_checkpointing_enable`` calls ``enable_input_require_grads`` for every model
that takes ids; before, it did so only for adapters of transformers' own loader."""


def opens_inputs(spec: Spec) -> bool:
    """Whether checkpointing over a frozen base makes the embeddings' output a leaf that needs a gradient.

    Reentrant checkpointing over adapters works with nothing else, so that PEFT, TRL or the script see to it; since
    ``OPENS_EVERY_INPUT`` transformers does so for either kind.
    """
    adapters = spec.method == "lora"
    if spec.gradient_checkpointing is False or not (adapters or frozen_parts(spec).embedding):
        return False
    by_itself = transformers_version(spec) >= OPENS_EVERY_INPUT and spec.front_end != "litgpt"
    return by_itself or (adapters and spec.use_reentrant)


def hooks_inputs(checkpoints: bool, transformers: tuple[int, ...]) -> bool:
    """Whether gradient checkpointing hooks the embeddings of every model, in its evaluation as well."""
    return checkpoints and transformers >= OPENS_EVERY_INPUT
