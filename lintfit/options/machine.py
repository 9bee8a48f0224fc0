"""``gpu = "auto"``: the GPUs of the machine that lintfit runs on, as its own tools and a batch job's environment say.

Asked are nvidia-smi, else rocm-smi, where they are on the PATH; which of their GPUs count, ``CUDA_VISIBLE_DEVICES``
(and HIP's and ROCr's) or Slurm's variables say. Nothing is asked where nobody says ``auto``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from lintfit.catalog import gpus as catalogue
from lintfit.documents.numerals import natural
from lintfit.documents.programs import Ended, on_path, run
from lintfit.errors import LintfitError, one_line, shorten
from lintfit.frozen import frozen, replace
from lintfit.options import listed
from lintfit.options.listed import FIELDS, GIB, OLD_FIELDS, Listed
from lintfit.options.model import Options

PATIENCE = 10.0
"""Seconds that a tool may take: nvidia-smi needs one or two where no process keeps the driver loaded."""
_MOST = 1 << 20
_LEAST_OF_NOMINAL, _MOST_OF_NOMINAL = 0.9, 1.05
"""Of the memory that a GPU is sold with what a tool may say and mean the same GPU: ECC takes 1/16 of GDDR memory."""
_VISIBLE = {
    "nvidia-smi": ("CUDA_VISIBLE_DEVICES",),
    "rocm-smi": ("HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"),
}
_INSTEAD = 'name the GPU instead (--gpu "RTX 3090")'


@frozen
class Machine:
    """One kind of GPU, how many of it a node has, and how many nodes; ``memory_bytes`` where the catalogue does not
    know it, ``source`` is who says it."""

    gpu: str
    gpus: int
    nodes: int | None
    memory_bytes: int | None
    source: str


def with_machine(options: Options) -> Options:
    """Options that ask for it (``asks_machine``) with what this machine has, and all else as it was stated.

    Raises LintfitError, one line, where the machine does not say it.
    """
    machine = _machine(options.gpu_memory_bytes is not None)
    taken: dict[str, Any] = {"gpu": machine.gpu}
    origin = f"{machine.source} (gpu = auto)"
    origins = {**options.origins, "gpu": f"{options.origins['gpu']} auto ({machine.source})"}
    nodes = options.nodes
    if nodes is None and machine.nodes is not None:
        nodes = taken["nodes"] = machine.nodes
    if not options.stated("gpus"):
        taken["gpus"] = machine.gpus * (nodes or 1)
    if machine.memory_bytes is not None and not options.stated("gpu_memory_bytes"):
        taken["gpu_memory_bytes"] = machine.memory_bytes
    origins |= {name: origin for name in taken if name != "gpu"}
    return replace(options, **taken, origins=origins)


@cache
def _machine(memory_stated: bool) -> Machine:
    environment = os.environ
    tool = next((name for name in _VISIBLE if on_path(name) is not None), None)
    if tool is None:
        return _by_slurm(environment)
    cards = _nvidia() if tool == "nvidia-smi" else _rocm()
    if not cards:
        raise _wrong(f"{tool} lists no GPU")
    return chosen(cards, tool, environment, memory_stated)


def chosen(cards: Sequence[Listed], tool: str, environment: Mapping[str, str], memory_stated: bool = False) -> Machine:
    """The one kind of GPU that programs see, and how many of it. Raises LintfitError where there is no such kind."""
    visible = next(((name, environment[name]) for name in _VISIBLE[tool] if name in environment), None)
    seen = _seen(cards, visible[1], environment) if visible is not None else list(cards)
    if not seen:
        raise _wrong(f"{visible[0]}={shorten(visible[1])} leaves no GPU" if visible else f"{tool} lists no GPU")
    counts: dict[tuple[str, int | None], int] = {}
    for card in seen:
        kind = card.name, _known_memory(card)
        counts[kind] = counts.get(kind, 0) + 1
    if len(counts) > 1:
        kinds = ", ".join(f"{count} × {name}" for (name, _), count in counts.items())
        raise LintfitError(
            f"--gpu auto: {tool} lists several kinds of GPU ({one_line(kinds)}): say which with --gpu and --gpus, "
            f"or by {_VISIBLE[tool][0]} with CUDA_DEVICE_ORDER=PCI_BUS_ID"
        )
    card, slurm = seen[0], _slurm_count(environment)
    count = min(len(seen), slurm) if visible is None and slurm is not None else len(seen)
    if card.slice_of:
        count = 1  # CUDA sees one MIG slice and no more (NVIDIA MIG User Guide, "Device enumeration")
    known = _catalogued(card)
    if known is None and card.memory_bytes is None and not memory_stated:
        raise LintfitError(
            f"--gpu auto: {tool} does not say how much memory {one_line(card.name)} has; say it with --gpu-memory"
        )
    memory = card.memory_bytes if known is None else None
    return Machine(known or one_line(card.name), count, _nodes(environment), memory, tool)


def _seen(cards: Sequence[Listed], visible: str, environment: Mapping[str, str]) -> list[Listed]:
    """The GPUs that a list of indices or UUIDs leaves; CUDA takes those before the first one that there is not.

    CUDA counts the fastest first unless ``CUDA_DEVICE_ORDER`` says otherwise, so that of several kinds nobody knows
    which an index means: all of them are left.
    """
    found: list[Listed] = []
    for item in visible.split(","):
        name = item.strip()
        number = natural(name)
        if number is not None:
            one = [card for card in cards if card.index == number]
        else:
            one = [card for card in cards if name and card.uuid.startswith(name)]
        if not one:
            break
        found.append(one[0])
    by_index = any(item.strip().isdecimal() for item in visible.split(","))
    if found and by_index and environment.get("CUDA_DEVICE_ORDER") != "PCI_BUS_ID" and len({c.name for c in cards}) > 1:
        return list(cards)
    return found


def _known_memory(card: Listed) -> int | None:
    """The memory that tells two GPUs of one name apart, in GiB."""
    return round(card.memory_bytes / GIB) if card.memory_bytes is not None else None


def _catalogued(card: Listed) -> str | None:
    """The catalogue's name of a GPU, where the memory is that of the one that it knows; of several the smallest."""
    for gpu in catalogue.ambiguous(card.name):
        if card.memory_bytes is None or card.slice_of:
            return gpu.name
        if _LEAST_OF_NOMINAL <= card.memory_bytes / (gpu.vendor_gb * GIB) <= _MOST_OF_NOMINAL:
            return gpu.name
    return None


