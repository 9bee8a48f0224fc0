"""Bytes of a quantised weight with everything that belongs to it, each part as an own block of the allocator."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from lintfit.catalog.facts import ModelFacts, Stored, Tensor
from lintfit.catalog.quantized import quantization_section, skips
from lintfit.frozen import replace

BLOCK = 512
NF4_BLOCK = 64
"""Elements that share one absmax (bitsandbytes ``quantize_4bit`` default ``blocksize``)."""
NESTED_BLOCK = 256
"""Absmax values that share one second-level absmax under double quantisation (``quantize_blockwise``)."""
GPTQ_GROUP = 128
"""Input elements that share one scale (``GPTQConfig.group_size`` default)."""


def _blocks(*sizes: int) -> int:
    return sum(-(-size // BLOCK) * BLOCK for size in sizes)


KEPT = dict.fromkeys(("mt5", "t5", "umt5"), ".wo.weight")
"""By model type what the weights end with that its class leaves to no quantiser (``_keep_in_fp32_modules``)."""


def kept(facts: ModelFacts, tensor: Tensor) -> bool:
    """Whether the model's class keeps the quantiser from a weight."""
    ends = KEPT.get(facts.model_type)
    return ends is not None and tensor.name.endswith(ends)


def quantises(facts: ModelFacts, tensor: Tensor, legacy_experts: bool, head: bool = False) -> bool:
    """Whether the quantiser replaces this weight: linear layers, never embeddings, norms, biases or the head.

    bitsandbytes and GPTQ replace ``nn.Linear`` modules except the output layer (transformers
    ``get_keys_to_not_convert``). Since transformers 5 experts are one fused parameter and the router is a bare
    parameter, which they pass over; before (``legacy_experts``) both were linear layers. ``head``: Lightning's
    ``BitsandbytesPrecision`` replaces every linear layer, the output layer as well.
    """
    if tensor.role == "lm_head":
        return head
    if tensor.role == "linear":
        return tensor.name.endswith(".weight") and not kept(facts, tensor)
    return legacy_experts and tensor.role in ("expert", "router")


def quantised_tensor(tensor: Tensor, method: str, group: int = GPTQ_GROUP, whole: bool = False) -> int:
    """Bytes of one copy of a quantised tensor; experts that are fused today were matrices of their own.

    ``whole``: unless the parameter that they are is quantised as one (bitsandbytes ``replace_parameter_4bit``).
    """
    if len(tensor.shape) != 3 or whole:
        return quantised_bytes(tensor.shape, method, group)
    experts, rows, columns = tensor.shape
    parts = 2 if tensor.name.endswith("gate_up_proj") else 1
    return experts * parts * quantised_bytes((rows // parts, columns), method, group)


def parted(tensor: Tensor, stored: Stored | None, quantised: bool) -> tuple[tuple[Tensor, bool], ...]:
    """A kind of tensor as its copies that are quantised and those that are not.

    ``quantised``: whether the quantiser would replace all. A checkpoint may leave modules out, in some layers or in all
    (``llm_int8_skip_modules``), and takes the head as well where it names what it leaves and that is not the head.
    """
    if stored is None or stored.skipped is None:
        return ((tensor, quantised),)
    if not quantised and tensor.role != "lm_head":
        return ((tensor, False),)
    module = tensor.name.rpartition(".")[0]
    if "{}" not in module:
        return ((tensor, not skips(stored.skipped, module)),)
    left = sum(skips(stored.skipped, module.replace("{}", str(layer), 1)) for layer in range(tensor.copies))
    if left in (0, tensor.copies):
        return ((tensor, left == 0),)
    return (replace(tensor, copies=tensor.copies - left), True), (replace(tensor, copies=left), False)


def gptq_group(config: Mapping[str, Any]) -> int:
    """``group_size`` of a ``config.json``'s quantization section, 128 where it does not say."""
    group = quantization_section(config).get("group_size")
    return group if isinstance(group, int) else GPTQ_GROUP


def quantised_bytes(shape: tuple[int, ...], method: str, group: int = GPTQ_GROUP) -> int:
    """Bytes on the GPU of one weight of ``shape`` (out, in) under a ``Spec.quantization`` method.

    nf4: packed halves, fp32 absmax per 64, the 16-entry code; nf4-double: 8-bit absmax, its fp32 absmax per 256,
    an fp32 offset, both codes (bitsandbytes ``functional.QuantState``). int8: one byte and an fp32 scale per
    row (``MatmulLtState.SCB``). gptq: packed 32-bit words, packed zeros and fp16 scales per ``group`` inputs (one
    group of all where it is not positive), an int32 group index per input (``qweight``, ``qzeros``, ``scales``,
    ``g_idx``).
    """
    numel = math.prod(shape)
    blocks = -(-numel // NF4_BLOCK)
    match method:
        case "nf4":
            return _blocks(-(-numel // 2), 4 * blocks, 64)
        case "nf4-double":
            return _blocks(-(-numel // 2), blocks, 4 * -(-blocks // NESTED_BLOCK), 4, 64, 1024)
        case "int8":
            return _blocks(numel, 4 * (numel // shape[-1]))
        case "gptq-int4" | "gptq-int8":
            bits = 4 if method == "gptq-int4" else 8
            columns = shape[-1]
            rows = numel // columns
            groups = -(-columns // group) if group > 0 else 1
            return _blocks(numel * bits // 8, groups * rows * bits // 8, 2 * groups * rows, 4 * columns)
    raise ValueError(f"unknown quantization {method!r}; known: nf4, nf4-double, int8, gptq-int4, gptq-int8")
