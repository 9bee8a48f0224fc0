"""A file that is written keeps what it has beside its text, or is not written."""

from __future__ import annotations

import os
import signal
import threading
from io import StringIO
from pathlib import Path

import pytest

from lintfit.cli.progress import progress
from lintfit.documents.files import WriteError, read_text, write_files, write_whole
from lintfit.errors import LintfitError
from tests.support import lintfit

OLD = '{"zero_optimization": {"stage": 2, "cpu_offload": true}, "train_micro_batch_size_per_gpu": 1}\n'
root = pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files away")
FIX = ("check", "ds.json", "--fix", "--unsafe-fixes")


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "ds.json"
    path.write_text(OLD)
    return path


@root
def test_owner_group_and_mode(config: Path) -> None:
    os.chown(config, 1234, 4321)
    config.chmod(0o2640)
    lintfit(*FIX, cwd=config.parent)
    status = config.stat()
    assert "offload_optimizer" in config.read_text()
    assert (status.st_uid, status.st_gid, status.st_mode & 0o7777) == (1234, 4321, 0o2640)


def test_an_owner_that_cannot_be_kept(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As for one who may write the file of somebody else."""

    def refused(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    file = read_text(config)
    monkeypatch.setattr(os, "chown", refused)
    real = Path.stat

    def of_another(path: Path, **kwargs: bool) -> os.stat_result:
        status = real(path, **kwargs)
        if path.name != "ds.json":
            return status
        values = list(status)
        values[4] = status.st_uid + 1
        return os.stat_result(values)

    monkeypatch.setattr(Path, "stat", of_another)
    with pytest.raises(WriteError, match="belongs to another user"):
        write_files({file: "new"})
    monkeypatch.undo()
    assert [path.name for path in config.parent.iterdir()] == ["ds.json"]
    assert config.read_text() == OLD


@pytest.mark.skipif(not hasattr(os, "setxattr"), reason="no extended attributes here")
def test_extended_attributes(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        os.setxattr(config, "user.note", b"mine")
    except OSError:
        pytest.skip("the file system has none")
    write_files({read_text(config): "new"})
    assert (config.read_text(), os.getxattr(config, "user.note")) == ("new", b"mine")

    def refused(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "setxattr", refused)
    with pytest.raises(WriteError, match=r"extended attribute \(user\.note\)"):
        write_files({read_text(config): "newer"})
    assert config.read_text() == "new"


def test_hard_links_are_not_parted(config: Path) -> None:
    os.link(config, config.with_name("same.txt"))
    outcome = lintfit(*FIX, cwd=config.parent)
    assert outcome.status == 2
    assert outcome.err == (
        "lintfit: ds.json: has 2 names (hard links), which would hold different texts afterwards; nothing was written\n"
    )
    assert sorted(path.name for path in config.parent.iterdir()) == ["ds.json", "same.txt"]
    assert config.read_text() == OLD
    with pytest.raises(LintfitError, match="2 names"):
        write_whole(config, "new")


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="no signals of threads here")
def test_the_sign_of_life_takes_no_signal_that_the_writer_holds_back() -> None:
    class Terminal(StringIO):
        def __init__(self) -> None:
            super().__init__()
            self.blocked: set[signal.Signals] = set()

        def isatty(self) -> bool:
            return True

        def write(self, text: str) -> int:
            if threading.current_thread() is not threading.main_thread():
                self.blocked |= {signal.Signals(each) for each in signal.pthread_sigmask(signal.SIG_BLOCK, ())}
                written.set()
            return super().write(text)

    written, stream = threading.Event(), Terminal()
    with progress("checking", stream, delay=0.01):
        assert written.wait(10)
    assert {signal.SIGTERM, signal.SIGINT, signal.SIGHUP} <= stream.blocked
    assert signal.SIGTERM not in signal.pthread_sigmask(signal.SIG_BLOCK, ())
