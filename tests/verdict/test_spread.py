"""What decides a tight run: the causes of its range, with the GiB by which the estimate moves where they are stated."""

from __future__ import annotations

from lintfit.frozen import replace
from lintfit.memory import estimate
from lintfit.memory.reading.parse import spec_from_mapping
from lintfit.memory.spec import GIB
from lintfit.memory.verdict.causes import causes
from lintfit.verdict.spread import spread

GRPO = {
    "model": "Qwen/Qwen3-4B",
    "method": "lora",
    "trainer": "grpo",
    "weights_dtype": "bf16",
    "micro_batch_size": 16,
    "seq_len": 2048,
    "gradient_checkpointing": True,
    "gpu": "RTX 3090",
}


def test_an_unstated_version_is_the_cause_and_stating_it_moves_the_peak_by_as_much() -> None:
    spec = spec_from_mapping(GRPO)
    result = estimate(spec)
    first = spread(spec, result.peak.likely)[0]
    assert first.what == "the version of trl is not stated"
    assert first.how == "--versions trl=VERSION"
    (cause,) = [each for each in causes(spec) if each.names == ("trl",)]
    older = estimate(replace(spec, versions={**spec.versions, "trl": "1.13"}))
    assert cause.bytes == older.allocated_bytes - result.allocated_bytes > GIB
    assert first.said() == f"the version of trl is not stated (+{cause.bytes / GIB:.1f}): --versions trl=VERSION"


def test_what_is_stated_is_no_cause() -> None:
    spec = spec_from_mapping({**GRPO, "versions": {"trl": "1.15"}})
    assert all("trl" not in cause.names for cause in causes(spec))
    assert spread(spec, estimate(spec).peak.likely)[0].what == "gaps in torch's allocator"


def test_no_more_than_two_and_none_that_weighs_nothing() -> None:
    spec = spec_from_mapping(GRPO)
    peak = estimate(spec).peak.likely
    assert 1 <= len(spread(spec, peak)) <= 2
    assert spread(spec, 1000 * peak) == ()
