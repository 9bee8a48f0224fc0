"""What the measuring programs share: their command line, the file that they record into, and tables against lintfit.

A recording is JSON with the ``versions`` of what was measured and ``cases``: each what its program needs to run it, and
what was found. Without torch, so that a recording can be compared where only lintfit is installed.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from operator import itemgetter
from pathlib import Path
from time import monotonic
from typing import Any

GIB = 2**30

Case = dict[str, Any]
Row = tuple[str, str, str, int, int]
"""Case, phase, kind, recorded bytes, lintfit's bytes."""


def program(about: str, record: Callable[[Path, str], int], table: Callable[[dict[str, Any]], str]) -> int:
    """The command line: ``--out`` records, ``--compare`` prints a recording against lintfit. The exit status."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="record into this file")
    parser.add_argument(
        "--only", default="", help="those whose name contains this; others stay as they are in the file"
    )
    parser.add_argument("--compare", type=Path, help="print a recording against lintfit")
    options = parser.parse_args()
    if options.compare:
        print(table(json.loads(options.compare.read_text())))
        return 0
    if not options.out:
        parser.error("say --out or --compare")
    return record(options.out, options.only)


def record(
    out: Path,
    only: str,
    cases: Iterable[Case],
    measure: Callable[[Case], Mapping[str, Any]],
    packages: Sequence[str],
    *,
    name: Callable[[Case], str] = itemgetter("name"),
    compact: bool = False,
    **head: Any,
) -> int:
    """Measure the cases whose name contains ``only`` and write each as it is there; others stay as the file has them.

    A case that fails is told and not written. ``compact``: one line a case. The exit status: 1 where one failed.
    """
    found = {name(case): case for case in json.loads(out.read_text())["cases"]} if only and out.is_file() else {}
    order = [(name(case), case) for case in cases]
    made = {package: version(package) for package in packages}
    dated = {} if compact else {"date": datetime.now(UTC).date().isoformat()}
    failed = False
    for title, case in order:
        if only not in title:
            continue
        started = monotonic()
        try:
            found[title] = {**case, **measure(case)}
        except Exception as error:  # one case that these libraries refuse must not lose the others
            failed = True
            print(f"{title}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
            continue
        print(f"{title}: {monotonic() - started:.0f} s", file=sys.stderr, flush=True)
        results = [found[title] for title, _ in order if title in found]
        out.write_text(_written({**dated, **head, "versions": made, "cases": results}, compact))
    return int(failed)


def _written(content: Mapping[str, Any], compact: bool) -> str:
    if not compact:
        return json.dumps(content, indent=1) + "\n"
    return json.dumps(content, separators=(",", ":")).replace('{"name"', '\n{"name"') + "\n"


def kinds_table(found: Iterable[Row], measured: str) -> str:
    """A Markdown table of bytes by case, phase and kind, with the difference in per cent."""
    lines = [f"| case | phase | kind | {measured}, bytes | lintfit, bytes | difference |", "|---|---|---|--:|--:|--:|"]
    for case, phase, kind, recorded, expected in found:
        difference = f"{(expected - recorded) / recorded:+.3%}" if recorded else "-"
        lines.append(f"| {case} | {phase} | {kind} | {recorded:,} | {expected:,} | {difference} |")
    return "\n".join(lines)


def peaks_table(found: Iterable[tuple[str, int, int]], what: str) -> str:
    """A Markdown table of one peak for each case (bytes), as torch and lintfit count it."""
    lines = [f"| {what} | torch, GiB | lintfit, GiB | difference |", "| --- | --: | --: | --: |"]
    for name, counted, guess in found:
        lines.append(f"| {name} | {counted / GIB:.3f} | {guess / GIB:.3f} | {guess / counted - 1:+.3%} |")
    return "\n".join(lines)
