"""The caching allocator's algorithm, and that what it needs is what lintfit plans for."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.allocator import MIB, Allocator, Birth, OutOfMemory, Recording, play, smallest, survives
from lintfit.memory import estimate
from lintfit.memory.framework import context
from lintfit.memory.reading.parse import spec_from_mapping
from tests.support import ROOT

RECORDING = ROOT / "bench" / "results" / "allocator.json"


@pytest.mark.parametrize(
    ("size", "segment"),
    [(1, 2 * MIB), (MIB, 2 * MIB), (MIB + 1, 20 * MIB), (10 * MIB - 512, 20 * MIB), (10 * MIB, 10 * MIB),
     (10 * MIB + 1, 12 * MIB), (33 * MIB, 34 * MIB)],
)  # fmt: skip
def test_segments_are_those_of_torch(size: int, segment: int) -> None:
    allocator = Allocator()
    allocator.allocate(size)
    assert allocator.reserved == segment


def test_a_large_block_is_given_whole_where_less_than_a_small_one_would_be_left() -> None:
    allocator = Allocator()
    allocator.release(allocator.allocate(32 * MIB))
    assert allocator.allocate(31 * MIB).size == 32 * MIB


def test_the_best_fit_is_split_and_joined_again() -> None:
    allocator = Allocator()
    large, kept, small = (allocator.allocate(size * MIB) for size in (64, 16, 32))
    allocator.release(large)
    allocator.release(small)
    first, second = allocator.allocate(24 * MIB), allocator.allocate(8 * MIB)
    assert (first.address, second.address) == (small.address, small.address + 24 * MIB)
    allocator.release(first)
    allocator.release(second)
    assert allocator.allocate(32 * MIB).address == small.address
    assert allocator.reserved == 112 * MIB
    assert kept.size == 16 * MIB


def test_a_full_card_gives_back_whole_segments_before_it_fails() -> None:
    allocator = Allocator(64 * MIB)
    allocator.release(allocator.allocate(40 * MIB))
    held = allocator.allocate(50 * MIB)
    assert allocator.reserved == 50 * MIB
    with pytest.raises(OutOfMemory):
        allocator.allocate(16 * MIB)
    allocator.release(held)
    allocator.allocate(16 * MIB)
    with pytest.raises(OutOfMemory):
        allocator.allocate(49 * MIB)


@given(st.lists(st.tuples(st.integers(1, 40 * MIB), st.integers(0, 5)), max_size=60))
def test_blocks_do_not_overlap_and_nothing_is_lost(requests: list[tuple[int, int]]) -> None:
    allocator = Allocator()
    held = []
    for size, age in requests:
        held.append(allocator.allocate(size))
        if len(held) > age:
            allocator.release(held.pop(age))
        places = sorted((block.address, block.address + block.size) for block in held)
        assert all(before[1] <= after[0] for before, after in pairwise(places))
        assert allocator.allocated == sum(block.size for block in held) <= allocator.reserved
    for block in held:
        allocator.release(block)
    assert allocator.allocated == 0
    allocator.capacity = 0
    with pytest.raises(OutOfMemory):
        allocator.allocate(1 << 40)
    assert allocator.reserved == 0


def test_batches_of_any_length_need_more_than_batches_of_one() -> None:
    """Two tensors take turns, of 16 and 24 KiB a token: blocks of short batches are too small for longer ones."""
    passes = [Birth(1, 0, 16 * 1024), 1, Birth(2, 0, 24 * 1024), 2]
    recording = Recording([Birth(0, 100 * MIB, 0)], (passes, []), (passes, []))
    allocated, reserved, card = smallest(recording, [1024] * 5)
    assert (allocated, reserved, card) == (124 * MIB, 140 * MIB, pytest.approx(124 * MIB, rel=0.01))
    _, reserved, card = smallest(recording, [400, 700, 500, 900, 1024])
    assert reserved > 140 * MIB
    assert card == pytest.approx(124 * MIB, rel=0.01)
    assert not survives(recording, 124 * MIB - 1, [1024])


def test_a_step_starts_with_what_the_last_one_left() -> None:
    recording = Recording([], ([Birth(0, MIB * 32, 0)], []), ([], [0]))
    allocator = Allocator()
    play(recording, allocator, [1, 1])
    assert (allocator.allocated, allocator.reserved) == (0, 32 * MIB)


@pytest.mark.skipif(not RECORDING.is_file(), reason="nothing recorded")
def test_what_lintfit_plans_for_is_enough() -> None:
    recording = json.loads(RECORDING.read_text())
    versions = {"transformers": recording["versions"]["transformers"]}
    assert len(recording["cases"]) >= 7
    for case in recording["cases"]:
        spec = spec_from_mapping({**case["spec"], "versions": versions})
        planned = estimate(spec).peak.high - context(spec).high
        assert planned >= max(case["smallest"], case["any_smallest"]), case["name"]
