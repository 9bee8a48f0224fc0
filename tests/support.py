"""What several tests share: running the command as a user does, and where things are."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"


@dataclass(frozen=True)
class Outcome:
    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def lintfit(*arguments: str | Path, cwd: Path, stdin: bytes | None = None) -> Outcome:
    """Run ``python -m lintfit`` in a folder, without colour and without the caller's lintfit settings."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("LINTFIT", "FORCE_COLOR"))}
    environment |= {"PYTHONPATH": str(ROOT), "NO_COLOR": "1", "COLUMNS": "100", "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        [sys.executable, "-m", "lintfit", *map(str, arguments)],
        cwd=cwd,
        env=environment,
        input=stdin,
        capture_output=True,
        timeout=120,
        check=False,
    )
    return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode())
