"""A probe that is asked many times: its interpreter imports the real libraries once and forks for every launch."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from threading import Lock
from typing import Any

ENDED = '{"ended": '
_SERVERS: dict[tuple[str, Path], subprocess.Popen[str]] = {}
_LOCK = Lock()


def asked(python: str, probe: Path, command: Mapping[str, Any], seconds: float) -> tuple[list[str], bool]:
    """What a probe prints of a command, on both streams, and whether it was at an end in time."""
    with _LOCK:
        server = _SERVERS.get((python, probe))
        if server is None or server.poll() is not None:
            server = _SERVERS[python, probe] = subprocess.Popen(
                [python, str(probe), "--serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, text=True, errors="replace", env={**os.environ, "OMP_NUM_THREADS": "1"},
            )  # fmt: skip
        assert server.stdin is not None
        assert server.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            server.stdin.write(json.dumps({**command, "seconds": seconds}) + "\n")
            server.stdin.flush()
        lines = []
        for line in server.stdout:
            if line.startswith(ENDED):
                return lines, bool(json.loads(line)["ended"])
            lines.append(line.rstrip("\n"))
        return lines, True
