"""What nvidia-smi and rocm-smi list, as GPUs: text in, records out."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator

from lintfit.frozen import frozen, replace

MIB = 2**20
GIB = 2**30
FIELDS = ("index", "uuid", "memory.total", "memory.reserved", "mig.mode.current", "name")
"""What nvidia-smi is asked for; the name is the last, whatever it holds."""
OLD_FIELDS = ("index", "uuid", "memory.total", "name")
"""The same of a driver that does not know the others: MIG came with 450, ``memory.reserved`` with 510."""
SLICE_SHARE = 0.95
"""Of a MIG slice's nominal memory what it has at least: 4,864 of 5,120 MiB for 1g.5gb of an A100 40GB, and more of the
larger ones (19,968 of 20,480 MiB for 3g.20gb), in nvidia-smi's output in NVIDIA's MIG User Guide."""

_GPU = re.compile(r"GPU (\d+): (.+) \(UUID: ([^)]+)\)")
_SLICE = re.compile(r"MIG (\d+[gc][\w.+]*?\.(\d+)gb[\w.+]*)\s+Device\s+\d+: \(UUID: ([^)]+)\)")
_AMD = re.compile(r"MI\d{3}[AX]?|RX \d{4}(?: XTX?| GRE)?|W\d{4}")
"""The part of rocm-smi's name of a card that names it (``AMD INSTINCT MI250 (MCM) OAM AC MBA``)."""


@frozen
class Listed:
    """One GPU: ``memory_bytes`` is what programs may use of it, None where the tool does not say."""

    index: int
    uuid: str
    name: str
    memory_bytes: int | None
    in_slices: bool = False
    """Whether MIG cuts it up: programs then see its slices only."""
    slice_of: str = ""
    """Of a MIG slice its profile (``1g.10gb``)."""


def of_nvidia_smi(output: str, fields: tuple[str, ...] = FIELDS) -> tuple[Listed, ...]:
    """The lines of ``--query-gpu=… --format=csv,noheader,nounits``; what is no such line is passed over."""
    found = []
    for row in csv.reader(output.splitlines(), skipinitialspace=True):
        if len(row) < len(fields) or not row[0].strip().isdecimal() or len(row[0]) > 9:
            continue
        last = len(fields) - 1
        texts = dict(zip(fields, [*map(str.strip, row[:last]), ", ".join(row[last:])], strict=True))
        total, reserved = _mib(texts["memory.total"]), _mib(texts.get("memory.reserved", ""))
        memory = total - (reserved or 0) if total is not None else None
        sliced = texts.get("mig.mode.current", "") == "Enabled"
        found.append(Listed(int(texts["index"]), texts["uuid"], texts["name"].strip(), memory, sliced))
    return tuple(found)


def _mib(text: str) -> int | None:
    """Bytes of a number of MiB; None of ``[N/A]``, ``[Not Supported]``, ``[Unknown Error]`` or a GPU that is lost."""
    return int(text) * MIB if text.isdecimal() and len(text) < 10 else None


def with_slices(cards: tuple[Listed, ...], listing: str) -> tuple[Listed, ...]:
    """The GPUs with the slices of ``nvidia-smi -L`` in the place of those that MIG cuts up."""
    slices: dict[int, list[Listed]] = {}
    index = -1
    for line in listing.splitlines():
        card, part = _GPU.match(line), _SLICE.search(line)
        if card is not None:
            index = int(card[1])
        elif part is not None:
            memory = int(int(part[2]) * GIB * SLICE_SHARE)
            slices.setdefault(index, []).append(Listed(index, part[3], "", memory, slice_of=part[1]))
    return tuple(each for card in cards for each in (_cut(card, slices) if card.in_slices else [card]))


def _cut(card: Listed, slices: dict[int, list[Listed]]) -> Iterator[Listed]:
    for part in slices.get(card.index, ()):
        yield replace(part, name=f"{card.name} MIG {part.slice_of}")


def of_rocm_smi(output: str) -> tuple[Listed, ...]:
    """What ``--showproductname --showmeminfo vram --json`` prints; its keys have changed their case over time."""
    start = output.find("{")  # warnings come before it
    try:
        content = json.loads(output[start:]) if start >= 0 else None
    except (ValueError, RecursionError):
        return ()
    found = []
    for name, card in content.items() if isinstance(content, dict) else ():
        number = re.fullmatch(r"card(\d{1,9})", name)
        if number is None or not isinstance(card, dict):
            continue
        facts = {key.casefold(): str(value).strip() for key, value in card.items()}
        memory = facts.get("vram total memory (b)", "")
        size = int(memory) if memory.isdecimal() and len(memory) < 16 else None
        names = (facts.get(key, "") for key in ("card series", "card model", "device name"))
        known = next((text for text in names if text and not text.startswith("0x") and text != "N/A"), "")
        found.append(Listed(int(number[1]), facts.get("unique id", ""), _amd(known), size))
    return tuple(found)


def _amd(name: str) -> str:
    found = _AMD.search(name)
    return found[0] if found is not None else name
