"""The package flash-attn where there is none: transformers' own code up to its kernel, and torch's flash there."""

from __future__ import annotations

import contextlib
from importlib import import_module
from typing import Any
from unittest import mock

import torch

_OWN_CLASSES = ("gpt_neo", "gptj")
"""Models with a class for FlashAttention, which import it where the package is there."""


def _kernel(query: Any, key: Any, value: Any, *, causal: bool, softmax_scale: float | None = None, **_: Any) -> Any:
    """``flash_attn_func`` of [batch, tokens, heads, elements]; saves what torch's flash saves."""
    laid_out = (each.transpose(1, 2) for each in (query, key, value))
    flash = torch.ops.aten._scaled_dot_product_flash_attention
    return flash(*laid_out, 0.0, causal, scale=softmax_scale)[0].transpose(1, 2)


def _passed(**arguments: Any) -> dict[str, Any]:
    return {"causal": arguments["is_causal"], "softmax_scale": arguments.get("softmax_scale")}


def installed() -> contextlib.ExitStack:
    """transformers sees FlashAttention 2 while this is open."""
    import transformers.modeling_flash_attention_utils as utils
    from transformers import PreTrainedModel, modeling_utils

    functions = (_kernel, None, None, None, None), (_passed, None)
    known = utils.FLASH_ATTENTION_COMPATIBILITY_MATRIX
    stack = contextlib.ExitStack()
    for module in (utils, modeling_utils):
        stack.enter_context(mock.patch.object(module, "lazy_import_flash_attention", lambda *_, **__: functions))
    for kind in _OWN_CLASSES:
        model = import_module(f"transformers.models.{kind}.modeling_{kind}")
        forward = utils._flash_attention_forward
        stack.enter_context(mock.patch.object(model, "_flash_attention_forward", forward, create=True))
    stack.enter_context(mock.patch.object(PreTrainedModel, "_flash_attn_can_dispatch", lambda *_, **__: True))
    stack.enter_context(mock.patch.dict(known, {2: {**known[2], "general_availability_check": lambda: True}}))
    return stack
