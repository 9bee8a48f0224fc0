"""``estimate --spec``: from one JSON object to a :class:`~lintfit.memory.spec.Spec`, with one-line errors.

The keys are the contract's; what is missing takes the libraries' defaults and stays out of ``Spec.stated``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from lintfit.catalog import gpus, models
from lintfit.catalog.facts import Gpu, ModelFacts
from lintfit.errors import LintfitError
from lintfit.memory import deepspeed_values, litgpt
from lintfit.memory.contradictions import SpecError, consistent, shown
from lintfit.memory.optimizers import TABLE
from lintfit.memory.parameters import frozen_beside
from lintfit.memory.spec import (
    FSDP_GATHERS,
    GIB,
    KERNELS,
    LARGEST_COUNT,
    LARGEST_SEQUENCE,
    ROLLOUT_BATCH,
    Fsdp,
    Generation,
    Spec,
)
from lintfit.suggest import nearest

Read = Callable[[str, Any], Any]


DEFAULT_SEQUENCE = 2048
TRL_COMPLETION = 256
"""``GRPOConfig.max_completion_length``."""
TRL_RESPONSE = 53
"""``PPOConfig.response_length``."""
HF_BATCH = 8
"""``TrainingArguments.per_device_train_batch_size``."""


def spec_from_mapping(obj: Mapping[str, Any]) -> Spec:
    """The spec that a JSON object describes.

    Raises :class:`SpecError` for an unknown key, a value out of range, an unknown model or GPU, and settings
    that contradict each other; the message names the key, the value and what is allowed.
    """
    if not isinstance(obj, (dict, Mapping)):
        raise SpecError(f"spec: must be a JSON object, got {shown(obj)}")
    for key in obj:
        if key not in READERS and key not in SPECIAL:
            raise SpecError(f"{key}: unknown key{_meant(str(key), (*READERS, *SPECIAL))}")
    values: dict[str, Any] = {}
    for key, value in obj.items():
        if key not in SPECIAL and (value is not None or key in NULLABLE):
            values[key] = READERS[key](key, value)
    if litgpt.meant(values):
        values["front_end"] = "litgpt"
        if "litgpt" not in values.get("versions", {}):
            values["versions"] = {**litgpt.PINNED, **values.get("versions", {})}
    facts = _facts(obj)
    for key in ("reward_model", "value_model"):
        if obj.get(key) is not None:
            values[key] = _other_model(key, obj[key])
    if values.get("front_end") == "litgpt":
        facts = litgpt.as_built(facts)
    gpu = _gpu(obj)
    stated = frozenset(key for key, value in obj.items() if value is not None)
    if "gpu_memory_gib" in values:
        values["capacity_bytes"] = int(values.pop("gpu_memory_gib") * GIB)
    elif gpu is not None:
        values["capacity_bytes"] = gpu.usable_bytes
    if "host_memory_gib" in values:
        values["host_memory_bytes"] = int(values.pop("host_memory_gib") * GIB)
    for key in ("images", "image_patches", "image_tiles"):
        if values.get(key) and facts.vision is None:
            raise SpecError(
                f"{key}: {values[key]} needs a vision-language model; {facts.name or facts.model_type} is none"
            )
    deepspeed_values.check(values)
    if "gpus" not in values and gpu is not None:
        cards = gpus.stated_count(obj["gpu"])
        if cards is not None:
            if cards == 0:
                raise SpecError(f"gpu: {shown(obj['gpu'])} states no card; a run has one at least")
            values["gpus"] = cards * values.get("nodes", 1)
    for name in values.get("frozen_modules", ()):
        if not frozen_beside(facts, (name,)):
            model = facts.name or facts.model_type
            raise SpecError(
                f"frozen_modules: {name!r} must be a part of the image encoder of {model}, or of what follows it"
            )
    _complete(values, facts)
    consistent(values, facts)
    return Spec(facts=facts, gpu=gpu, stated=stated, **values)


def _complete(values: dict[str, Any], facts: ModelFacts) -> None:
    """Fill in what the libraries default to, by version."""
    versions = values.get("versions", {})
    modern = _major(versions.get("transformers", "5")) >= 5
    section = values.get("deepspeed_config", {}).get("zero_optimization")
    zero = section if section is not None and isinstance(section, Mapping) else {}
    if "method" not in values and any(key.startswith("lora_") for key in values):
        values["method"] = "lora"
    if "engine" not in values:
        sharded = bool(values.get("zero_stage")) or "deepspeed_config" in values
        plain = "ddp" if values.get("gpus", 1) > 1 else "single"
        values["engine"] = "deepspeed" if sharded else "fsdp" if values.get("fsdp") else plain
    if values["engine"] == "deepspeed":
        if "zero_stage" not in values:
            values["zero_stage"] = _choice(0, 1, 2, 3)("deepspeed_config.zero_optimization.stage", zero.get("stage", 0))
        for key in ("offload_optimizer", "offload_param"):
            part = zero.get(key)
            if key not in values and isinstance(part, Mapping):
                where = f"deepspeed_config.zero_optimization.{key}.device"
                values[key] = _choice("none", "cpu", "nvme")(where, part.get("device", "none"))
    if values["engine"] == "fsdp" and values.get("fsdp") is None:
        values["fsdp"] = Fsdp()
    if "weights_dtype" not in values:
        checkpoint = facts.checkpoint_dtype if facts.checkpoint_dtype in ("fp32", "bf16", "fp16") else "bf16"
        values["weights_dtype"] = checkpoint if modern else "fp32"
    if values.get("front_end") == "litgpt":
        values.setdefault("lora_dtype", values["weights_dtype"])
        values.setdefault("lora_dropout", litgpt.DROPOUT)
    values.setdefault("micro_batch_size", HF_BATCH)
    longest = facts.max_positions or DEFAULT_SEQUENCE
    values.setdefault("seq_len", min(DEFAULT_SEQUENCE, longest))
    values.setdefault("optimizer", "adamw_torch_fused" if modern else "adamw_torch")
    values.setdefault("use_reentrant", not modern)
    # TRL makes a reference model where none is handed in, unless adapters can be switched off for it.
    refers = values.get("trainer") in ("dpo", "kto", "ppo") and values.get("method", "full") == "full"
    values.setdefault("reference_model", refers)
    if values.get("trainer") in ("grpo", "rloo") and values.get("generation") is None:
        values["generation"] = Generation(completion_len=min(TRL_COMPLETION, values["seq_len"]))
    if values.get("trainer") == "ppo":
        # Prompts of several lengths are padded on the left, and every forward gets the mask.
        values.setdefault("padded_batches", True)
        if values.get("generation") is None:
            values["generation"] = Generation(completion_len=min(TRL_RESPONSE, values["seq_len"]))


def _other_model(key: str, value: Any) -> ModelFacts:
    """A model beside the trained one: an id, or a config.json's content."""
    try:
        return _facts({"model_config": value} if isinstance(value, Mapping) else {"model": value})
    except SpecError as error:
        raise SpecError(f"{key}: {str(error).partition(': ')[2]}") from error