def _nvidia() -> tuple[Listed, ...]:
    ended = _asked("nvidia-smi", f"--query-gpu={','.join(FIELDS)}", "--format=csv,noheader,nounits")
    fields: tuple[str, ...] = FIELDS
    if ended.status and "not a valid field" in _text(ended):
        fields = OLD_FIELDS
        ended = _asked("nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits")
    if ended.status:
        raise _wrong(f"nvidia-smi: {_complaint(ended)}")
    cards = listed.of_nvidia_smi(ended.out.decode("utf-8", "replace"), fields)
    if not any(card.in_slices for card in cards):
        return cards
    listing = _asked("nvidia-smi", "-L").out.decode("utf-8", "replace")
    found = listed.with_slices(cards, listing)
    if not found:
        raise _wrong("MIG is on, and nvidia-smi -L lists no slice")
    return found


def _rocm() -> tuple[Listed, ...]:
    ended = _asked("rocm-smi", "--showproductname", "--showmeminfo", "vram", "--json")
    if ended.status:
        raise _wrong(f"rocm-smi: {_complaint(ended)}")
    return listed.of_rocm_smi(ended.out.decode("utf-8", "replace"))


def _asked(*words: str) -> Ended:
    try:
        return run(words, Path(), PATIENCE, _MOST)
    except LintfitError as error:
        raise _wrong(str(error)) from None


def _text(ended: Ended) -> str:
    return f"{ended.out.decode('utf-8', 'replace')}\n{ended.complaint}"


def _complaint(ended: Ended) -> str:
    said = next((line.strip() for line in _text(ended).splitlines() if line.strip()), "")
    return one_line(said)[:200] or f"ended with status {ended.status}"


def _wrong(what: str) -> LintfitError:
    return LintfitError(f"--gpu auto: {what.rstrip('.')}; {_INSTEAD}")


def _by_slurm(environment: Mapping[str, str]) -> Machine:
    """What a batch job was given, where no tool is at hand: the kind of GPU, if it was asked for by its name."""
    for name in ("SLURM_GPUS_PER_NODE", "SLURM_GPUS", "SLURM_GPUS_PER_TASK"):
        gpu, count = catalogue.parse_gres(environment.get(name, ""))
        if gpu is not None and "SLURM_JOB_ID" in environment:
            nodes = _nodes(environment)
            per_node = count if name == "SLURM_GPUS_PER_NODE" else None
            here = _slurm_count(environment) or per_node or max(1, (count or 1) // (nodes or 1))
            return Machine(gpu.name, here, nodes, None, name)
    raise _wrong("neither nvidia-smi nor rocm-smi is on the PATH")


def _slurm_count(environment: Mapping[str, str]) -> int | None:
    """The GPUs of this node that a Slurm job has; None outside of one, and where it does not say."""
    if "SLURM_JOB_ID" not in environment:
        return None
    count = natural(environment.get("SLURM_GPUS_ON_NODE", ""))
    if count:
        return count
    total = 0
    for part in environment.get("SLURM_JOB_GPUS", environment.get("SLURM_STEP_GPUS", "")).split(","):
        found = re.fullmatch(r"\s*(\d{1,6})(?:-(\d{1,6}))?\s*", part)
        total += int(found[2] or found[1]) - int(found[1]) + 1 if found else 0
    return total or None


def _nodes(environment: Mapping[str, str]) -> int | None:
    """The machines of a Slurm job; None outside of one."""
    if "SLURM_JOB_ID" not in environment:
        return None
    return natural(environment.get("SLURM_JOB_NUM_NODES", environment.get("SLURM_NNODES", ""))) or None
