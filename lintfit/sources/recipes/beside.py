"""Where a new key goes in a recipe that is not sorted: behind those that people write it with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.documents.model import DataDocument, Edit, FileEdit, Span
from lintfit.documents.patterns import lazy_pattern
from lintfit.documents.yaml_edits import sorted_around
from lintfit.documents.yaml_edits import truth as yaml_word

# fmt: off
_RELATIVES: Mapping[str, tuple[str, ...]] = {
    "adapter": ("base_model", "load_in_4bit", "load_in_8bit"),
    "attn_implementation": ("sample_packing", "sequence_len", "model_name_or_path", "torch_dtype", "dtype"),
    "deepspeed": (
        "gradient_checkpointing", "gradient_checkpointing_kwargs", "finetuning_type", "lora_rank", "lora_target",
    ),
    "dtype": ("model_name_or_path", "model_revision"),
    "enable_liger_kernel": ("flash_attn", "trust_remote_code", "model_name_or_path"),
    "eval_batch_size": ("micro_batch_size",),
    "eval_accumulation_steps": ("per_device_eval_batch_size",),
    "flash_attention": ("sample_packing", "sequence_len"),
    "fp16": ("bf16",),
    "fsdp_cpu_offload": ("enable_activation_checkpointing", "enable_activation_offloading"),
    "gradient_accumulation_steps": ("per_device_train_batch_size", "micro_batch_size"),
    "gradient_checkpointing": ("bf16", "fp16", "tf32"),
    "load_in_4bit": ("adapter", "load_in_8bit", "use_peft"),
    "load_in_8bit": ("load_in_4bit", "adapter"),
    "lora_alpha": ("lora_r",),
    "lora_dropout": ("lora_r", "lora_alpha"),
    "lora_r": ("adapter",),
    "lora_rank": ("finetuning_type", "lora_target"),
    "lora_target_linear": ("lora_r", "lora_alpha", "lora_dropout"),
    "lora_target_modules": ("use_peft", "lora_r", "lora_alpha"),
    "optimizer": ("micro_batch_size", "gradient_accumulation_steps"),
    "per_device_eval_batch_size": ("per_device_train_batch_size",),
    "pure_bf16": ("bf16",),
    "sequence_len": ("micro_batch_size",),
    "torch_dtype": ("model_name_or_path", "model_revision"),
    "use_bnb_nested_quant": ("load_in_4bit", "use_peft"),
    "use_liger_kernel": ("gradient_checkpointing", "gradient_checkpointing_kwargs", "bf16", "fp16"),
    "use_peft": ("model_name_or_path", "torch_dtype", "dtype", "attn_implementation"),
}
# fmt: on
"""A new key goes behind the last of these that the recipe has."""

_PLAIN = lazy_pattern(r"[A-Za-z_][\w./-]*")
"""Words that YAML needs no quotes for."""
_NOT_WORDS = frozenset({"yes", "no", "on", "off", "true", "false", "null", "y", "n"})


def beside_relatives(document: DataDocument, key: str, value: Any) -> tuple[FileEdit, ...] | None:
    """The line of a new key behind the last of its relatives that stands on a line of its own; None for no such,
    or where it is one of sorted keys among which the new one has its place."""
    root = document.root
    plain = isinstance(value, bool | int | float) or (
        isinstance(value, str) and _PLAIN.fullmatch(value) is not None and value.lower() not in _NOT_WORDS
    )
    if root is None or root.shape != "mapping" or document.text.lstrip().startswith("{") or not plain:
        return None
    text, ends = document.text, []
    for entry in root.entries:
        if entry.key == key:
            return None
        nested = entry.value.shape == "mapping" and "{" not in document.slice(entry.value.span)
        if entry.key in _RELATIVES.get(key, ()) and (nested or entry.value.shape == "scalar"):
            ends.append((entry.key, entry.key_span, max(entry.key_span.end, entry.value.span.end), nested))
    if not ends:
        return None
    relative, span, end, nested = max(ends, key=lambda each: each[2])
    if relative in sorted_around(document, key):
        return None
    line = text.find("\n", end)
    begins = text.rfind("\n", 0, span.start) + 1
    if line < 0 or ("\n" in text[span.start : end] and not nested) or begins != span.start:
        return None
    newline = "\r\n" if text[line - 1 : line] == "\r" else "\n"
    word = yaml_word(value, document) if isinstance(value, bool) else str(value)
    return (FileEdit(document.path, Edit(Span(line + 1, line + 1), f"{key}: {word}{newline}"), document),)
