"""Every axis of the planner at every kind of place: what is written there, or why nothing is.

The table in ``docs/fit.md`` is made of what happens here (``LINTFIT_UPDATE=1``).
"""

from __future__ import annotations

import difflib
import os
from pathlib import Path
from typing import Any

import pytest

from lintfit.commands.check import load_runs
from lintfit.documents.workspace import Workspace
from lintfit.fit import axes
from lintfit.fit.applying import Applied, apply_changes
from lintfit.options.model import Options
from lintfit.run.model import Run
from tests.fit.places import AXES, JSON, OPTION, PLACES, project
from tests.support import ROOT

REFUSED: dict[tuple[str, str], str] = {
    ("optimizer", JSON): "the DeepSpeed config names the optimizer",
    ("buckets", OPTION): "the sizes of ZeRO's buffers stand in a DeepSpeed config, and there is none",
    (
        "FSDP for DDP",
        OPTION,
    ): "how FSDP wraps a loop of the script's own is said in an Accelerate YAML, and there is none",
}
"""What cannot be written where it stands, with the reason that the user reads; all else is written."""

CELLS = [(axis, place) for axis in AXES for place in PLACES if place in AXES[axis].places]
_NOT_COMPARED = {"lora_rank", "lora_targets", "quantization"}


def _run(folder: Path, files: dict[str, str]) -> tuple[Run, Options]:
    for name, text in files.items():
        (folder / name).write_text(text)
    return _read(folder)


def _read(folder: Path) -> tuple[Run, Options]:
    options = Options(gpu="A100-SXM4-40GB", isolated=True, origins={"gpu": "--gpu"})
    (judged,) = load_runs([folder / "run.sh"], options)[1]
    return judged.run, options


def test_every_axis_of_the_planner_has_its_rows() -> None:
    assert {*axes.NAMES, "fsdp"} <= {*AXES}


@pytest.mark.parametrize(("axis", "place"), CELLS, ids=[f"{axis} in {place}" for axis, place in CELLS])
def test_a_setting_is_written_where_it_lives(axis: str, place: str, tmp_path: Path) -> None:
    files = project(axis, place)
    run, options = _run(tmp_path, files)
    assert run.spec is not None and not run.doubtful, (run.unknown, run.doubtful)
    changes = AXES[axis].changes
    carried = apply_changes(run, changes, Workspace(), options)
    if isinstance(carried, str) or (axis, place) in REFUSED:
        assert carried == REFUSED.get((axis, place))
        return
    assert _differs(run, changes), "the change asks for something else than there is"
    _only_its_lines_change(axis, files, carried, tmp_path)
    for path, text in carried.texts.items():
        path.write_text(text)
    read, _ = _read(tmp_path)
    assert read.spec is not None and not read.doubtful
    assert read.spec.effective_batch == run.spec.effective_batch
    for name, value in changes.items():
        if hasattr(read.spec, name) and name not in _NOT_COMPARED:
            assert getattr(read.spec, name) == value, name
    if "quantization" in changes:
        assert read.spec.quantization is not None


_TABLE = ROOT / "docs" / "fit.md"
_MARKS = ("<!-- places: made by tests/fit/test_matrix.py -->\n", "<!-- places end -->")


def test_the_page_says_what_is_written_where() -> None:
    """What cannot stand at a place has no mark; what is not written where it stands has the number of the reason."""
    reasons = list(dict.fromkeys(REFUSED.values()))
    lines = [f"| | {' | '.join(PLACES)} |", f"| --- |{' :-: |' * len(PLACES)}"]
    for name, axis in AXES.items():
        cells = []
        for place in PLACES:
            reason = REFUSED.get((name, place))
            lives = "✓" if place in axis.places else ""
            cells.append(lives if reason is None else f"({reasons.index(reason) + 1})")
        lines.append(f"| {axis.title} | {' | '.join(cells)} |")
    notes = [f"({number}) by hand: {reason}." for number, reason in enumerate(reasons, 1)]
    table = "\n".join([*lines, "", *notes]) + "\n"
    text = _TABLE.read_text("utf-8")
    head, rest = text.split(_MARKS[0])
    now, tail = rest.split(_MARKS[1])
    if os.environ.get("LINTFIT_UPDATE"):
        _TABLE.write_text(f"{head}{_MARKS[0]}{table}{_MARKS[1]}{tail}", "utf-8")
        now = table
    assert now == table


def _differs(run: Run, changes: dict[str, Any]) -> bool:
    asked = {name for name in changes if not hasattr(run.spec, name) or getattr(run.spec, name) != changes[name]}
    return bool(asked)


def _only_its_lines_change(axis: str, files: dict[str, str], carried: Applied, folder: Path) -> None:
    """What goes are lines that state the setting; every other one stays as it is, in its order."""
    for path, text in carried.texts.items():
        before = files.get(path.relative_to(folder).as_posix(), "").splitlines(keepends=True)
        after = text.splitlines(keepends=True)
        matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
        for tag, first, last, start, end in matcher.get_opcodes():
            if tag == "equal":
                continue
            for line in before[first:last]:
                comma = f"{line.rstrip()},\n" in after[start:end]
                grown = comma or _lengthens(line.split(), "".join(after[start:end]).split())
                assert grown or any(token in line.lower() for token in AXES[axis].tokens), line


def _lengthens(old: list[str], new: list[str]) -> bool:
    """Whether a line has all that it had in the same order: a flag that is added to a command."""
    words = iter(new)
    return all(word in words for word in old)
