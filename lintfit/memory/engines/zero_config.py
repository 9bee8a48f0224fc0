"""DeepSpeed's ZeRO settings as the engine will see them: defaults of 0.19.8, gates for older versions.

Bucket sizes and thresholds are elements, as in the JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.frozen import frozen
from lintfit.memory.reading.deepspeed_values import DTYPE_NAMES, LARGEST_SIZE
from lintfit.memory.spec import Dtype, Spec, section
from lintfit.memory.versions import Release, release

NEWEST: Release = (0, 19, 8)


@frozen
class ZeroConfig:
    """The keys of ``zero_optimization`` that decide memory (deepspeed/runtime/zero/config.py)."""

    stage: int
    reduce_bucket: int
    overlap_comm: bool
    contiguous_gradients: bool
    offload_optimizer: bool
    offload_param: bool
    nvme_optimizer: bool
    nvme_param: bool
    pin_optimizer: bool
    pin_param: bool
    offload_ratio: float
    optimizer_buffers: int
    param_buffers: int
    param_buffer_size: int
    max_in_cpu: int
    sub_group: int
    prefetch_bucket: int
    persistence_threshold: int
    model_persistence_threshold: int
    max_live: int
    max_reuse_distance: int
    gather_on_save: bool
    hpz: int
    mics: int
    round_robin: bool
    grad_accum_dtype: Dtype | None
    master: int
    """Bytes of a master weight, and of the gradient that the optimizer sees."""
    moment: int
    """Bytes of an element of the optimizer's states, where these follow the parameters' dtype."""
    version: Release


def _number(section: Mapping[str, Any], default: int, *names: str, auto: int | None = None) -> int:
    for name in names:
        value = section.get(name)
        if value == "auto":
            return default if auto is None else auto
        if isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0:
            return int(min(value, LARGEST_SIZE))
    return default


def _flag(section: Mapping[str, Any], default: bool, *names: str) -> bool:
    for name in names:
        value = section.get(name)
        if isinstance(value, bool):
            return value
    return default


def zero_config(spec: Spec) -> ZeroConfig:
    """The ZeRO settings of a run.

    ``"auto"`` that is still there becomes what HF's integration fills in: h*h for the reduce bucket,
    0.9*h*h for the prefetch bucket, 10*h for the persistence threshold (transformers
    ``HfTrainerDeepSpeedConfig.trainer_config_finalize``). ``pin_memory`` is true by default since 0.19.6
    (#8207), ``overlap_comm`` where the stage is 3; before 0.15 it was so, too.
    """
    config = spec.deepspeed_config
    zero = section(config, "zero_optimization")
    optimizer, param = section(zero, "offload_optimizer"), section(zero, "offload_param")
    version = release(spec.versions.get("deepspeed")) or NEWEST
    pins = version >= (0, 19, 6)
    hidden = spec.facts.hidden
    stage = spec.zero_stage
    accum = section(config, "data_types").get("grad_accum_dtype")
    master, moment = _master_and_moment(spec)
    return ZeroConfig(
        stage=stage,
        reduce_bucket=_number(zero, 500_000_000, "reduce_bucket_size", auto=hidden * hidden),
        overlap_comm=_flag(zero, stage == 3, "overlap_comm"),
        contiguous_gradients=_flag(zero, True, "contiguous_gradients"),
        offload_optimizer=stage >= 1 and spec.offload_optimizer != "none",
        offload_param=stage == 3 and spec.offload_param != "none",
        nvme_optimizer=stage == 3 and spec.offload_optimizer == "nvme",
        nvme_param=stage == 3 and spec.offload_param == "nvme",
        pin_optimizer=_flag(optimizer, pins, "pin_memory"),
        pin_param=_flag(param, pins, "pin_memory"),
        offload_ratio=_ratio(optimizer) if stage == 3 else 1.0,
        optimizer_buffers=_number(optimizer, 4, "buffer_count"),
        param_buffers=_number(param, 5, "buffer_count"),
        param_buffer_size=_number(param, 100_000_000, "buffer_size"),
        max_in_cpu=_number(param, 1_000_000_000, "max_in_cpu"),
        sub_group=_number(zero, 1_000_000_000, "sub_group_size"),
        prefetch_bucket=_number(
            zero, 50_000_000, "stage3_prefetch_bucket_size", "prefetch_bucket_size", auto=int(0.9 * hidden * hidden)
        ),
        persistence_threshold=_number(
            zero, 100_000, "stage3_param_persistence_threshold", "param_persistence_threshold", auto=10 * hidden
        ),
        model_persistence_threshold=_number(
            zero, 2**63, "stage3_model_persistence_threshold", "model_persistence_threshold"
        ),
        max_live=_number(zero, 1_000_000_000, "stage3_max_live_parameters", "max_live_parameters"),
        max_reuse_distance=_number(zero, 1_000_000_000, "stage3_max_reuse_distance", "max_reuse_distance"),
        gather_on_save=_flag(
            zero,
            False,
            "stage3_gather_16bit_weights_on_model_save",
            "stage3_gather_fp16_weights_on_model_save",
            "gather_16bit_weights_on_model_save",
        ),
        hpz=max(1, _number(zero, 1, "zero_hpz_partition_size")),
        mics=_number(zero, 0, "mics_shard_size"),
        round_robin=_flag(zero, False, "round_robin_gradients"),
        grad_accum_dtype=DTYPE_NAMES.get(accum) if isinstance(accum, str) else None,
        master=master,
        moment=moment,
        version=version,
    )


def _master_and_moment(spec: Spec) -> tuple[int, int]:
    """Bytes of a master weight and of an element of the states: 4 unless the JSON asks for half-precision masters.

    ``bf16.bf16_master_weights_and_grads`` and ``fp16.fp16_master_weights_and_grads`` (``base_optimizer.py:
    _configure_master_weights``). States on the GPU follow the masters; DeepSpeedCPUAdam keeps fp32 ones unless
    ``bf16_optimizer_states`` (``engine.py:get_optimizer_configuration``).
    """
    precision = spec.mixed_precision
    asked = section(spec.deepspeed_config, precision)
    if precision == "no" or spec.zero_stage == 0 or asked.get(f"{precision}_master_weights_and_grads") is not True:
        return 4, 4
    on_host = spec.offload_optimizer != "none" and asked.get("bf16_optimizer_states") is not True
    return 2, 4 if on_host else 2


def _ratio(section: Mapping[str, Any]) -> float:
    value = section.get("ratio")
    return float(value) if isinstance(value, (int, float)) and 0 <= value <= 1 else 1.0


UNMODELLED = {
    "zero_quantized_weights": "ZeRO++ quantised weights (qwZ)",
    "zero_quantized_nontrainable_weights": "ZeRO++ quantised frozen weights",
    "zero_quantized_gradients": "ZeRO++ quantised gradients (qgZ)",
    "zenflow": "ZenFlow",
}
"""Keys of ``zero_optimization`` whose effect on memory is not counted, by what they are."""


def not_modelled(spec: Spec) -> tuple[str, ...]:
    """What the DeepSpeed JSON switches on and this model does not count."""
    zero = section(spec.deepspeed_config, "zero_optimization")
    found = [what for key, what in UNMODELLED.items() if zero.get(key)]
    if section(zero, "offload_optimizer").get("super_offload"):
        found.append("SuperOffload")
    if section(spec.deepspeed_config, "torch_autocast").get("enabled") is True:
        found.append("DeepSpeed's torch_autocast (parameters stay fp32)")
    return tuple(found)


def optimizer_name(spec: Spec) -> str:
    """The optimizer that DeepSpeed runs, in the words of ``memory/tensors/optimizers.py``.

    An ``optimizer`` section of the JSON beats the trainer's; Adam and AdamW are then FusedAdam, or torch's
    foreach AdamW with ``torch_adam``; ``deepspeed.initialize`` runs DeepSpeedCPUAdam where states are offloaded
    (``engine.py:get_optimizer_configuration``).
    """
    chosen = section(spec.deepspeed_config, "optimizer")
    name = chosen.get("type")
    if not isinstance(name, str):
        return "adamw" if _offloads(spec) and not _client_allowed(spec) else spec.optimizer
    name = name.lower()
    if name in ("adam", "adamw"):
        torch_adam = section(chosen, "params").get("torch_adam") is True
        return "adamw_torch" if torch_adam and not _offloads(spec) else "adamw"
    return name


def _offloads(spec: Spec) -> bool:
    return spec.zero_stage >= 1 and spec.offload_optimizer != "none"


def _client_allowed(spec: Spec) -> bool:
    return spec.deepspeed_config.get("zero_force_ds_cpu_optimizer") is False