def _facts(obj: Mapping[str, Any]) -> ModelFacts:
    config, model = obj.get("model_config"), obj.get("model")
    if config is not None:
        if not isinstance(config, (dict, Mapping)):
            raise SpecError(f"model_config: {shown(config)} is not the content of a config.json (a JSON object)")
        return _from_config(config, model if isinstance(model, str) else "")
    if model is None:
        raise SpecError("model: missing; give a Hugging Face id as model, or a config.json's content as model_config")
    if not isinstance(model, str) or not model.strip():
        raise SpecError(f"model: {shown(model)} is not a Hugging Face id such as 'Qwen/Qwen2.5-7B'")
    try:
        facts = _named(model)
    except LintfitError as error:
        raise SpecError(f"model: {error}") from error
    if facts is None:
        close = models.suggest(model)
        hint = f" (did you mean '{close}'?)" if close else ""
        raise SpecError(f"model: {shown(model)} is not known{hint}; give its config.json's content as model_config")
    return facts


@lru_cache(maxsize=1024)
def _named(model: str) -> ModelFacts | None:
    """A model by its name or folder, looked for once."""
    return models.find(model)


_KNOWN: dict[str, ModelFacts] = {}
_KNOWN_LIMIT = 512


def _from_config(config: Mapping[str, Any], name: str) -> ModelFacts:
    """Facts of a config, the same object for the same config: what is counted of a model is counted once."""
    try:
        key = json.dumps([name, config], sort_keys=True)
    except (TypeError, ValueError) as error:
        raise SpecError(f"model_config: not the content of a config.json ({error})") from error
    if key not in _KNOWN:
        if len(_KNOWN) >= _KNOWN_LIMIT:
            _KNOWN.clear()
        try:
            _KNOWN[key] = models.from_config(config, name)
        except LintfitError as error:
            raise SpecError(f"model_config: {error}") from error
    return _KNOWN[key]


