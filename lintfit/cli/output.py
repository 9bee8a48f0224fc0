"""Where the commands' output goes, in which format, how wide and whether in colour."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lintfit.documents.door import is_folder
from lintfit.errors import LintfitError, defused, one_line
from lintfit.report import REPORTERS, View

if TYPE_CHECKING:
    from lintfit.commands.done import Done
    from lintfit.options.model import Options, Output

WIDTH = 100
"""Columns where there is no terminal."""


def outputs(texts: tuple[str, ...]) -> tuple[Output, ...]:
    from lintfit.options.model import Output

    outputs = []
    for text in texts or ("text",):
        name, colon, file = text.partition(":")
        if name not in REPORTERS:
            from lintfit.suggest import did_you_mean

            hint = did_you_mean(name, REPORTERS) or f"; there are {', '.join(REPORTERS)}"
            raise LintfitError(f'--output-format {text}: no format "{name}"{hint}')
        if colon and (not file or not is_folder(Path(file).absolute().parent)):
            raise LintfitError(f"--output-format {text}: expected a file in a folder that exists after the colon")
        outputs.append(Output(name, Path(file) if colon else None))
    if sum(output.file is None for output in outputs) > 1:
        raise LintfitError("--output-format: only one format can go to standard output; give the others a :FILE")
    return tuple(outputs)


def echo(text: str) -> None:
    """Standard output; a reader that has gone away (``| head``) is no error."""
    if sys.stdout is None:  # started without one (``>&-``)
        raise LintfitError("standard output: cannot be written: it is closed")
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        raise LintfitError(f"standard output: cannot be written: {error.strerror}") from None


def standard_input() -> bytes:
    if sys.stdin is None:  # started without one (``<&-``)
        raise LintfitError("standard input: cannot be read: it is closed")
    try:
        return sys.stdin.buffer.read()
    except OSError as error:
        raise LintfitError(f"standard input: cannot be read: {error.strerror}") from None


def show(done: Done, *, exact: bool = False) -> int:
    """Print what a command has found (``exact``: to the last byte), then its complaints, and give its exit status."""
    echo(done.text if exact else defused(done.text))
    for error in done.errors if sys.stderr is not None else ():
        print(f"lintfit: {one_line(error)}", file=sys.stderr)
    return done.status


def below_roots(options: Options, paths: Sequence[Path]) -> tuple[Path, ...]:
    """The folders below which this invocation writes. Raises LintfitError where it is asked to write outside."""
    from lintfit.documents.paths import is_below, resolved
    from lintfit.options.roots import output_roots

    files = [(f"--output-format {output.format}:{output.file}", output.file) for output in options.outputs]
    files.append((f"--write-baseline {options.write_baseline}", options.write_baseline))
    asked = [(flag, file) for flag, file in files if file is not None and not _is_stream(file)]
    if not asked:
        return ()
    roots = output_roots(paths, options)
    for flag, file in asked:
        if not is_below(resolved(file), roots):
            folders = " and ".join(map(str, roots))
            raise LintfitError(f"{flag}: outside of {folders}, below which lintfit writes; name a file there")
    return roots


def _is_stream(file: Path) -> bool:
    """Whether the name is that of a stream that is open already, or of none (``/dev/stdout``, ``>(jq)``)."""
    return file.parent == Path("/dev/fd") or file.as_posix() in ("/dev/stdout", "/dev/stderr", "/dev/null")


def write(file: Path, text: str, below: Sequence[Path]) -> None:
    """Write a report to its file, all at once."""
    from lintfit.documents.files import write_whole

    if not _is_stream(file):
        write_whole(file, text, below)
        return
    try:
        file.write_text(text, encoding="utf-8", errors="backslashreplace", newline="")
    except OSError as error:
        raise LintfitError(f"{file}: cannot be written: {error.strerror}") from None


def view(flags: Mapping[str, Any], stream: Any) -> View:
    """How to show a result on a stream (None: in a file)."""
    terminal = stream is not None and stream.isatty()
    unicode = stream is None or "utf" in (stream.encoding or "").lower()
    width = WIDTH
    if terminal:
        from shutil import get_terminal_size

        width = max(60, min(get_terminal_size().columns, 120))
    return View(
        color=stream is not None and _colored(flags["color"], terminal),
        width=width,
        unicode=unicode,
        unsafe_fixes=flags.get("unsafe_fixes", False),
        diff=flags.get("diff", False),
        statistics=flags.get("statistics", False),
        verbose=flags.get("verbose", False),
        quiet=flags.get("quiet", False),
        show_fixes=flags.get("show_fixes", False),
    )


def _colored(choice: str, terminal: bool) -> bool:
    if choice != "auto":
        return choice == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR", "0") != "0" or os.environ.get("CLICOLOR_FORCE", "0") != "0":
        return True
    return terminal and os.environ.get("TERM") != "dumb"
