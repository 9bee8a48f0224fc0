"""What torch's caching allocator needs beside the tensors: its algorithm, fed with the allocations of real steps.

    python -m bench.allocator --out bench/results/allocator.json     # record (needs the bench extra)
    python -m bench.allocator --compare bench/results/allocator.json # against lintfit, no torch

``bench.fake_tensors`` notes birth and death of every storage of a real training step. Here they go through the
allocator of ``c10/cuda/CUDACachingAllocator.cpp`` (torch 2.13, default settings, one stream). Steps are recorded at two
lengths; as every size is affine in the length (no attention scores are held), steps of any length follow. A run of many
steps then tells how much is reserved on a GPU with room, and the smallest GPU on which it does not fail: with all
batches of the full length, and with batches of any length up to it.
"""

from __future__ import annotations

import random
import sys
from bisect import bisect_left, insort
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from bench import recordings  # noqa: E402
from bench.fake_tensors import BLOCK, Log, rounded  # noqa: E402
from bench.recordings import GIB  # noqa: E402

MIB = 2**20
SMALL = MIB
"""``kSmallSize``: up to here blocks come from segments of 2 MiB, and a rest above it is split off a larger block."""
SMALL_SEGMENT = 2 * MIB
MIDDLE = 10 * MIB
"""``kMinLargeAlloc``: below it segments have 20 MiB, from it on whole multiples of 2 MiB."""
MIDDLE_SEGMENT = 20 * MIB

CASES = (
    "llama 1.2 B, tied, fp32 + autocast, 2 × 2048, checkpointing",
    "llama 8 B, bf16 + autocast, 2 × 2048, LoRA on attention, checkpointing",
    "llama 8 B, bf16, 1 × 2048, LoRA on every linear layer",
    "mistral 7 B, bf16, 2 × 2048, checkpointing, reentrant, adamw_torch",
    "qwen2 1.5 B, tied, bf16 + autocast, 8 × 1024, checkpointing",
    "qwen3 4 B, tied, bf16, 2 × 2048",
    "phi3 3.8 B, bf16 + autocast, 4 × 2048, checkpointing",
)
"""Those of ``bench.fake_cases`` that are run here: whole models and adapters, with and without checkpointing."""

STEPS = 16
SEEDS = (0, 1, 2)
NEAR = 0.002
"""How near the smallest GPU is found, as a share of what is allocated."""


class OutOfMemory(Exception):
    """The allocator could not serve a request even after giving its cache back."""


@dataclass(slots=True, eq=False)
class Block:
    """A piece of a segment; neighbours are pieces of the same segment."""

    size: int
    address: int
    free: bool = False
    before: Block | None = None
    after: Block | None = None


@dataclass(slots=True)
class _Pool:
    """Free blocks, smallest first, then by address."""

    order: list[tuple[int, int]] = field(default_factory=list)
    blocks: dict[int, Block] = field(default_factory=dict)

    def put(self, block: Block) -> None:
        insort(self.order, (block.size, block.address))
        self.blocks[block.address] = block

    def remove(self, block: Block) -> None:
        del self.order[bisect_left(self.order, (block.size, block.address))]
        del self.blocks[block.address]

    def fitting(self, size: int) -> Block | None:
        index = bisect_left(self.order, (size, -1))
        if index == len(self.order):
            return None
        _, address = self.order.pop(index)
        return self.blocks.pop(address)


