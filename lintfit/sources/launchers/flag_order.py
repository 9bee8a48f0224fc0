"""Where a new flag goes in a launch line: behind those that people write it with."""

from __future__ import annotations

from collections.abc import Mapping

from lintfit.documents.shell_words import Word
from lintfit.sources.launchers.command_line import Invocation

_RELATIVES: Mapping[str, tuple[str, ...]] = {
    "eval_accumulation_steps": ("per_device_eval_batch_size",),
    "gradient_accumulation_steps": ("per_device_train_batch_size", "per_device_eval_batch_size"),
    "gradient_checkpointing_kwargs": ("gradient_checkpointing",),
    "lora_alpha": ("lora_r", "lora_rank"),
    "lora_dropout": ("lora_r", "lora_rank", "lora_alpha"),
    "lora_target_modules": ("use_peft", "lora_r", "lora_alpha", "lora_dropout"),
    "per_device_eval_batch_size": ("per_device_train_batch_size",),
    "torch_dtype": ("model_name_or_path",),
}
"""A new flag goes behind the last of these that the command has."""


def behind(invocation: Invocation, name: str) -> Word | None:
    """The word behind which a new flag goes; None where it goes to the end: the command has no relative of it, or not
    in words of its own."""
    relatives = _RELATIVES.get(name, ())
    last = next((option for option in reversed(invocation.arguments) if option.name in relatives), None)
    if last is None:
        return None
    return (last.flag, *last.words)[-1] if last.flag.editable and not last.flag.moved else None
