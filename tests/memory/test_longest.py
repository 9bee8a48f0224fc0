"""Samples that differ: the longest decides, and what it takes over the mean is said."""

from __future__ import annotations

from typing import Any

import pytest

from lintfit.memory import estimate
from lintfit.memory.reading.parse import spec_from_mapping
from lintfit.memory.result import Estimate


def found(**more: Any) -> Estimate:
    run = {"model": "Qwen/Qwen2.5-0.5B", "gpu": "RTX 4090", "micro_batch_size": 4, "seq_len": 4096}
    return estimate(spec_from_mapping({**run, **more}))


def test_the_longest_decides() -> None:
    alone, both, mean = found(), found(mean_seq_len=512), found(seq_len=512)
    assert both.peak == alone.peak and both.verdict == alone.verdict
    (line,) = [line for line in both.assumptions if line.startswith("longest sample: ")]
    assert f"4,096 tokens take {alone.peak.likely / 2**30:.1f} GiB" in line
    assert f"the mean of 512 takes {mean.peak.likely / 2**30:.1f}" in line


@pytest.mark.parametrize(("longest", "says"), [(1024, "no leak"), (16384, "the run dies at the first that has it")])
def test_whether_it_is_the_end(longest: int, says: str) -> None:
    (line,) = [line for line in found(seq_len=longest, mean_seq_len=256).assumptions if line.startswith("longest")]
    assert says in line


def test_nothing_is_said_of_samples_of_one_length() -> None:
    assert found(mean_seq_len=4096).assumptions == found().assumptions
