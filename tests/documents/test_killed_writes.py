"""A write that is killed at any point leaves each file old or new, never half.

A signal that asks a process to end leaves all of them old or all new, and no temporary file.
"""

from __future__ import annotations

import os
import signal
import stat
from pathlib import Path
from typing import Any

import pytest

from lintfit.documents.files import read_text, write_files
from tests.documents.steps import AtStep

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="kills a forked process")

OLD = {"train.py": "old = 1\n" * 3_000, "ds.json": '{"old": true}\n'}
NEW = {"train.py": "new = 22\n" * 4_000, "ds.json": '{"new": "file"}\n'}
POINTS = 150
"""At how many points, evenly over all steps, a write is killed."""
CREATED = "ds_zero3.json"
CREATED_TEXT = '{"zero_optimization": {"stage": 3}}\n' * 400


def prepare(folder: Path) -> None:
    for name, text in OLD.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o640)


def write(folder: Path) -> None:
    changes: dict[Any, str] = {read_text(folder / name): text for name, text in NEW.items()}
    write_files({**changes, folder / CREATED: CREATED_TEXT})


def in_a_child(folder: Path, at: int, by: int = signal.SIGKILL) -> int:
    """The wait status of a process that writes and is sent a signal at a step."""
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1]
    try:
        if by != signal.SIGKILL:
            signal.signal(by, signal.SIG_DFL)  # Python's own for SIGINT raises wherever it stands
        AtStep(at, lambda: os.kill(os.getpid(), by)).run(lambda: write(folder))
        os._exit(0)
    finally:
        os._exit(1)


def steps(folder: Path) -> int:
    """How many steps a whole write takes."""
    prepare(folder)
    return AtStep(0, lambda: None).run(lambda: write(folder))


def test_each_file_is_old_or_new_wherever_the_write_is_killed(tmp_path: Path) -> None:
    (tmp_path / "whole").mkdir()
    total = steps(tmp_path / "whole")
    assert total > 200
    seen: set[tuple[str, ...]] = set()
    for at in range(1, total, max(1, total // POINTS)):
        folder = tmp_path / str(at)
        folder.mkdir()
        prepare(folder)
        status = in_a_child(folder, at)
        if not os.WIFSIGNALED(status):
            assert os.WEXITSTATUS(status) == 0  # it was done before the step came
            continue
        state = tuple(_state(folder, name) for name in (*OLD, CREATED))
        assert "half" not in state, f"killed at step {at}: {state}"
        seen.add(state)
        for name in OLD:
            assert stat.S_IMODE((folder / name).stat().st_mode) == 0o640
    assert ("old", "old", "old") in seen
    assert ("new", "new", "new") in seen


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_all_files_are_old_or_all_new_wherever_the_process_is_asked_to_end(tmp_path: Path, name: str) -> None:
    (tmp_path / "whole").mkdir()
    total = steps(tmp_path / "whole")
    seen: set[tuple[str, ...]] = set()
    for at in range(1, total, max(1, total // 50)):
        folder = tmp_path / str(at)
        folder.mkdir()
        prepare(folder)
        status = in_a_child(folder, at, getattr(signal, name))
        if os.WIFSIGNALED(status):
            assert os.WTERMSIG(status) == getattr(signal, name)
        else:
            assert os.WEXITSTATUS(status) == 0
        state = tuple(_state(folder, file) for file in (*OLD, CREATED))
        assert state in (("old",) * 3, ("new",) * 3), f"{name} at step {at}: {state}"
        assert {path.name for path in folder.iterdir()} <= {*OLD, CREATED}, f"{name} at step {at}"
        seen.add(state)
    assert len(seen) == 2


def test_an_interrupt_takes_the_change_back_and_raises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prepare(tmp_path)
    fsync = os.fsync

    def interrupted(descriptor: int) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", interrupted)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    inherited = signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job of a shell ignores it
    try:
        with pytest.raises(KeyboardInterrupt):
            write(tmp_path)
    finally:
        signal.signal(signal.SIGINT, inherited)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == OLD
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before


def test_a_signal_that_is_ignored_stops_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prepare(tmp_path)
    fsync = os.fsync

    def hung_up(descriptor: int) -> None:
        os.kill(os.getpid(), signal.SIGHUP)
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", hung_up)
    handler = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        write(tmp_path)
    finally:
        signal.signal(signal.SIGHUP, handler)
    assert (tmp_path / CREATED).read_text() == CREATED_TEXT


def _state(folder: Path, name: str) -> str:
    path = folder / name
    text = path.read_text() if path.exists() else None
    if text == OLD.get(name):
        return "old"
    return "new" if text == NEW.get(name, CREATED_TEXT) else "half"
