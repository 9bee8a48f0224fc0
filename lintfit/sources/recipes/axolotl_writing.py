"""Where a new key goes in a recipe: behind those that people write it with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.documents.model import DataDocument, Edit, FileEdit, Span
from lintfit.documents.patterns import lazy_pattern
from lintfit.sources.recipes.keys import spelled

_RELATIVES: Mapping[str, tuple[str, ...]] = {
    "adapter": ("base_model", "load_in_4bit", "load_in_8bit"),
    "attn_implementation": ("sample_packing", "sequence_len"),
    "deepspeed": ("gradient_checkpointing",),
    "flash_attention": ("sample_packing", "sequence_len"),
    "fp16": ("bf16",),
    "gradient_checkpointing": ("bf16", "fp16", "tf32"),
    "load_in_4bit": ("adapter", "load_in_8bit"),
    "load_in_8bit": ("load_in_4bit", "adapter"),
    "lora_alpha": ("lora_r",),
    "lora_dropout": ("lora_r", "lora_alpha"),
    "lora_r": ("adapter",),
    "lora_target_linear": ("lora_r", "lora_alpha", "lora_dropout"),
    "optimizer": ("micro_batch_size", "gradient_accumulation_steps"),
    "sequence_len": ("micro_batch_size",),
}
"""A new key goes behind the last of these that the recipe has."""

_PLAIN = lazy_pattern(r"[A-Za-z_][\w./-]*")
"""Words that YAML needs no quotes for."""
_NOT_WORDS = frozenset({"yes", "no", "on", "off", "true", "false", "null", "y", "n"})


def beside_relatives(document: DataDocument, key: str, value: Any) -> tuple[FileEdit, ...] | None:
    """The line of a new key behind the last of its relatives that stands on a line of its own; None for no such."""
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
        if entry.key in _RELATIVES.get(key, ()) and entry.value.shape == "scalar":
            ends.append((entry.key_span, max(entry.key_span.end, entry.value.span.end)))
    if not ends:
        return None
    span, end = max(ends, key=lambda each: each[1])
    line = text.find("\n", end)
    begins = text.rfind("\n", 0, span.start) + 1
    if line < 0 or "\n" in text[span.start : end] or begins != span.start:
        return None
    newline = "\r\n" if text[line - 1 : line] == "\r" else "\n"
    return (FileEdit(document.path, Edit(Span(line + 1, line + 1), f"{key}: {spelled(value)}{newline}"), document),)
