"""Carry changes out on a copy of the files in memory, reading the run again after each of them.

Every setting is written where it lives. One change at a time, so that a later one finds the places as the earlier one
left them; the edits that are shown in the end are the difference between the first and the last text.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lintfit.documents.model import Edit, Span
from lintfit.documents.workspace import Workspace
from lintfit.findings import FileEdit
from lintfit.fit.confirm import texts_after
from lintfit.options import Options
from lintfit.run.build import build
from lintfit.run.model import Run
from lintfit.run.write import has_trainer, why_not, write_one

_LINES = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


@dataclass(frozen=True, slots=True, eq=False)
class Carried:
    """What the files look like with the changes made, the run read from them, and which file each change went to."""

    texts: Mapping[Path, str]
    run: Run
    places: Mapping[str, Path]
    edits: tuple[FileEdit, ...]


class Pen:
    """Says of changes, before anything is carried out, whether somebody writes each of them on its own."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self._known: dict[tuple[str, str], str] = {}

    def can(self, changes: Mapping[str, Any]) -> bool:
        """Whether every change can be written. That they can be together is what :func:`carry_out` finds out."""
        return not self.why_not(changes)

    def why_not(self, changes: Mapping[str, Any]) -> str:
        """Why one of the changes cannot be written, the first in their order; empty where all can."""
        names = list(_ordered(self.run, changes))
        if any(name == "engine" for name, _ in names):
            # An Accelerate YAML takes ZeRO's settings once it says DeepSpeed, and FSDP's once it says FSDP.
            names = [(name, value) for name, value in names if name not in _AFTER_ENGINE]
        return next((reason for name, value in names if (reason := self._one(name, value))), "")

    def _one(self, name: str, value: Any) -> str:
        key = (name, repr(value))
        if key not in self._known:
            self._known[key] = why_not(self.run, name, value)
        return self._known[key]


def carry_out(run: Run, changes: Mapping[str, Any], workspace: Workspace, cli: Options) -> Carried | None:
    """Make the changes in every file that states a part of them; None where one of them cannot be written."""
    carried = attempt(run, changes, workspace, cli)
    return carried if isinstance(carried, Carried) else None


def attempt(run: Run, changes: Mapping[str, Any], workspace: Workspace, cli: Options) -> Carried | str:
    """The same; why, in the place of None."""
    texts: dict[Path, str] = {}
    places: dict[str, Path] = {}
    now = run
    for name, value in _ordered(run, changes):
        for _ in range(STEPWISE.get(name, 1)):
            edits = write_one(now, name, value)
            if edits is None:
                return why_not(now, name, value)
            if not edits:
                break
            texts.update(texts_after(edits, workspace.with_overlay(texts)))
            places.setdefault(name, edits[0].path)
            now = build(run.origin, workspace.with_overlay(texts), cli)
    return Carried(texts, now, places, tuple(difference(texts, workspace)))


STEPWISE: Mapping[str, int] = {"adapters": 5, "four_bits": 3, "fsdp": 4}
"""Changes that are written bit by bit, and after how many bits the last has to be there."""

WRITTEN_AS: Mapping[str, str] = {
    "method": "adapters",
    "lora_rank": "adapters",
    "lora_targets": "adapters",
    "quantization": "four_bits",
}
"""Settings that are written together, by the name under which :func:`lintfit.run.write.write_one` knows them."""

_ZERO = ("zero_stage", "offload_optimizer", "offload_param")
_AFTER_ENGINE = frozenset({*_ZERO, "fsdp", "launched_accumulation"})


def _ordered(run: Run, changes: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Changes in the order in which they can be written; those that follow from others are left out."""
    spec = run.spec
    wanted = {name: value for name, value in changes.items() if name != "full_load_dtype"}
    if wanted.get("forced_float32") is False:
        wanted.pop("weights_dtype", None)
        yield "forced_float32", wanted.pop("forced_float32")
    yield from _engine(run, wanted)
    together = _takes_adapters(run) and not wanted.keys().isdisjoint(WRITTEN_AS)
    for name, value in wanted.items():
        if not (together and name in WRITTEN_AS) and (spec is None or getattr(spec, name, None) != value):
            yield name, value
    if together:
        yield from _adapted(run, {**wanted, "engine": changes.get("engine", spec.engine if spec else None)})


def _engine(run: Run, wanted: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Another engine, where the launcher's file or the trainer's arguments say which; takes what goes with it."""
    engine, spec = wanted.pop("engine", None), run.spec
    if engine is None or (spec is not None and spec.engine == engine):
        return
    sharding = wanted.pop("fsdp", None)
    if engine == "ddp":
        yield "engine", engine
    elif run.accelerate is not None and (not has_trainer(run) or _launched(run, engine)):
        yield "engine", engine
        if sharding is not None:
            yield "fsdp", sharding
        elif has_trainer(run) and spec is not None:
            # accelerate launch hands on 1 where its file is silent, which the Trainer compares with its own.
            yield "launched_accumulation", wanted.get("gradient_accumulation_steps", spec.gradient_accumulation_steps)
    elif engine == "fsdp":
        yield "fsdp", sharding
    else:
        yield "mixed_precision", wanted.pop("mixed_precision", None)
        if spec is not None and spec.engine == "fsdp":
            yield "fsdp", None
        yield "deepspeed", {name: wanted.pop(name) for name in _ZERO}


def _launched(run: Run, engine: str) -> bool:
    """Whether Accelerate's file, not the trainer's arguments, says that FSDP runs or could as well."""
    stated = run.accelerate.settings.get("engine") if run.accelerate is not None else None
    return stated is not None and (stated.value == "fsdp" or (engine == "fsdp" and stated.value == "ddp"))


def _takes_adapters(run: Run) -> bool:
    """Whether what trains can be given adapters: a script, or a recipe that says so."""
    return run.recipe is None or "method" in run.recipe.adjustable


def _adapted(run: Run, wanted: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Four bits, adapters and what stands between them, after all that they depend on."""
    four_bits = wanted.get("quantization")
    ranks = run.spec.data_parallel if run.spec is not None else 1
    if four_bits is not None:
        yield "four_bits", {"quantization": four_bits, "ranks": ranks}
    if wanted.get("method") == "lora":
        yield "adapters", {"lora_rank": wanted["lora_rank"], "engine": wanted["engine"]}
    if four_bits is not None:
        yield "quantized_base", True


def difference(texts: Mapping[Path, str], workspace: Workspace) -> Iterator[FileEdit]:
    """The edits that lead from the files as they are to the given texts, one per changed run of lines."""
    for path, after in texts.items():
        if not workspace.exists(path):
            yield FileEdit(path, Edit(Span(0, 0), after))
            continue
        document = workspace.read(path)
        for edit in line_edits(document.text, after):
            yield FileEdit(path, edit, document)


def line_edits(before: str, after: str) -> Iterator[Edit]:
    """Edits from one text to another: changed lines, without what they have in common at both ends."""
    old, new = _LINES.findall(before), _LINES.findall(after)
    starts = [0]
    for line in old:
        starts.append(starts[-1] + len(line))
    for tag, i1, i2, j1, j2 in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal":
            yield _trimmed(starts[i1], "".join(old[i1:i2]), "".join(new[j1:j2]))


def _trimmed(start: int, old: str, new: str) -> Edit:
    head = 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < min(len(old), len(new)) - head and old[len(old) - 1 - tail] == new[len(new) - 1 - tail]:
        tail += 1
    return Edit(Span(start + head, start + len(old) - tail), new[head : len(new) - tail])
