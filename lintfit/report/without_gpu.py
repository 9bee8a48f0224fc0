"""Many runs of which nobody says on which GPU: by the usual GPUs on which they fit."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from pathlib import PurePosixPath

from lintfit.findings.results import RunResult
from lintfit.report import Line, View
from lintfit.report.block import where_it_fits
from lintfit.report.figures import short_gib
from lintfit.report.styled import wrapped

_NAMED = 12
"""Of each kind of GPU the files that are named."""
_MANY_KINDS = 5
_NAMED_OF_MANY = 3
"""The same where there are more kinds than so many."""
_LONG = 10
"""Kinds of which more are told in a line each."""
_IN_A_FILE = 4
"""Runs of one file that are named."""


def by_usual_gpu(results: Sequence[RunResult], view: View) -> list[Line]:
    """A paragraph for each kind of GPU, the smallest first: ``one 24 GB GPU: train.py:3 (7.0 to 9.1), …``"""
    base = _base([result.run.id for result in results])
    below = f" below {base}" if base.parts else ""
    head = f"{len(results)} runs{below} name no GPU (--gpu). What would do, with likely to highest GiB:"
    lines = wrapped([], head, view.width, 2, "note")
    groups = _groups(results, changed=True)
    if len(groups) > _LONG:
        groups = _groups(results, changed=False)
    most = _NAMED_OF_MANY if len(groups) > _MANY_KINDS else _NAMED
    for where, group in groups.items():
        lead: Line = [("  ", ""), (f"{where}: ", "note")]
        names = _named(group, base)
        lines += _in_a_line(lead, names, view) if len(groups) > _LONG else _told(lead, names, most, view)
    return lines


def _groups(results: Sequence[RunResult], changed: bool) -> dict[str, list[RunResult]]:
    """The runs by what would do; ``changed``: smaller GPUs that do with a change as well."""
    groups: dict[str, list[RunResult]] = {}
    for result in sorted(results, key=_size):
        as_it_is = [each for each in result.would_fit if each.fits and not each.changes]
        would_fit = result.would_fit if changed or not as_it_is else as_it_is
        groups.setdefault(where_it_fits(would_fit, smaller=False), []).append(result)
    return groups


def _in_a_line(lead: Line, names: Sequence[str], view: View) -> list[Line]:
    """As many of the names as a line has room for, and one of them at least."""
    found = [_told(lead, names, most, view) for most in range(min(len(names), _NAMED), 0, -1)]
    return next((lines for lines in found if len(lines) == 1), found[-1])


def _told(lead: Line, names: Sequence[str], most: int, view: View) -> list[Line]:
    """So many names; ``--verbose`` and the JSON have all."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return wrapped(lead, ", ".join(names[:most]) + more, view.width, 4)


def _size(result: RunResult) -> tuple[float, ...]:
    """How large the smallest GPUs are that do as the run is, and then how they do with changes."""
    fitting = [(each.gpu.vendor_gb * each.gpus, bool(each.changes)) for each in result.would_fit if each.fits]
    plain = [size for size, changed in fitting if not changed]
    return (min(plain, default=float("inf")), min((size for size, _ in fitting), default=float("inf")))


def _named(results: Sequence[RunResult], base: PurePosixPath) -> list[str]:
    """``train.py:3, :9 (7.0 to 9.1)``: runs of one file that need the same together."""
    found: dict[tuple[str, str], list[str]] = {}
    for result in results:
        path, _, line = result.run.id.rpartition(":")
        if not line.isdigit():
            path, line = result.run.id, ""
        peak = result.estimate.peak if result.estimate is not None else None
        needs = f" ({short_gib(peak.likely)} to {short_gib(peak.high)})" if peak is not None else ""
        found.setdefault((path, needs), []).append(line)
    return [f"{_lines(path, lines, base)}{needs}" for (path, needs), lines in found.items()]


def _lines(path: str, lines: Sequence[str], base: PurePosixPath) -> str:
    name = PurePosixPath(path)
    shown = str(name.relative_to(base) if name.is_relative_to(base) else name)
    more = [", …"] if len(lines) > _IN_A_FILE else []
    return shown + ", ".join(f":{line}" for line in lines[:_IN_A_FILE] if line) + "".join(more)


def _base(names: Sequence[str]) -> PurePosixPath:
    """The folder that the files of all runs are in."""
    folders = [PurePosixPath(name).parent.parts for name in names]
    levels = takewhile(lambda level: len(set(level)) == 1, zip(*folders, strict=False))
    base = PurePosixPath(*(level[0] for level in levels))
    return base if ".." not in base.parts else PurePosixPath()
