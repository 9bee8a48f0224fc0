"""One whole check of a hostile tree in a process of its own, with the bounds that any input must keep."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

from tests.support import ROOT, Outcome

SECONDS = 10
"""Of processor time that a check of any hostile tree may take."""
MEMORY = 1 << 30
"""Bytes of address space that it may have."""


def _bounded() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 1))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def bounded_check(folder: Path, *arguments: str | Path, home: Path | None = None) -> Outcome:
    """``lintfit`` with these arguments, or a check of the whole folder for two GPUs where there are none."""
    words = arguments or ("check", ".", "--gpu", "3090", "--gpus", "2")
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8", "NO_COLOR": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "lintfit", *map(str, words)],
        cwd=folder,
        env={**environment, "HOME": str(home or folder.parent)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=6 * SECONDS,  # by the clock: other tests run beside it
        check=False,
        preexec_fn=_bounded,
    )
    return Outcome(done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace"))


def survives(folder: Path, *arguments: str | Path) -> Outcome:
    """The check ends by itself, within the bounds, with one of its own codes and without a mistake of its own."""
    outcome = bounded_check(folder, *arguments)
    said = outcome.out + outcome.err
    assert outcome.status in (0, 1, 2), f"ended with {outcome.status}: {said[-2000:]}"
    assert "Traceback" not in said and "internal error" not in said, said[-3000:]
    return outcome


def write(folder: Path, files: dict[str, str | bytes]) -> None:
    """Make the files of a tree."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass"))
