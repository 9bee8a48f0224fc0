"""Dtypes, kernels and FSDP in the words of training arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from lintfit.settings.model import UNKNOWN
from lintfit.settings.values import Fsdp
from lintfit.sources.training_words import at_least, dtype_of, kernel_of, trainer_fsdp


@pytest.mark.parametrize(
    ("word", "dtype"),
    [("bfloat16", "bf16"), ("torch.float16", "fp16"), ("auto", "auto"), (None, None), ("int4", UNKNOWN), (16, UNKNOWN)],
)
def test_dtype(word: Any, dtype: Any) -> None:
    assert dtype_of(word) == dtype


@pytest.mark.parametrize(
    ("word", "kernel"),
    [
        ("kernels-community/vllm-flash-attn3@main", "flash_attention_2"),
        ("flash_attention_3", "flash_attention_2"),
        ("sdpa", "sdpa"),
        ("kernels-community/paged", "kernels-community/paged"),
        (UNKNOWN, UNKNOWN),
    ],
)
def test_kernel(word: Any, kernel: Any) -> None:
    assert kernel_of(word) == kernel


@pytest.mark.parametrize(
    ("version", "answer"), [(None, True), ("5.0.0", True), ("4.57", False), ("<5", False), ("main", True)]
)
def test_at_least(version: str | None, answer: bool) -> None:
    versions = {"transformers": version} if version is not None else {}
    assert at_least(versions, "transformers", 5) is answer


@pytest.mark.parametrize(
    ("asked", "config", "version", "expected"),
    [
        ("full_shard auto_wrap", {}, "4.57", (Fsdp(1, "FULL_SHARD"), True)),
        (["shard_grad_op", "offload"], {}, "4.57", (Fsdp(1, "SHARD_GRAD_OP", True), None)),
        ("full_shard", {"fsdp_version": 2, "reshard_after_forward": False}, "4.57", (Fsdp(2, "SHARD_GRAD_OP"), None)),
        ("full_shard auto_wrap", {}, "5.9.0", (Fsdp(1, "FULL_SHARD"), True)),
        ("full_shard auto_wrap", {"version": 2}, "5.5.4", (Fsdp(2, "FULL_SHARD"), True)),
        (True, {}, "5.13", (Fsdp(2, "FULL_SHARD"), True)),
        ("", {"auto_wrap_policy": "no_wrap", "cpu_offload": True}, "5.13", (Fsdp(2, "FULL_SHARD", True), False)),
    ],
)
def test_fsdp(asked: Any, config: Mapping[str, Any], version: str, expected: Any) -> None:
    assert trainer_fsdp(asked, config, {"transformers": version}) == expected
