"""Folders of files with their expected report.

``tests/projects/<case>/input`` is copied and checked as a user would; ``expected.txt`` is the concise report and
``fixed`` or ``unsafe-fixed``, where there is one, what the files look like after ``--fix`` (``--unsafe-fixes``). A case
with a ``plan.txt`` has what ``fit --apply`` writes for the plan of that name in ``applied``. With ``LINTFIT_UPDATE=1``
the expectations are written anew: read the difference before committing it.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.support import ROOT, lintfit

PROJECTS = ROOT / "tests" / "projects"
CASES = sorted(path.parent.name for path in PROJECTS.glob("*/input"))
PLANNED = sorted(path.parent.name for path in PROJECTS.glob("*/plan.txt"))
UPDATE = bool(os.environ.get("LINTFIT_UPDATE"))


def _files(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.mark.parametrize("case", CASES)
def test_report(case: str, tmp_path: Path) -> None:
    work = shutil.copytree(PROJECTS / case / "input", tmp_path / "project")
    outcome = lintfit("check", ".", "--output-format", "concise", cwd=work)
    report = f"{outcome.out}{outcome.err}exit {outcome.status}\n"
    expected = PROJECTS / case / "expected.txt"
    if UPDATE:
        expected.write_text(report)
    assert report == expected.read_text()
    assert _files(work) == _files(PROJECTS / case / "input"), "a check without --fix writes nothing"


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(("name", "flags"), [("fixed", ("--fix",)), ("unsafe-fixed", ("--fix", "--unsafe-fixes"))])
def test_fixed(case: str, name: str, flags: tuple[str, ...], tmp_path: Path) -> None:
    expected = PROJECTS / case / name
    if not expected.exists():
        pytest.skip("no fixed files for this case")
    work = shutil.copytree(PROJECTS / case / "input", tmp_path / "project")
    lintfit("check", ".", *flags, cwd=work)
    if UPDATE:
        shutil.rmtree(expected)
        shutil.copytree(work, expected)
    assert _files(work) == _files(expected)
    lintfit("check", ".", *flags, cwd=work)
    assert _files(work) == _files(expected), "fixing what is fixed changes nothing"


@pytest.mark.parametrize("case", PLANNED)
def test_applied(case: str, tmp_path: Path) -> None:
    """A plan of ``fit`` is written, and a check of the written files says what it claimed."""
    work = shutil.copytree(PROJECTS / case / "input", tmp_path / "project")
    expected, name = PROJECTS / case / "applied", (PROJECTS / case / "plan.txt").read_text().strip()
    plans = lintfit("fit", ".", "--output-format", "json", cwd=work).json["runs"][0]["plans"]
    plan = next(plan for plan in plans if plan["name"] == name)
    applied = lintfit("fit", ".", "--apply", str(plan["number"]), cwd=work)
    assert applied.status == 0, applied.err
    if UPDATE:
        shutil.rmtree(expected, ignore_errors=True)
        shutil.copytree(work, expected)
    assert _files(work) == _files(expected)
    runs = lintfit("check", ".", "--output-format", "json", cwd=work).json["runs"]
    run = runs[0]  # a config that the launch named before may be left alone behind it
    assert run["verdict"] == plan["verdict"] == "fits"
    for key in ("peak_bytes", "host_bytes"):
        assert run["estimate"][key] == plan["estimate"][key], key
    for step in plan["steps"]:
        if step["setting"] in run["settings"]:
            assert run["settings"][step["setting"]]["value"] == step["to"], step["setting"]
