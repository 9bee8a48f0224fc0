"""What a spec may not say: settings that contradict each other, as one line that names key, value and remedy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.errors import LintfitError

LARGEST_SIZE = 2**63
"""Elements of DeepSpeed's largest threshold (``stage3_model_persistence_threshold``, ``sys.maxsize``)."""


class SpecError(LintfitError):
    """A spec that cannot be estimated. The message is one line: the key, its value, and what is allowed."""


def shown(value: Any) -> str:
    """A value as a message quotes it."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def consistent(values: Mapping[str, Any], layers: int) -> None:
    """Raise :class:`SpecError` for the first settings that contradict each other."""
    ranks = values.get("gpus", 1)
    nodes = values.get("nodes", 1)
    engine = values["engine"]
    if nodes > ranks:
        raise SpecError(f"nodes: {nodes} is more than gpus ({ranks}), which counts the GPUs of all nodes")
    if values.get("pipeline_parallel", 1) > layers:
        raise SpecError(f"pipeline_parallel: {values['pipeline_parallel']} is more than the model's {layers} layers")
    product = 1
    for key in ("tensor_parallel", "pipeline_parallel", "sequence_parallel"):
        product *= values.get(key, 1)
    if ranks % product:
        raise SpecError(
            f"gpus: {ranks} is no multiple of tensor_parallel x pipeline_parallel x sequence_parallel ({product})"
        )
    if values.get("zero_stage") and engine != "deepspeed":
        raise SpecError(f"zero_stage: {values['zero_stage']} needs engine 'deepspeed', the spec says '{engine}'")
    if values.get("fsdp") is not None and engine != "fsdp":
        raise SpecError(f"fsdp: needs engine 'fsdp', the spec says '{engine}'")
    for key in ("offload_optimizer", "offload_param"):
        if values.get(key, "none") != "none" and engine != "deepspeed":
            raise SpecError(f"{key}: '{values[key]}' needs engine 'deepspeed', the spec says '{engine}'")
    _sizes(values)
    if ranks % values.get("expert_parallel", 1):
        raise SpecError(f"gpus: {ranks} is no multiple of expert_parallel ({values['expert_parallel']})")
    if engine == "single" and ranks > 1:
        raise SpecError(f"engine: 'single' runs on one GPU, gpus is {ranks}; use 'ddp', 'deepspeed' or 'fsdp'")
    if values.get("trainer") == "ppo" and product > 1:
        raise SpecError(f"trainer: 'ppo' splits no model over GPUs, the spec does so {product} times")
    if values.get("quantization") and values.get("method", "full") == "full":
        raise SpecError(
            f"quantization: '{values['quantization']}' weights cannot be trained with method 'full'; use 'lora'"
        )


def _sizes(values: Mapping[str, Any]) -> None:
    """Sizes of ``zero_optimization``, and groups of ranks that must divide all of them."""
    zero = values.get("deepspeed_config", {}).get("zero_optimization")
    if not isinstance(zero, Mapping):
        return
    for key, value in zero.items():
        if isinstance(value, int | float) and value < 0:
            raise SpecError(f"deepspeed_config.zero_optimization.{key}: {shown(value)} must not be negative")
        if isinstance(value, int | float) and not value <= LARGEST_SIZE:
            where = f"deepspeed_config.zero_optimization.{key}"
            raise SpecError(f"{where}: {shown(value)} must be a number up to {LARGEST_SIZE}")
    ranks = values.get("gpus", 1)
    for key in ("zero_hpz_partition_size", "mics_shard_size"):
        size = zero.get(key)
        if isinstance(size, int) and size > 1 and ranks % size:
            raise SpecError(f"deepspeed_config.zero_optimization.{key}: {size} does not divide gpus ({ranks})")
