"""Settings by the names that transformers, TRL and PEFT give them, whoever says them: Python, a flag, or a key of YAML.

Each setting has the names of its field, the newest first; the value of a field is the setting's where nothing else is
said. :func:`flag_value` makes a value of what a flag says; Python and YAML have values of their own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from lintfit.settings.model import UNKNOWN

if TYPE_CHECKING:
    from lintfit.sources.launchers.flags import Flag

TRAINING: Mapping[str, tuple[str, ...]] = {
    "bf16": ("bf16",),
    "fp16": ("fp16",),
    "micro_batch_size": ("per_device_train_batch_size", "per_gpu_train_batch_size"),
    "gradient_accumulation_steps": ("gradient_accumulation_steps",),
    "optimizer": ("optim",),
    "learning_rate": ("learning_rate",),
    "adam_beta1": ("adam_beta1",),
    "adam_beta2": ("adam_beta2",),
    "adam_epsilon": ("adam_epsilon",),
    "weight_decay": ("weight_decay",),
    "max_grad_norm": ("max_grad_norm",),
    "warmup_steps": ("warmup_steps",),
    "warmup_ratio": ("warmup_ratio",),
    "deepspeed": ("deepspeed",),
    "fsdp": ("fsdp",),
    "packing": ("packing",),
    "num_generations": ("num_generations",),
    "max_completion_length": ("max_completion_length",),
    "max_prompt_length": ("max_prompt_length",),
    "use_vllm": ("use_vllm",),
    "vllm_mode": ("vllm_mode",),
    "vllm_device": ("vllm_device",),
    "vllm_gpu_memory_utilization": ("vllm_gpu_memory_utilization",),
    "vllm_enable_sleep_mode": ("vllm_enable_sleep_mode",),
    "steps_per_generation": ("steps_per_generation",),
    "ds3_gather_for_generation": ("ds3_gather_for_generation",),
    "beta": ("beta",),
    "response_length": ("response_length",),
    "rollout_batch_size": ("local_rollout_forward_batch_size",),
    "mini_batches": ("num_mini_batches",),
}
"""Fields of ``TrainingArguments`` and of TRL's configs."""

EVALUATION: Mapping[str, tuple[str, ...]] = {
    "eval_batch_size": ("per_device_eval_batch_size", "per_gpu_eval_batch_size"),
    "eval_accumulation_steps": ("eval_accumulation_steps",),
    "eval_do_concat_batches": ("eval_do_concat_batches",),
    "predict_with_generate": ("predict_with_generate",),
    "generation_num_beams": ("generation_num_beams",),
}
"""Fields of ``TrainingArguments`` and ``Seq2SeqTrainingArguments`` that count where the trainer evaluates."""

ADAPTERS: Mapping[str, tuple[str, ...]] = {
    "lora_rank": ("r", "lora_r", "rank"),
    "lora_targets": ("target_modules", "lora_target_modules"),
    "lora_modules_to_save": ("modules_to_save", "lora_modules_to_save"),
    "lora_dropout": ("lora_dropout",),
    "use_dora": ("use_dora",),
}
"""Fields of ``LoraConfig``, and as TRL's ``ModelConfig`` calls them."""

SEVERAL = frozenset({"lora_target_modules", "lora_modules_to_save", "target_modules", "modules_to_save"})
"""Fields whose flag takes several words. One word alone stays one: TRL's ``ModelConfig`` makes it so."""


def of_text(text: str) -> Any:
    """What a flag's text most likely means for a field whose type is not at hand."""
    lowered = text.lower()
    if lowered in ("true", "false"):
        return lowered == "true"
    if text == "None":
        return None
    for convert_to in (int, float):
        try:
            return convert_to(text)
        except ValueError:
            continue
    return text


def flag_value(flag: Flag) -> Any:
    """What a flag hands to a field whose type is not at hand; ``UNKNOWN`` for what the shell alone knows."""
    if flag.value is None:
        return True
    if flag.name in SEVERAL and len(flag.words) > 1:
        return [of_text(word) for word in flag.words]
    return UNKNOWN if "$" in flag.value else of_text(flag.value)


def field_of(flag: str, fields: Collection[str]) -> str | None:
    """The one of a class's fields that a flag fills: its own, the one that ``no_`` negates, or the one it begins."""
    if flag in fields:
        return flag
    if flag.startswith("no_") and flag[3:] in fields:
        return flag[3:]
    return begun_by(flag, fields)


def begun_by(flag: str, fields: Iterable[str]) -> str | None:
    """The field that an abbreviation stands for in a run that starts: of several the one that all others begin with.

    ``fields`` may be those of several releases: ``--gradient_checkpoint`` was short for the field until 4.35 of
    transformers had a ``gradient_checkpointing_kwargs`` beside it; since then argparse takes it for neither.
    """
    begun = sorted((field for field in fields if field.startswith(flag)), key=len)
    return begun[0] if begun and all(field.startswith(begun[0]) for field in begun) else None