def _gpu(obj: Mapping[str, Any]) -> Gpu | None:
    name = obj.get("gpu")
    if name is None:
        return None
    if not isinstance(name, str):
        raise SpecError(f"gpu: {shown(name)} is not a GPU's name such as 'RTX 3090'")
    found = gpus.lookup(name)
    if found is None:
        close = gpus.suggest(name)
        hint = f" (did you mean '{close}'?)" if close else ""
        if obj.get("gpu_memory_gib") is not None:
            return None
        raise SpecError(f"gpu: {shown(name)} is not known{hint}; give its memory as gpu_memory_gib")
    return found


# -- values ---------------------------------------------------------------------------------------------------


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
        if not fine or (exclusive and value == least):
            bound = f"above {least:g}" if exclusive else f"from {least:g}"
            raise SpecError(f"{key}: {shown(value)} must be a number {bound} to {most:g}")
        return float(value)

    return read


def _choice(*allowed: Any) -> Read:
    def read(key: str, value: Any) -> Any:
        for choice in allowed:
            if value == choice and type(value) is type(choice):
                return choice
        words = ", ".join(_json(choice) for choice in allowed)
        raise SpecError(f"{key}: {shown(value)} must be one of {words}")

    return read


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
    if not isinstance(value, (dict, Mapping)):
        raise SpecError(f"{key}: {shown(value)} must be a JSON object")
    return value


def _versions(key: str, value: Any) -> Mapping[str, str]:
    for name, version in _mapping(key, value).items():
        if not isinstance(version, str):
            raise SpecError(f"{key}.{name}: {shown(version)} must be a string such as '4.48.1'")
        if not version.lstrip("v")[:1].isdigit():
            raise SpecError(f"{key}.{name}: {shown(version)} must be a version such as '4.48.1'")
    return dict(value)


def _fsdp(key: str, value: Any) -> Fsdp | None:
    if value is None:
        return None
    for name in _mapping(key, value):
        if name not in ("version", "strategy", "cpu_offload"):
            raise SpecError(f"{key}.{name}: unknown key{_meant(name, ('version', 'strategy', 'cpu_offload'))}")
    strategy = _choice(*FSDP_GATHERS, "_HYBRID_SHARD_ZERO2")(f"{key}.strategy", value.get("strategy", "FULL_SHARD"))
    return Fsdp(
        version=_choice(1, 2)(f"{key}.version", value.get("version", 1)),
        strategy=strategy.lstrip("_"),
        cpu_offload=_flag(f"{key}.cpu_offload", value.get("cpu_offload", False)),
    )


