"""Peaks against ``torch.cuda.max_memory_allocated`` of real runs on A100 (fms-acceleration's benchmark).

The specs are those of :mod:`bench.published`: what the benchmark's own files say beside the published specs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench.published import as_told
from lintfit.memory import estimate
from lintfit.memory.framework import CUBLAS
from lintfit.memory.reading.parse import spec_from_mapping
from lintfit.memory.spec import GIB

DATA = Path(__file__).parents[3] / "shared/data/published.dev.jsonl"

pytestmark = pytest.mark.skipif(not DATA.exists(), reason="the published measurements are not here")


def rows() -> Iterator[dict[str, Any]]:
    for line in DATA.read_text().splitlines():
        row = json.loads(line)
        if row["id"].startswith("fms-"):
            yield row


def test_peaks_are_exact_where_the_spec_says_what_ran() -> None:
    """Full and LoRA, unquantised, nf4 and GPTQ, own kernels and the model's, on one GPU and under FSDP 1."""
    found = {
        row["id"]: (estimate(as_told(row)).allocated_bytes + CUBLAS) / (row["measured_peak_gib"] * GIB) - 1
        for row in rows()
    }
    assert len(found) >= 150
    errors = sorted(abs(size) for size in found.values())
    assert errors[len(errors) // 2] <= 0.001
    assert errors[int(0.95 * len(errors))] <= 0.01
    assert errors[-1] <= 0.03, max(found, key=lambda name: abs(found[name]))


def test_what_the_spec_does_not_say_stays_inside_the_range() -> None:
    """TRL's cast of the norms to fp32 before training on 4-bit weights: up to a quarter more."""
    for row in rows():
        if "baseline-peft-bnb" in row["id"] and "1gpu" in row["id"]:
            spec = spec_from_mapping(row["spec"])
            assert spec.kbit_upcast is None
            assert estimate(spec).peak.high >= row["measured_peak_gib"] * GIB, row["id"]


def test_no_published_peak_is_above_the_range_of_its_spec_alone() -> None:
    """What a spec leaves open (whose chunked loss, which bitsandbytes) widens the range: no wrong ``fits``."""
    for line in DATA.read_text().splitlines():
        row = json.loads(line)
        if "allocated" in row["measure_kind"] or "active" in row["measure_kind"]:
            high = estimate(spec_from_mapping(row["spec"])).peak.high
            assert high >= 0.999 * row["measured_peak_gib"] * GIB, row["id"]
