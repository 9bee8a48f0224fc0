"""The keys of a spec, and how the value of each is read: one line naming key, value and what is allowed for a bad one.

Models and cards are in :mod:`lintfit.memory.reading.named`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lintfit.errors import shown
from lintfit.memory.reading.contradictions import SpecError
from lintfit.memory.spec import (
    FSDP_GATHERS,
    KERNELS,
    LARGEST_COUNT,
    LARGEST_SEQUENCE,
    TRAINERS,
    Evaluation,
    Fsdp,
)
from lintfit.memory.tensors.optimizers import BLOCKWISE, TABLE
from lintfit.suggest import nearest

Read = Callable[[str, Any], Any]

EVALUATION_BATCH = 8
"""``TrainingArguments.per_device_eval_batch_size``."""


def unknown(key: str) -> SpecError:
    """The error of a key that no spec has, with the one that may have been meant."""
    return SpecError(f"{_named(key)}: unknown key{_meant(str(key), (*READERS, *SPECIAL))}")


def _named(key: object) -> str:
    """A key as a message names it: quoted where it is no word."""
    return key if isinstance(key, str) and key.isidentifier() else shown(key)


def _json(value: object) -> str:
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else repr(value)


def _meant(word: str, known: Sequence[str]) -> str:
    close = nearest(word, known)
    return f" (did you mean '{close}'?)" if close is not None else f"; known keys: {', '.join(known)}"


def _count(least: int = 1, most: int = LARGEST_COUNT) -> Read:
    def read(key: str, value: Any) -> int:
        whole = int(value) if isinstance(value, float) and value.is_integer() else value
        if isinstance(whole, bool) or not isinstance(whole, int) or not least <= whole <= most:
            raise SpecError(f"{key}: {shown(value)} must be a whole number from {least} to {most}")
        return whole

    return read


def _amount(least: float, most: float, exclusive: bool = False) -> Read:
    def read(key: str, value: Any) -> float:
        fine = not isinstance(value, bool) and isinstance(value, int | float) and least <= value <= most
        # An integer may be larger than any float.
        fine = fine and (isinstance(value, float) or value <= sys.float_info.max)
        if not fine or (exclusive and value == least):
            bound = f"above {least:g}" if exclusive else f"from {least:g}"
            raise SpecError(f"{key}: {shown(value)} must be a number {bound} to {most:g}")
        return float(value)

    return read


def choice(*allowed: Any) -> Read:
    """A reader of one of a few values."""

    def read(key: str, value: Any) -> Any:
        for choice in allowed:
            if value == choice and type(value) is type(choice):
                return choice
        words = ", ".join(_json(choice) for choice in allowed)
        raise SpecError(f"{key}: {shown(value)} must be one of {words}")

    return read


def _anything(key: str, value: Any) -> Any:
    return value


def _flag(key: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise SpecError(f"{key}: {shown(value)} must be true or false")
    return value


def _names(key: str, value: Any) -> tuple[str, ...]:
    if (
        isinstance(value, str)
        or not isinstance(value, list | tuple)
        or not all(isinstance(name, str) for name in value)
    ):
        raise SpecError(f"{key}: {shown(value)} must be a list of module names")
    return tuple(value)


def _targets(key: str, value: Any) -> tuple[str, ...] | str | None:
    if value is None or value == "all-linear":
        return value  # type: ignore[no-any-return]
    names = _names(key, value) if not isinstance(value, str) else ()
    if not names:
        raise SpecError(f"{key}: {shown(value)} must be a list of module names or 'all-linear'")
    return names


def _kernels(key: str, value: Any) -> tuple[str, ...]:
    names = _names(key, value)
    for name in names:
        if name not in KERNELS:
            raise SpecError(f"{key}: {shown(name)} must be one of {', '.join(KERNELS)}")
    return names


def _mapping(key: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise SpecError(f"{key}: {shown(value)} must be a JSON object")
    return value


def _versions(key: str, value: Any) -> Mapping[str, str]:
    for name, version in _mapping(key, value).items():
        if not isinstance(version, str):
            raise SpecError(f"{key}.{_named(name)}: {shown(version)} must be a string such as '4.48.1'")
        if not version.lstrip("v")[:1].isdigit():
            raise SpecError(f"{key}.{_named(name)}: {shown(version)} must be a version such as '4.48.1'")
    return dict(value)


def _parts(readers: Mapping[str, Read]) -> Callable[[str, Any], dict[str, Any]]:
    """A reader of an object with keys of its own: those that are stated; null leaves a part to its default."""

    def read(key: str, value: Any) -> dict[str, Any]:
        stated = {}
        for name, part in _mapping(key, value).items():
            if name not in readers:
                raise SpecError(f"{key}.{_named(name)}: unknown key{_meant(name, tuple(readers))}")
            if part is not None:
                stated[name] = readers[name](f"{key}.{name}", part)
        return stated

    return read


_FSDP = _parts(
    {
        "version": choice(1, 2),
        "strategy": choice(*FSDP_GATHERS, "_HYBRID_SHARD_ZERO2"),
        "cpu_offload": _flag,
        "auto_wrap": _flag,
    }
)
_GENERATION = _parts(
    {
        "completion_len": _count(most=LARGEST_SEQUENCE),
        "vllm_gpu_memory_utilization": _amount(0, 1),
        "gather_weights": _flag,
        "steps_per_generation": _count(),
        "vllm_sleeps": _flag,
        "rollout_batch_size": _count(),
        "mini_batches": _count(),
    }
)
_EVALUATION = _parts(
    {
        "batch_size": _count(0),
        "predictions": choice("none", "dropped", "gathered", "kept", "held", "listed"),
        "graph": _flag,
        "accumulation_steps": _count(),
        "concat_batches": _flag,
        "samples": _count(most=LARGEST_SEQUENCE),
        "generates": choice(True, False, "only"),
        "prompt_len": _count(most=LARGEST_SEQUENCE),
        "new_tokens": _count(most=LARGEST_SEQUENCE),
        "beams": _count(),
    }
)


def _fsdp(key: str, value: Any) -> Fsdp | None:
    if value is None:
        return None
    stated = _FSDP(key, value)
    if "strategy" in stated:
        stated["strategy"] = stated["strategy"].lstrip("_")
    return Fsdp(**stated)


def _generation(key: str, value: Any) -> Mapping[str, Any] | None:
    """The parts that are stated; :mod:`.defaults` makes a ``Generation`` of them."""
    return None if value is None else _GENERATION(key, value)


def _evaluation(key: str, value: Any) -> Evaluation | None:
    return None if value is None else Evaluation(**{"batch_size": EVALUATION_BATCH, **_EVALUATION(key, value)})


def _optimizer(key: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise SpecError(f"{key}: {shown(value)} must be an optimizer's name such as 'adamw_torch'")
    listed = value.lower() in TABLE or value.lower().startswith(BLOCKWISE)
    meant = nearest(value, TABLE) if not listed else None
    if meant is not None:
        raise SpecError(f"{key}: {shown(value)} is no optimizer that is known (did you mean '{meant}'?)")
    return value


SPECIAL = ("model", "model_config", "gpu", "reward_model", "value_model", "frozen_models")
NULLABLE = frozenset({"quantization", "fsdp", "lora_targets", "generation", "evaluation"})
DTYPES = choice("fp32", "bf16", "fp16")

READERS: Mapping[str, Read] = {
    "gpu_memory_gib": _amount(0, 2**16, exclusive=True),
    "gpus": _count(),
    "nodes": _count(),
    "host_memory_gib": _amount(0, 2**20, exclusive=True),
    "engine": choice("single", "ddp", "deepspeed", "fsdp"),
    "zero_stage": choice(0, 1, 2, 3),
    "offload_optimizer": choice("none", "cpu", "nvme"),
    "offload_param": choice("none", "cpu", "nvme"),
    "deepspeed_config": _mapping,
    "fsdp": _fsdp,
    "tensor_parallel": _count(),
    "pipeline_parallel": _count(),
    "sequence_parallel": _count(),
    "expert_parallel": _count(),
    "weights_dtype": DTYPES,
    "mixed_precision": choice("no", "bf16", "fp16"),
    "method": choice("full", "lora"),
    "lora_rank": _count(),
    "lora_targets": _targets,
    "lora_modules_to_save": _names,
    "frozen_modules": _names,
    "lora_dtype": DTYPES,
    "lora_dropout": _amount(0, 1),
    "use_dora": _flag,
    "quantization": choice(None, "nf4", "nf4-double", "int8", "gptq-int4", "gptq-int8"),
    "quantized_experts": _flag,
    "optimizer": _optimizer,
    "optimizer_in_backward": _flag,
    "micro_batch_size": _count(),
    "gradient_accumulation_steps": _count(),
    "seq_len": _count(most=LARGEST_SEQUENCE),
    "decoder_seq_len": _count(most=LARGEST_SEQUENCE),
    "gradient_checkpointing": choice(True, False, "selective"),
    "use_reentrant": _flag,
    "activation_offload": _flag,
    "attention": choice("eager", "sdpa", "flash_attention_2"),
    "padded_batches": _flag,
    "loss": choice("full", "chunked", "liger"),
    "use_cache": _flag,
    "loop_outputs": choice("dropped", "backward", "held"),
    "zero_grad": choice("step", "forward", "backward", "never"),
    "upcast_outputs": _flag,
    "max_grad_norm": _amount(0, float("inf")),
    "trainer": choice(*TRAINERS, "sft"),
    "front_end": choice("transformers", "litgpt"),
    "fused_kernels": _kernels,
    "kbit_upcast": choice("none", "norms", "all"),
    "zero3_init": _flag,
    "reference_model": _flag,
    "own_loss": _flag,
    "generation": _generation,
    "evaluation": _evaluation,
    "gradient_as_bucket_view": _flag,
    "saves": _flag,
    "images": _count(0),
    "image_patches": _count(most=LARGEST_SEQUENCE),
    "image_max_pixels": _count(most=LARGEST_SEQUENCE),
    "image_tiles": _count(),
    "versions": _versions,
}

FROZEN_MODEL = _parts(
    {
        "model": _anything,
        "model_config": _anything,
        "weights_dtype": DTYPES,
        "quantization": READERS["quantization"],
        "scores": _flag,
    }
)
"""One of ``frozen_models``; what ``model`` and ``model_config`` may be, :mod:`.named` knows."""

KNOWN = frozenset({*READERS, *SPECIAL})
