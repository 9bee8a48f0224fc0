"""Whole commands in forked processes with bounds: the modules are loaded once, in the process that forks."""

from __future__ import annotations

import os
import resource
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

SECONDS = 10
MEMORY = 1 << 30
_GRACE = 25
"""How many times as long by the clock as of processor time: other work may run on the machine."""


@dataclass(frozen=True)
class Ended:
    """How a command ended: its exit status (negative: the signal), its time, its peak of memory, and what it said."""

    status: int
    seconds: float
    peak_bytes: int
    output: str

    @property
    def wrong(self) -> str:
        """What is wrong with that; empty where nothing is."""
        if self.status < 0:
            return f"ended by signal {-self.status} after {self.seconds:.1f} s of processor time"
        if "Traceback (most recent call last)" in self.output:
            return "a traceback"
        if "internal error" in self.output:
            return "an internal error"
        if self.status not in (0, 1, 2):
            return f"ended with {self.status}"
        if self.seconds > SECONDS:
            return f"took {self.seconds:.1f} s of processor time"
        return f"took {self.peak_bytes >> 20} MiB" if self.peak_bytes > MEMORY else ""


def preload(tree: Path) -> None:
    """Have a process check a tree, so that the modules which that takes are there in every fork."""
    before, sys.argv = (Path.cwd(), sys.argv), ["lintfit", "check", ".", "--gpu", "3090", "--gpus", "8", "--quiet"]
    os.chdir(tree)
    from lintfit import __main__

    __main__.run()
    os.chdir(before[0])
    sys.argv = before[1]


def run(arguments: Sequence[str], folder: Path, said: Path) -> Ended:
    """Run ``lintfit`` with these arguments in a folder; what it prints goes through the file ``said``."""
    process = os.fork()
    if process == 0:
        _be_lintfit(arguments, folder, said)
    status, usage = _wait(process)
    output = said.read_bytes().decode("utf-8", "replace")
    code = os.waitstatus_to_exitcode(status)
    return Ended(code, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024, output)


def _wait(process: int) -> tuple[int, resource.struct_rusage]:
    end = time.monotonic() + SECONDS * _GRACE
    while time.monotonic() < end:
        done, status, usage = os.wait4(process, os.WNOHANG)
        if done:
            return status, usage
        time.sleep(0.004)
    os.kill(process, signal.SIGKILL)
    _, status, usage = os.wait4(process, 0)
    return status, usage


def _be_lintfit(arguments: Sequence[str], folder: Path, said: Path) -> None:
    status = 70
    try:
        own = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 1))
        resource.setrlimit(resource.RLIMIT_AS, (own + MEMORY, own + MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        out = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(out, 1)
        os.dup2(out, 2)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.chdir(folder)
        sys.argv = ["lintfit", *arguments]
        from lintfit import __main__

        status = __main__.run()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(status)
