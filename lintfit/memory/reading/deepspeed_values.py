"""What the values of ``deepspeed_config`` may be where memory depends on them, and the settings that it contradicts.

DeepSpeed 0.19.8 refuses the same (``runtime/config.py``, ``runtime/zero/config.py``); ``"auto"`` is what transformers
fills in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.errors import shown
from lintfit.memory.reading.contradictions import SpecError
from lintfit.memory.spec import Dtype

LARGEST_SIZE = 2**63
"""Elements of DeepSpeed's largest threshold (``stage3_model_persistence_threshold``, ``sys.maxsize``)."""

SECTIONS = ("zero_optimization", "bf16", "bfloat16", "fp16", "data_types", "torch_autocast", "optimizer", "aio")
OFFLOADS = ("offload_optimizer", "offload_param")

NUMBERS = frozenset(
    {
        "reduce_bucket_size", "allgather_bucket_size", "sub_group_size", "prefetch_bucket_size",
        "stage3_prefetch_bucket_size", "param_persistence_threshold", "stage3_param_persistence_threshold",
        "model_persistence_threshold", "stage3_model_persistence_threshold", "max_live_parameters",
        "stage3_max_live_parameters", "max_reuse_distance", "stage3_max_reuse_distance", "zero_hpz_partition_size",
        "mics_shard_size", "buffer_count", "buffer_size", "max_in_cpu", "ratio",
    }
)  # fmt: skip
FLAGS = frozenset(
    {
        "enabled", "overlap_comm", "contiguous_gradients", "round_robin_gradients", "reduce_scatter", "pin_memory",
        "stage3_gather_16bit_weights_on_model_save", "gather_16bit_weights_on_model_save",
        "stage3_gather_fp16_weights_on_model_save", "zero_quantized_weights", "zero_quantized_gradients",
        "fp16_master_weights_and_grads", "bf16_master_weights_and_grads", "bf16_optimizer_states",
        "immediate_grad_update",
    }
)  # fmt: skip

DTYPE_NAMES: Mapping[str, Dtype] = {
    "fp32": "fp32", "float32": "fp32", "float": "fp32", "torch.float32": "fp32",
    "fp16": "fp16", "float16": "fp16", "half": "fp16", "torch.float16": "fp16",
    "bf16": "bf16", "bfloat16": "bf16", "torch.bfloat16": "bf16",
}  # fmt: skip
"""Names of ``data_types.grad_accum_dtype`` (DeepSpeed's ``DtypeEnum``)."""


def check(values: Mapping[str, Any]) -> None:
    """Raise :class:`SpecError` for the first value that DeepSpeed would refuse, or that the spec contradicts."""
    config = values.get("deepspeed_config")
    if config is None:
        return
    for name in SECTIONS:
        _section(config, name, "deepspeed_config")
    zero = config.get("zero_optimization") or {}
    for name in OFFLOADS:
        _section(zero, name, "deepspeed_config.zero_optimization")
    if _enabled(config, "fp16") and (_enabled(config, "bf16") or _enabled(config, "bfloat16")):
        raise SpecError("deepspeed_config: bf16.enabled and fp16.enabled are both true; DeepSpeed takes one of them")
    accumulator = (config.get("data_types") or {}).get("grad_accum_dtype")
    if accumulator is not None and accumulator not in DTYPE_NAMES:
        where = "deepspeed_config.data_types.grad_accum_dtype"
        raise SpecError(f"{where}: {shown(accumulator)} must be one of 'fp32', 'bf16', 'fp16'")
    _groups(zero, values.get("gpus", 1))
    _contradictions(values, zero)


def _section(outer: Mapping[str, Any], name: str, where: str) -> None:
    section = outer.get(name)
    if section is None:
        return
    if not isinstance(section, Mapping):
        raise SpecError(f"{where}.{name}: {shown(section)} must be a JSON object")
    for key, value in section.items():
        _value(f"{where}.{name}.{key}", key, value)


def _value(where: str, key: str, value: Any) -> None:
    """Numbers are numbers, flags are flags, and no number is absurd whatever its key."""
    if value is None or value == "auto":
        return
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if key in NUMBERS and not number:
        raise SpecError(f"{where}: {shown(value)} must be a number or 'auto'")
    if key in FLAGS and not isinstance(value, bool):
        raise SpecError(f"{where}: {shown(value)} must be true, false or 'auto'")
    if number and value < 0:
        raise SpecError(f"{where}: {shown(value)} must not be negative")
    if number and not value <= LARGEST_SIZE:
        raise SpecError(f"{where}: {shown(value)} must be a number up to {LARGEST_SIZE}")


def _enabled(config: Mapping[str, Any], name: str) -> bool:
    return (config.get(name) or {}).get("enabled") is True


def _groups(zero: Mapping[str, Any], ranks: int) -> None:
    """Groups of ranks that must divide all of them; hpZ's is cut to all of them (``groups.py``)."""
    for key in ("zero_hpz_partition_size", "mics_shard_size"):
        size = zero.get(key)
        if isinstance(size, int) and size > 1 and ranks % (min(size, ranks) if "hpz" in key else size):
            raise SpecError(f"deepspeed_config.zero_optimization.{key}: {size} does not divide gpus ({ranks})")


def _contradictions(values: Mapping[str, Any], zero: Mapping[str, Any]) -> None:
    """What the spec's own keys say otherwise."""
    stage = zero.get("stage")
    if stage is not None and values.get("zero_stage", stage) != stage:
        where = "deepspeed_config.zero_optimization.stage"
        raise SpecError(f"zero_stage: {values['zero_stage']} contradicts {where} ({shown(stage)}); state one of them")
    for key in OFFLOADS:
        device = (zero.get(key) or {}).get("device")
        if device is not None and values.get(key, device) != device:
            where = f"deepspeed_config.zero_optimization.{key}.device"
            raise SpecError(f"{key}: {shown(values[key])} contradicts {where} ({shown(device)}); state one of them")