def _generation(key: str, value: Any) -> Generation | None:
    if value is None:
        return None
    known = (
        "completion_len",
        "vllm_gpu_memory_utilization",
        "gather_weights",
        "steps_per_generation",
        "vllm_sleeps",
        "rollout_batch_size",
        "mini_batches",
    )
    steps = value.get("steps_per_generation") if isinstance(value, Mapping) else None
    for name in _mapping(key, value):
        if name not in known:
            raise SpecError(f"{key}.{name}: unknown key{_meant(name, known)}")
    return Generation(
        completion_len=_count(most=LARGEST_SEQUENCE)(f"{key}.completion_len", value.get("completion_len", 256)),
        vllm_gpu_memory_utilization=_amount(0, 1)(
            f"{key}.vllm_gpu_memory_utilization", value.get("vllm_gpu_memory_utilization", 0.0)
        ),
        gather_weights=_flag(f"{key}.gather_weights", value.get("gather_weights", False)),
        steps_per_generation=None if steps is None else _count()(f"{key}.steps_per_generation", steps),
        vllm_sleeps=_flag(f"{key}.vllm_sleeps", value.get("vllm_sleeps", False)),
        rollout_batch_size=_count()(f"{key}.rollout_batch_size", value.get("rollout_batch_size", ROLLOUT_BATCH)),
        mini_batches=_count()(f"{key}.mini_batches", value.get("mini_batches", 1)),
    )


def _optimizer(key: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise SpecError(f"{key}: {shown(value)} must be an optimizer's name such as 'adamw_torch'")
    meant = nearest(value, TABLE) if value.lower() not in TABLE else None
    if meant is not None:
        raise SpecError(f"{key}: {shown(value)} is no optimizer that is known (did you mean '{meant}'?)")
    return value


def _major(version: str) -> int:
    head = version.partition(".")[0]
    return int(head) if head.isdigit() else 5


SPECIAL = ("model", "model_config", "gpu", "reward_model", "value_model")
NULLABLE = frozenset({"quantization", "fsdp", "lora_targets", "generation"})
DTYPES = _choice("fp32", "bf16", "fp16")

READERS: Mapping[str, Read] = {
    "gpu_memory_gib": _amount(0, 2**16, exclusive=True),
    "gpus": _count(),
    "nodes": _count(),
    "host_memory_gib": _amount(0, 2**20, exclusive=True),
    "engine": _choice("single", "ddp", "deepspeed", "fsdp"),
    "zero_stage": _choice(0, 1, 2, 3),
    "offload_optimizer": _choice("none", "cpu", "nvme"),
    "offload_param": _choice("none", "cpu", "nvme"),
    "deepspeed_config": _mapping,
    "fsdp": _fsdp,
    "tensor_parallel": _count(),
    "pipeline_parallel": _count(),
    "sequence_parallel": _count(),
    "expert_parallel": _count(),
    "weights_dtype": DTYPES,
    "mixed_precision": _choice("no", "bf16", "fp16"),
    "method": _choice("full", "lora"),
    "lora_rank": _count(),
    "lora_targets": _targets,
    "lora_modules_to_save": _names,
    "frozen_modules": _names,
    "lora_dtype": DTYPES,
    "lora_dropout": _amount(0, 1),
    "use_dora": _flag,
    "quantization": _choice(None, "nf4", "nf4-double", "int8", "gptq-int4", "gptq-int8"),
    "optimizer": _optimizer,
    "optimizer_in_backward": _flag,
    "micro_batch_size": _count(),
    "gradient_accumulation_steps": _count(),
    "seq_len": _count(most=LARGEST_SEQUENCE),
    "gradient_checkpointing": _choice(True, False, "selective"),
    "use_reentrant": _flag,
    "activation_offload": _flag,
    "attention": _choice("eager", "sdpa", "flash_attention_2"),
    "padded_batches": _flag,
    "loss": _choice("full", "chunked", "liger"),
    "use_cache": _flag,
    "max_grad_norm": _amount(0, float("inf")),
    "trainer": _choice("causal-lm", "dpo", "kto", "orpo", "cpo", "reward", "grpo", "rloo", "ppo"),
    "front_end": _choice("transformers", "litgpt"),
    "fused_kernels": _kernels,
    "kbit_upcast": _choice("none", "norms", "all"),
    "reference_model": _flag,
    "generation": _generation,
    "images": _count(0),
    "image_patches": _count(most=LARGEST_SEQUENCE),
    "image_tiles": _count(),
    "versions": _versions,
}
