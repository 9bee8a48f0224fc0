"""Other programs (git, nvidia-smi), found on the PATH and asked within bounds of time and of what they may answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from lintfit.documents import seen
from lintfit.errors import LintfitError
from lintfit.frozen import frozen

_MAX_COMPLAINT = 4096
"""Bytes that are read of what a program says on standard error."""


@frozen
class Ended:
    """A program that has ended: its status, what it printed, and the beginning of its complaints."""

    status: int
    out: bytes
    complaint: str


def on_path(name: str) -> str | None:
    """Where a program lies; None where the PATH has none, or leads to it from the working directory."""
    import shutil

    seen.spoil(f"{name} is asked")
    found = shutil.which(name)
    return found if found is not None and Path(found).is_absolute() else None


def run(
    words: Sequence[str],
    folder: Path,
    patience: float,
    most: int,
    stdin: bytes = b"",
    environment: Mapping[str, str] | None = None,
) -> Ended:
    """Run a program by its name for at most ``patience`` seconds, and take at most ``most`` bytes of it.

    Raises LintfitError in one line where it cannot be run or goes beyond.
    """
    import subprocess
    import tempfile
    from threading import Timer

    name = words[0]
    program = on_path(name)
    if program is None:
        raise LintfitError(f"{name} cannot be run: there is none on the PATH")
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as complaints:
        given.write(stdin)
        given.seek(0)
        try:
            process = subprocess.Popen(
                [program, *words[1:]],
                cwd=folder,
                env=environment,
                stdin=given,
                stdout=subprocess.PIPE,
                stderr=complaints,
            )
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            raise LintfitError(f"{name} cannot be run: {reason.lower()}") from None
        late: list[bool] = []

        def end() -> None:
            late.append(True)
            process.kill()

        timer = Timer(patience, end)
        timer.start()
        try:
            assert process.stdout is not None
            with process.stdout as stream:
                out = stream.read(most + 1)
            if len(out) > most:
                process.kill()
            status = process.wait()
        finally:
            timer.cancel()
            process.kill()
        if late:
            raise LintfitError(f"{name} takes longer than {patience:g} seconds")
        if len(out) > most:
            raise LintfitError(f"{name} answers with more than {most >> 10} KiB")
        complaints.seek(0)
        return Ended(status, out, complaints.read(_MAX_COMPLAINT).decode("utf-8", "replace"))
