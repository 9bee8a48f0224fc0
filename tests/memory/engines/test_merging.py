"""Adapters that are merged on the host."""

from __future__ import annotations

from typing import Any

import pytest

from lintfit.memory import estimate
from lintfit.memory.reading.parse import spec_from_mapping
from lintfit.memory.result import Estimate

LLAMA_70B, LARGEST = 70_553_706_496, 8192 * 28672
EMBEDDINGS = 2 * 128256 * 8192
"""Input and output embeddings, which have no adapters."""


def found(**more: Any) -> Estimate:
    run = {"model": "meta-llama/Meta-Llama-3-70B", "method": "lora", "lora_rank": 16, "lora_targets": "all-linear"}
    return estimate(spec_from_mapping({**run, "weights_dtype": "bf16", "merges": True, **more}))


def test_one_matrix_after_the_other() -> None:
    """Two fp32 tensors of the largest matrix beside all weights."""
    assert found().host.merge == pytest.approx(2 * LLAMA_70B + 8 * LARGEST, rel=1e-4)
    assert found().host.peak == found().host.merge and found(merges=False).host.merge == 0


@pytest.mark.parametrize(("version", "wider"), [("0.9.0", 0), ("0.10.0", 2), ("0.11.1", 2), ("0.12.0", 0), (None, 0)])
def test_versions_that_widen(version: str | None, wider: int) -> None:
    versions = {"versions": {"peft": version}} if version is not None else {}
    more = found(**versions).host.merge - found().host.merge
    assert more == pytest.approx(wider * (LLAMA_70B - EMBEDDINGS), rel=1e-3)


def test_adapters_in_16_bits_widen_nothing() -> None:
    assert found(lora_dtype="bf16", versions={"peft": "0.11.1"}).host.merge == found().host.merge


def test_nothing_to_merge_without_adapters() -> None:
    whole = {"model": "gpt2", "merges": True}
    assert estimate(spec_from_mapping(whole)).host.merge == 0
