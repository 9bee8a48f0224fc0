"""Facts about GPUs by every name people use for them: product names, short names, SLURM gres, cloud instances.

A name that several GPUs share stands for the one with the least memory ("a100" is the 40 GB GPU), so that a verdict
never promises memory that may not be there; :func:`ambiguous` lists the others.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from lintfit.catalog.facts import LONGEST_NAME, Gpu
from lintfit.documents.patterns import lazy_pattern
from lintfit.resources import packaged
from lintfit.suggest import most_alike

DATA = Path(__file__).parent / "data" / "gpus.json"
GIB = 2**30
NATIVE_BF16_SINCE = (8, 0)
"""Ampere (torch ``is_bf16_supported(including_emulation=False)``); FlashAttention 2 needs the same."""
NOISE = lazy_pattern(r"nvidia|geforce|tesla|quadro|grid|amd|instinct|radeon|graphics|generation|gen$|gpu|rtx|gtx")
MEMORY = lazy_pattern(r"(?<![0-9.])(\d+)[\s_-]*(?:gib|gb|g)(?![a-z0-9])", re.IGNORECASE)
SLICE = lazy_pattern(r"(\d)g\.(\d+)gb", re.IGNORECASE)
COUNT_BEFORE = lazy_pattern(r"^\s*(\d{1,3})(?:\s*[x*×]\s*(?=[a-z0-9])|(?<!\d{3})\s+(?=[a-z]))", re.IGNORECASE)
COUNT_AFTER = lazy_pattern(r"(?<=[a-z0-9\s])(?<!rt)(?<!gt)[x*×]\s*(\d{1,3})\s*$", re.IGNORECASE)
GRES = lazy_pattern(
    r"(?P<gpu>gpu[:=/]?)?(?:(?P<name>[^:=]*[a-z][^:=]*)[:=])?(?P<count>\d{1,9})",
    re.IGNORECASE,
)
CLOUD_GPU = lazy_pattern(r"^gpu_(\d{1,3})x_(\w+)$", re.IGNORECASE)


def key_of(name: str) -> str:
    """What is left of a name that matters: ``NVIDIA GeForce RTX 3090`` and ``rtx-3090`` are both ``3090``."""
    text = MEMORY.sub(r"\1gb", COUNT_AFTER.sub("", COUNT_BEFORE.sub("", name)).lower())
    return NOISE.sub("", re.sub(r"[^a-z0-9]", "", text))


@functools.cache
def _data() -> Mapping[str, Any]:
    data: Mapping[str, Any] = json.loads(packaged(DATA))
    return data


def _gpu(name: str, row: Mapping[str, Any]) -> Gpu:
    capability = tuple(int(part) for part in row["cc"].split(".")) if row.get("cc") else None
    nvidia = (capability[0], capability[1]) if capability else None
    modern = nvidia >= NATIVE_BF16_SINCE if nvidia else row.get("modern")
    return Gpu(
        name=name,
        usable_bytes=int(row["usable_gib"] * GIB),
        vendor_gb=float(row["gb"]),
        compute_capability=nvidia,
        native_bf16=modern,
        flash_attention_2=modern,
        source=str(row["source"]),
    )


@functools.cache
def gpus() -> Mapping[str, Gpu]:
    """Every GPU of the catalogue by its full name."""
    return {name: _gpu(name, row) for name, row in _data()["gpus"].items()}


def _spellings() -> Iterator[tuple[str, str]]:
    """Every key with the full name that it may stand for."""
    for name, row in _data()["gpus"].items():
        yield key_of(name), name
        for alias in row.get("aliases", ()):
            yield key_of(alias), name


@functools.cache
def _by_key() -> Mapping[str, tuple[Gpu, ...]]:
    """GPUs by key, the one with the least memory first."""
    found: dict[str, dict[str, Gpu]] = {}
    for key, name in _spellings():
        found.setdefault(key, {})[name] = gpus()[name]
    return {key: tuple(sorted(cards.values(), key=lambda gpu: gpu.usable_bytes)) for key, cards in found.items()}


def ambiguous(name: str) -> tuple[Gpu, ...]:
    """All GPUs that a name may stand for, least memory first; one where it is clear, none where it is unknown."""
    if len(name) > LONGEST_NAME:
        return ()
    mig = SLICE.search(name)
    if mig is None:
        return _by_key().get(key_of(name)) or _without_memory(name)
    slices = [gpu for gpu in gpus().values() if f"MIG {mig[0].lower()}" in gpu.name]
    parent = key_of(SLICE.sub("", name.lower()).replace("mig", ""))[:4]
    own = [gpu for gpu in slices if parent and parent in gpu.name.lower()]
    return tuple(sorted(own or slices, key=lambda gpu: gpu.usable_bytes))


def _without_memory(name: str) -> tuple[Gpu, ...]:
    """GPUs named with their memory (``L20-48GB``) though their own name is without it."""
    memory = MEMORY.search(name)
    cards = _by_key().get(key_of(MEMORY.sub("", name)), ()) if memory else ()
    return tuple(gpu for gpu in cards if memory and gpu.vendor_gb == float(memory[1]))


@functools.lru_cache(maxsize=1024)
def lookup(name: str) -> Gpu | None:
    """The GPU that a name stands for, or None: ``RTX 3090``, ``a100``, ``A100-SXM4-80GB``, ``gpu:a100:4``, ``1g.10gb``.

    Of several GPUs with one name the one with the least memory. A cloud instance's name gives its GPU.
    """
    if len(name) > LONGEST_NAME:
        return None
    cards = ambiguous(name)
    if cards:
        return cards[0]
    on_instance = instance(name)
    if on_instance is not None:
        return on_instance[0]
    of_family = _family(name)
    if of_family is not None:
        return of_family
    return parse_gres(name)[0] if re.search(r"[:=]", name) else None


def stated_count(name: str) -> int | None:
    """How many GPUs a name states: 8 for ``8x3090`` and ``p4d.24xlarge``, 4 for ``gpu:a100:4``, None for ``a100``."""
    if len(name) > LONGEST_NAME:
        return None
    on_instance = instance(name)
    if on_instance is not None:
        return on_instance[1]
    counted = COUNT_BEFORE.match(name) or COUNT_AFTER.search(name)
    if counted:
        return int(counted[1])
    return parse_gres(name)[1] if re.search(r"[:=]\s*\d+\s*$", name) else None


def parse_gres(text: str) -> tuple[Gpu | None, int | None]:
    """GPU and count of a SLURM ``--gres``/``--gpus`` value or of a cloud scheduler's ``NAME:COUNT``.

    ``gpu:a100:4`` is the GPU and 4, ``gpu:4`` or ``4`` no GPU and 4, ``gpu`` no GPU and 1. The count is None where
    the text does not state GPUs.
    """
    if len(text) > LONGEST_NAME:
        return None, None
    stated = re.sub(r"^--(gres|gpus)(-per-(node|task|socket))?[=\s]+", "", text.strip().strip("\"'"))
    for part in re.split(r",(?![^(]*\))", stated):
        item = re.sub(r"\([^()]*\)", "", part).strip().removeprefix("gres:").removeprefix("gres/")
        found = _gres_item(item)
        if found is not None:
            return found
    return None, None


def _gres_item(item: str) -> tuple[Gpu | None, int] | None:
    """One item of a gres list; None where it is about something else."""
    if item.lower() == "gpu":
        return None, 1
    counted = GRES.fullmatch(item)
    if counted:
        cards = ambiguous(counted["name"]) if counted["name"] else ()
        if cards or counted["gpu"] or not counted["name"]:
            return (cards[0] if cards else None), int(counted["count"])
        return None
    card = re.sub(r"^gpu[:=/]", "", item, flags=re.IGNORECASE)
    cards = ambiguous(card)
    if not cards:
        return (None, 1) if card != item else None
    count = COUNT_BEFORE.match(card) or COUNT_AFTER.search(card)
    return cards[0], int(count[1]) if count else 1


@functools.cache
def _instances() -> Mapping[str, tuple[str, int]]:
    return {name.lower(): (card, count) for name, (card, count) in _data()["instances"].items()}


def instance(name: str) -> tuple[Gpu, int] | None:
    """GPU and number of GPUs of a cloud instance type (``p4d.24xlarge``, ``a2-highgpu-8g``), or None."""
    wanted = name.strip().lower().removeprefix("ml.")
    for spelled in (wanted, f"standard_{wanted}"):
        if spelled in _instances():
            card, count = _instances()[spelled]
            return gpus()[card], count
    lambda_cloud = CLOUD_GPU.match(wanted)
    if lambda_cloud:
        cards = ambiguous(lambda_cloud[2].replace("_", " "))
        return (cards[0], int(lambda_cloud[1])) if cards else None
    return None


def _family(name: str) -> Gpu | None:
    """The GPU of a family of instances that all have the same (``p4d``, ``g5``), or None."""
    start = f"{name.strip().lower().removeprefix('ml.')}."
    cards = {card for instance_type, (card, _) in _instances().items() if instance_type.startswith(start)}
    return gpus()[cards.pop()] if len(cards) == 1 else None


def suggest(name: str) -> str | None:
    """The name of the known GPU or instance that an unknown name most resembles, or None."""
    close = most_alike(key_of(name[:LONGEST_NAME]), _by_key(), 0.7)
    if close is not None:
        return _by_key()[close][0].name
    return most_alike(name.strip().lower(), _instances(), 0.7)
