"""What saving takes where nothing is sharded."""

from __future__ import annotations

from typing import Any

import pytest

from lintfit.memory import estimate
from lintfit.memory.reading.parse import spec_from_mapping
from lintfit.memory.result import Estimate

GIB = 2**30
INT8 = 32 * (4 * 4096 * 4096 + 3 * 4096 * 11008)
"""Bytes of LLaMA-7B's layers in 8 bits."""


def found(**more: Any) -> Estimate:
    """alpaca-lora's run of May 2023."""
    run: dict[str, Any] = {
        "model": "huggyllama/llama-7b",
        "gpu": "T4",
        "method": "lora",
        "lora_rank": 8,
        "lora_targets": ["q_proj", "v_proj"],
        "quantization": "int8",
        "weights_dtype": "fp16",
        "mixed_precision": "fp16",
        "micro_batch_size": 2,
        "seq_len": 256,
        "gradient_checkpointing": True,
        "kbit_upcast": "norms",
        "versions": {"transformers": "4.28.1"},
    }
    return estimate(spec_from_mapping({**run, **more}))


def saved(version: str, **more: Any) -> int:
    versions = {"transformers": "4.28.1", "bitsandbytes": version}
    moments = found(**more, versions=versions).moments
    return next(moment.allocated for moment in moments if moment.phase == "save")


@pytest.mark.parametrize(
    ("version", "copies"), [("0.37.2", 0), ("0.38.0", 2), ("0.38.1", 2), ("0.39.0", 2), ("0.39.1", 0), ("0.43.1", 0)]
)
def test_bitsandbytes_0_38_copies_int8_weights_to_save_them(version: str, copies: int) -> None:
    assert saved(version) - saved("0.37.2") == copies * INT8


@pytest.mark.parametrize("more", [{"gpu": "V100-16GB"}, {"quantization": "nf4"}])
def test_what_has_no_layout_of_its_own_is_not_copied(more: dict[str, Any]) -> None:
    assert saved("0.38.1", **more) == saved("0.37.2", **more)


@pytest.mark.parametrize(
    ("more", "verdict"),
    [
        ({}, "tight"),
        ({"gpu": "V100-16GB"}, "fits"),
        ({"versions": {"transformers": "4.28.1", "bitsandbytes": "0.38.1"}}, "does-not-fit"),
        ({"versions": {"transformers": "4.28.1", "bitsandbytes": "0.37.2"}}, "fits"),
        ({"versions": {"transformers": "4.40.0"}}, "fits"),
    ],
)
def test_a_run_of_those_months_may_die_as_it_saves(more: dict[str, Any], verdict: str) -> None:
    assert str(found(**more).verdict) == verdict
