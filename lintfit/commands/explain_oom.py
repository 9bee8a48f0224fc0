"""``lintfit explain-oom LOG [PATHS]``: what a log's death by memory was, against its run, and what ends it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lintfit.commands.done import Done
from lintfit.documents.door import read_stream
from lintfit.errors import LintfitError
from lintfit.findings.questions import Explained
from lintfit.findings.results import RunResult
from lintfit.frozen import replace
from lintfit.report import View
from lintfit.sources.logs.model import Log
from lintfit.sources.logs.reader import read
from lintfit.verdict.died import Compared, causes, compared

if TYPE_CHECKING:
    from lintfit.options.model import Options

MAX_LOG = 256 << 20
"""Bytes of a log that are taken at the most."""
KEPT = 8 << 20
"""Of these the last that are looked at: a run that died ends its log with it."""


def explain(source: str, paths: Sequence[Path], options: Options, output_format: str, view: View) -> Done:
    """Read the log (``-``: standard input) and, where paths are named, the runs below them. Raises LintfitError."""
    text, above = _text(source)
    log = read(text, above)
    if log.death is None:
        name = "standard input" if source == "-" else source
        return Done("", (f"{name}: no death by memory found in it",), 1)
    runs, errors = _runs(paths, _with_gpu(options, log)) if paths else ((), ())
    died = [(result, _compared(log, result)) for result in runs]
    first = next((result for result, _ in died if result.estimate is not None), None)
    why = causes(log, *((first.estimate, first.run.spec) if first is not None else (None, None)))
    found = Explained(log, source, why, tuple(died))
    from lintfit.report import died as report

    text = report.as_json(found) if output_format == "json" else report.render(found, view)
    return Done(text, errors, 2 if errors else 0)


def _compared(log: Log, result: RunResult) -> Compared | None:
    return compared(log, result.estimate) if result.estimate is not None else None


def _text(source: str) -> tuple[str, int]:
    """The end of a log, and how many lines stand above it."""
    import sys

    name = "standard input" if source == "-" else source
    try:
        if source == "-":
            raw = sys.stdin.buffer.read(MAX_LOG) if sys.stdin is not None else b""
        else:
            raw = read_stream(Path(source), MAX_LOG)
    except OSError as error:
        raise LintfitError(f"{name}: cannot be read: {error.strerror}") from None
    start = max(0, len(raw) - KEPT)
    return raw[start:].decode("utf-8", "replace"), raw.count(b"\n", 0, start)


def _with_gpu(options: Options, log: Log) -> Options:
    """The options with the log's GPU where nobody names one, and the host's memory where it has it."""
    death = log.death
    assert death is not None
    stated = dict(options.origins)
    if options.gpu is None and options.gpu_memory_bytes is None and death.of == "gpu" and death.total is not None:
        options = replace(options, gpu_memory_bytes=death.total)
        stated["gpu_memory_bytes"] = "the log"
    if options.host_memory_bytes is None and log.host_total is not None:
        options = replace(options, host_memory_bytes=log.host_total)
        stated["host_memory_bytes"] = "the log"
    return replace(options, origins=stated)


def _runs(paths: Sequence[Path], options: Options) -> tuple[tuple[RunResult, ...], tuple[str, ...]]:
    """The runs below the paths, with the plan of those that do not fit."""
    from lintfit.commands import check

    result = check.check(paths, options)
    return result.runs, result.errors
