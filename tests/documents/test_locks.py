"""Who fixes a tree has it alone, and two that fix it at once leave what one after the other would."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

from lintfit.documents import locks
from lintfit.documents.files import read_text, write_files
from lintfit.documents.locks import locked
from lintfit.errors import LintfitError
from tests.documents.steps import AtStep
from tests.support import ROOT

posix = pytest.mark.skipif(os.name != "posix", reason="locks of POSIX")
FILES = ("a.json", "b.json")
POINTS = 150
"""At how many points, evenly over all steps of a writer, another comes."""


@pytest.fixture(autouse=True)
def impatient(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr(locks, "PATIENCE", 0.0)
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    return place


@pytest.fixture(params=[True, False], ids=["fcntl", "no fcntl"])
def with_and_without(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if not request.param:
        monkeypatch.setitem(sys.modules, "fcntl", None)


@pytest.mark.usefixtures("with_and_without")
def test_a_second_waits_and_ends_with_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    now = iter(range(100))
    monkeypatch.setattr(locks, "PATIENCE", 3.0)
    monkeypatch.setattr(locks, "time", SimpleNamespace(sleep=pauses.append, monotonic=lambda: next(now)))
    with (
        locked([tmp_path]),
        pytest.raises(LintfitError, match=rf"^another lintfit is fixing files below {tmp_path}; try again when"),
        locked([tmp_path]),
    ):
        pass
    assert len(pauses) == 2
    with locked([tmp_path]):
        assert list(tmp_path.iterdir()) == []


@posix
def test_a_tree_within_a_tree(tmp_path: Path) -> None:
    inner, other = tmp_path / "inner", tmp_path / "other"
    with locked([inner]):
        with locked([other]):
            pass
        with pytest.raises(LintfitError, match="another lintfit"), locked([tmp_path]):
            pass
    with locked([tmp_path]), pytest.raises(LintfitError, match="another lintfit"), locked([inner]):
        pass
    with locked([inner, tmp_path, inner]):
        pass


@posix
def test_who_dies_leaves_the_lock(tmp_path: Path) -> None:
    script = (
        "import os, sys, pathlib, tempfile\n"
        "from lintfit.documents.locks import locked\n"
        "tempfile.tempdir = sys.argv[2]\n"
        "with locked([pathlib.Path(sys.argv[1])]):\n"
        "    os.kill(os.getpid(), 9)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path), tempfile.gettempdir()],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
    )
    assert done.returncode == -9
    with locked([tmp_path]):
        pass


@posix
def test_a_folder_of_somebody_else_keeps_no_locks(tmp_path: Path, impatient: Path) -> None:
    place = impatient / f"lintfit-locks-{os.getuid()}"
    place.symlink_to(tmp_path)
    with pytest.raises(LintfitError, match=r"lintfit-locks-\d+: .*; (remove it or )?set TMPDIR"), locked([tmp_path]):
        pass
    place.unlink()
    place.mkdir(mode=0o700)
    place.chmod(0o777)
    with pytest.raises(LintfitError, match=r"is not a folder of your own"), locked([tmp_path]):
        pass
    assert list(tmp_path.iterdir()) == []


# -- Two at once ----------------------------------------------------------------------------------------------------


def mend(folder: Path, change: Callable[[int], int]) -> None:
    """Read two files that hold the same number, and write another one into both."""
    with locked([folder]):
        files = [read_text(folder / name) for name in FILES]
        first, second = (int(file.text) for file in files)
        assert first == second, "what half a change has left is read"
        write_files({file: str(change(first)) for file in files}, below=[folder])


def numbers(folder: Path) -> set[str]:
    return {(folder / name).read_text() for name in FILES}


@posix
def test_a_second_that_comes_at_any_step_of_the_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)  # slow, and no matter of what others see

    def anew() -> None:
        for name in FILES:
            (tmp_path / name).write_text("5")

    def second() -> None:
        with suppress(LintfitError):
            mend(tmp_path, lambda number: number + 3)
            outcomes.append("second")

    def first() -> None:
        mend(tmp_path, lambda number: number * 2)
        outcomes.append("first")

    one_after_the_other = ({"16"}, {"13"})
    outcomes: list[str] = []
    anew()
    steps = AtStep(0, second).run(first)
    assert steps > 300
    seen: list[set[str]] = []
    for at in range(1, steps + 1, max(1, steps // POINTS)):
        outcomes.clear()
        anew()
        AtStep(at, second).run(first)
        expected = one_after_the_other if len(outcomes) == 2 else ({"10"},)
        assert numbers(tmp_path) in expected, f"at step {at}: {outcomes}"
        seen.append(numbers(tmp_path))
    assert {"16"} in seen and {"10"} in seen
    assert {path.name for path in tmp_path.iterdir()} == set(FILES)