class Allocator:
    """Best fit among free blocks, else a new segment; a GPU of ``capacity`` bytes, without end if None."""

    def __init__(self, capacity: int | None = None) -> None:
        self.capacity = capacity
        self.reserved = self.allocated = self.most_reserved = self.most_allocated = 0
        self._pools = {True: _Pool(), False: _Pool()}
        self._small: set[int] = set()
        self._top = 0

    def allocate(self, size: int) -> Block:
        """A block of at least ``size`` bytes. Raises :class:`OutOfMemory`."""
        size = max(BLOCK, rounded(size))
        small = size <= SMALL
        block = self._pools[small].fitting(size) or self._segment(size, small)
        block.free = False
        rest = block.size - size
        if rest >= BLOCK if small else rest > SMALL:
            self._split(block, size, small)
        self.allocated += block.size
        self.most_allocated = max(self.most_allocated, self.allocated)
        return block

    def release(self, block: Block) -> None:
        """Give a block back to its pool, as one with free neighbours."""
        pool = self._pools[self._is_small(block)]
        self.allocated -= block.size
        block.free = True
        if block.after is not None and block.after.free:
            pool.remove(block.after)
            _join(block, block.after)
        if block.before is not None and block.before.free:
            pool.remove(block.before)
            block = _join(block.before, block)
        pool.put(block)

    def _is_small(self, block: Block) -> bool:
        while block.before is not None:
            block = block.before
        return block.address in self._small

    def _segment(self, size: int, small: bool) -> Block:
        whole = (
            SMALL_SEGMENT if small else MIDDLE_SEGMENT if size < MIDDLE else -(-size // SMALL_SEGMENT) * SMALL_SEGMENT
        )
        if self.capacity is not None and self.reserved + whole > self.capacity:
            self._give_back()
            if self.reserved + whole > self.capacity:
                raise OutOfMemory(f"{whole} bytes beside {self.reserved} of {self.capacity}")
        block = Block(whole, self._top)
        self._top += whole + 1
        if small:
            self._small.add(block.address)
        self.reserved += whole
        self.most_reserved = max(self.most_reserved, self.reserved)
        return block

    def _split(self, block: Block, size: int, small: bool) -> None:
        rest = Block(block.size - size, block.address + size, free=True, before=block, after=block.after)
        if block.after is not None:
            block.after.before = rest
        block.after = rest
        block.size = size
        self._pools[small].put(rest)

    def _give_back(self) -> None:
        """``cudaFree`` of every segment that is free as a whole."""
        for pool in self._pools.values():
            for block in [block for block in pool.blocks.values() if block.before is None and block.after is None]:
                pool.remove(block)
                self.reserved -= block.size


def _join(first: Block, second: Block) -> Block:
    first.size += second.size
    first.after = second.after
    if second.after is not None:
        second.after.before = first
    return first


class Birth(NamedTuple):
    """A storage of ``fixed + slope × length`` bytes."""

    number: int
    fixed: float
    slope: float


Events = list[Birth | int]
"""Births, and the numbers of storages that die."""


@dataclass(frozen=True)
class Recording:
    """What a run allocates: once, in its first step, and in every later one."""

    loaded: Events
    first: tuple[Events, Events]
    later: tuple[Events, Events]
    """Passes, by the length of the batch, and the optimizer's step."""


def record(spec: dict[str, Any]) -> Recording:
    """Three steps of a case under fake tensors, at its length and at a shorter one.

    Not much shorter: the embedding's backward sorts its indices above 3072 tokens only.
    """
    from bench import fake_device, fake_models
    from bench.fake_tensors import train_step

    lengths = (spec["seq_len"] * 7 // 8, spec["seq_len"])
    with fake_device.machine() as mode, fake_device.Counter(log := Log()):
        model = fake_models.build(spec, mode)
        for tensor in (*model.parameters(), *model.buffers()):
            log.see(tensor)
        optimizer = fake_models.make_optimizer(model, spec)
        marks = [len(log.events)]
        for length in (lengths[1], *lengths):
            log.phase = "batch"
            train_step(model, optimizer, {**spec, "seq_len": length}, log, None, [], last=True)
            marks.append(len(log.events))
    parts = _by_phase(log, marks)
    short, whole = parts[2], parts[3]
    first = _affine(short[0], parts[1][0], lengths), _fixed(parts[1][1])
    return Recording(_fixed(parts[0][0]), first, (_affine(short[0], whole[0], lengths), _fixed(whole[1])))


Raw = list[tuple[int, int]]


def _by_phase(log: Log, marks: Sequence[int]) -> list[tuple[Raw, Raw]]:
    """The events up to each mark, those of the passes apart from those of the optimizer's step."""
    parts: list[tuple[Raw, Raw]] = [([], []) for _ in marks]
    turn = 0
    for index, number, size, phase in log.in_place():
        while turn < len(marks) - 1 and index >= marks[turn]:
            turn += 1
        parts[turn][phase == "step"].append((number, size))
    return parts


def _fixed(events: Raw) -> Events:
    return [Birth(number, size, 0) if size > 0 else number for number, size in events]


def _affine(short: Raw, whole: Raw, lengths: tuple[int, int]) -> Events:
    """The events of the longer batch with sizes by length; the n-th birth of both is the same tensor."""
    births = [size for _, size in short if size > 0]
    if len(births) != sum(size > 0 for _, size in whole):
        raise ValueError("the two lengths do not allocate the same tensors")
    found: Events = []
    sizes = iter(births)
    for number, size in whole:
        if size <= 0:
            found.append(number)
            continue
        slope = (size - next(sizes)) / (lengths[1] - lengths[0])
        found.append(Birth(number, size - slope * lengths[1], slope))
    return found


def play(recording: Recording, allocator: Allocator, lengths: Sequence[int]) -> None:
    """Run a step for every length. Raises :class:`OutOfMemory`."""
    blocks: dict[int, Block] = {}

    def go(events: Events, length: int) -> None:
        for event in events:
            if isinstance(event, Birth):
                blocks[event.number] = allocator.allocate(int(event.fixed + event.slope * length))
            elif event in blocks:
                allocator.release(blocks.pop(event))

    go(recording.loaded, 0)
    for index, length in enumerate(lengths):
        for events in recording.later if index else recording.first:
            go(events, length)


def survives(recording: Recording, capacity: int, lengths: Sequence[int]) -> bool:
    """Whether the steps run on a GPU of ``capacity`` bytes."""
    try:
        play(recording, Allocator(capacity), lengths)
    except OutOfMemory:
        return False
    return True


def smallest(recording: Recording, lengths: Sequence[int]) -> tuple[int, int, int]:
    """Bytes allocated at most, reserved on a GPU without end, and of the smallest GPU on which the steps run."""
    free = Allocator()
    play(recording, free, lengths)
    low, high = free.most_allocated, free.most_reserved
    while high - low > NEAR * free.most_allocated:
        middle = (low + high) // 2
        low, high = (low, middle) if survives(recording, middle, lengths) else (middle, high)
    return free.most_allocated, free.most_reserved, high


def measure(spec: dict[str, Any]) -> dict[str, int]:
    """The figures of one case, in bytes."""
    recording = record(spec)
    whole = spec["seq_len"]
    allocated, reserved, card = smallest(recording, [whole] * 4)
    found = {"allocated": allocated, "reserved": reserved, "smallest": card}
    found["loaded"] = sum(rounded(int(event.fixed)) for event in recording.loaded if isinstance(event, Birth))
    for seed in SEEDS:
        generator = random.Random(seed)
        lengths = [generator.randint(whole // 32, whole) for _ in range(STEPS - 1)]
        _, reserved, card = smallest(recording, [*lengths, whole])
        found["any_reserved"] = max(found.get("any_reserved", 0), reserved)
        found["any_smallest"] = max(found.get("any_smallest", 0), card)
    return found


def table(recording: dict[str, Any]) -> str:
    """A Markdown table: what the allocator needs, beside what lintfit plans for."""
    from lintfit.memory import estimate
    from lintfit.memory.framework import context
    from lintfit.memory.reading.parse import spec_from_mapping

    head = (
        "| case | allocated | smallest GPU | … any lengths | lintfit plans for | reserved | … any lengths | lintfit |"
    )
    lines = [head, "| --- |" + " --: |" * 7]
    versions = {"transformers": recording["versions"]["transformers"]}
    for case in recording["cases"]:
        spec = spec_from_mapping({**case["spec"], "versions": versions})
        guess = estimate(spec)
        beside = context(spec)
        figures = (
            case["allocated"],
            case["smallest"],
            case["any_smallest"],
            guess.peak.high - beside.high,
            case["reserved"],
            case["any_reserved"],
            guess.peak.likely - beside.likely,
        )
        lines.append(f"| {case['name']} | " + " | ".join(f"{figure / GIB:.2f}" for figure in figures) + " |")
    return "\n".join(lines)


def _record(out: Path, only: str) -> int:
    from bench.fake_cases import cases

    named = {case["name"]: case for case in cases()}
    chosen = [named[name] for name in CASES]
    return recordings.record(out, only, chosen, lambda case: measure(case["spec"]), ("torch", "transformers", "peft"))


if __name__ == "__main__":
    sys.exit(recordings.program(__doc__, _record, table))
