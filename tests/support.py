"""What several tests share: running the command as a user does, and where things are."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"

OF_FILES = (
    "lintfit.suppression.baseline._cached",
    "lintfit.catalog.models._of_file",
    "lintfit.options.config.load_config",
    "lintfit.documents.widths._content",
    "lintfit.memory.reading.named._named",
    "lintfit.run.requirements._folders_above",
    "lintfit.run.requirements._read_folder",
    "lintfit.run.requirements.lists_among",
    "lintfit.run.front_end_pins._installs",
    "lintfit.run.environment._of",
    "lintfit.documents.paths._folder",
)
"""The functions of lintfit that remember what they read: ``test_support.py`` looks for others."""


PUBLISHED: dict[str, dict[str, dict[str, Any]]] = json.loads(
    (ROOT / "tests" / "recordings" / "published_parameters.json").read_text("utf-8")
)
"""Counts of parameters that the models' own pages, papers or safetensors indices state."""


def published(model: str) -> int:
    """The parameters that train of a model, as published."""
    found = PUBLISHED["models"][model]
    return int(found["parameters"]) - int(found.get("without", 0))


@dataclass(frozen=True)
class Outcome:
    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def lintfit(
    *arguments: str | Path, cwd: Path, stdin: bytes | None = None, env: Mapping[str, str] | None = None
) -> Outcome:
    """Run ``lintfit`` in a folder, without colour and without the caller's lintfit settings.

    In this process: one of its own (:func:`process`) takes ten times as long. ``env`` is laid over the environment.
    """
    from lintfit import __main__

    forget()
    out, err = _captured(), _captured()
    given = io.TextIOWrapper(io.BytesIO(stdin or b""), encoding="utf-8")
    with (
        patch.dict(os.environ, {**_plain(), **(env or {})}, clear=True),
        chdir(cwd),
        patch.object(sys, "argv", ["lintfit", *map(str, arguments)]),
        patch.multiple(sys, stdin=given, stdout=out, stderr=err),
    ):
        status = __main__.run()
    return Outcome(status, _text(out), _text(err))


def process(
    *arguments: str | Path, cwd: Path, stdin: bytes | None = None, env: Mapping[str, str] | None = None
) -> Outcome:
    """The same in a process of its own (``python -m lintfit``)."""
    done = subprocess.run(
        [sys.executable, "-m", "lintfit", *map(str, arguments)],
        cwd=cwd,
        env={**_plain(), "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8", **(env or {})},
        input=stdin,
        capture_output=True,
        timeout=120,
        check=False,
    )
    return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode())


def forget() -> None:
    """Empty what lintfit keeps of files as long as a process runs: another test has other files there."""
    for name in OF_FILES:
        module, _, function = name.rpartition(".")
        if module in sys.modules:
            getattr(sys.modules[module], function).cache_clear()


def _plain() -> dict[str, str]:
    unwanted = ("LINTFIT", "FORCE_COLOR", "CLICOLOR_FORCE")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(unwanted)}
    return {**kept, "NO_COLOR": "1", "COLUMNS": "100"}


def _captured() -> io.TextIOWrapper:
    """A stream as ``__main__.main`` makes standard output."""
    return io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="backslashreplace", newline="")


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    buffer = stream.buffer
    assert isinstance(buffer, io.BytesIO)
    return buffer.getvalue().decode()
