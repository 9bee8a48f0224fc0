"""How many launches of language-model training get a verdict, wherever they are written, with a GPU named.

``bench/launches/reach.jsonl`` (``--table reach_2.jsonl``: the second list) has them as ``path:line`` (``path`` alone: a
recipe or a notebook), found by hand and with grep, whether or not lintfit finds them: shell scripts, Markdown,
docstrings, notebooks, job files and recipes.
``CHECKOUTS`` holds one folder for each repository, named ``owner+name`` or ``owner/name``, at the commit of its rows.
A verdict is *fits*, *tight* or *does not fit*; of every other launch the reason is printed, and then how often each
reason is given.

    python -m bench.reach CHECKOUTS [--table reach_2.jsonl] [--gpu a100-80gb] [--gpus 8] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from bench.checkouts import checkout  # noqa: E402
from bench.launches import rows  # noqa: E402
from lintfit.commands.check import load_runs  # noqa: E402
from lintfit.options.model import Options  # noqa: E402
from lintfit.run.model import Run  # noqa: E402

NOT_FOUND = "no launch found there"
BAR = 60
"""Percent of the launches that are to get a verdict."""


@dataclass(frozen=True, slots=True)
class Reached:
    """One launch: its verdict, or why it has none."""

    row: Mapping[str, Any]
    verdict: str
    reason: str = ""


def judged(folder: Path, options: Options, table: str = "reach.jsonl") -> Iterator[Reached]:
    """Every launch of the table whose repository is there."""
    for row in rows(table):
        root = checkout(folder, row["repo"])
        if root is not None:
            yield _judged(root, row, options)


def _judged(root: Path, row: Mapping[str, Any], options: Options) -> Reached:
    path, _, line = row["place"].rpartition(":") if re.search(r":\d+$", row["place"]) else (row["place"], "", "")
    with chdir(root):
        try:
            loaded, results = load_runs([Path(path)], options)
        except Exception as error:  # a mistake of lintfit's own counts as no verdict
            return Reached(row, "unknown", f"{type(error).__name__}: {error}")
    found = [each for each in results if _is_it(each.run, path, line)]
    if not found:
        reasons = [skipped.reason for skipped in loaded.skipped if skipped.path == Path(path)]
        return Reached(row, "unknown", (reasons or [NOT_FOUND])[0])
    verdict = found[0].verdict
    return Reached(
        row, str(verdict), "" if verdict != "unknown" else "; ".join(found[0].unknown) or "no reason is given"
    )


def _is_it(run: Run, path: str, line: str) -> bool:
    """Whether a run begins at a line, or its command goes across it (with variables in front of it)."""
    if run.launch is None:
        return run.id == f"{path}:{line}" if line else run.id == path or run.id.startswith(f"{path}:")
    place, document = run.launch.place, run.launch.document
    if document.path.as_posix() != path:
        return False
    first, last = (document.position(offset).line for offset in (place.span.start, place.span.end))
    return not line or first <= int(line) <= last


def kind_of(reason: str) -> str:
    """A reason without what is particular to one run."""
    return re.sub(r"[\w.~/<>${}-]*[/.][\w.~/<>${}-]+|\d+", "…", reason.split(";")[0].split(" (")[0])


def main() -> int:
    """Print every launch without a verdict and the shares; 1 where the bar is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("checkouts", nargs="?", default=os.environ.get("LINTFIT_CHECKOUTS", ""))
    parser.add_argument("--table", default="reach.jsonl", help="the table of bench/launches/ (default: reach.jsonl)")
    parser.add_argument("--gpu", default="a100-80gb")
    parser.add_argument("--gpus", type=int, default=8)
    parser.add_argument("--json", type=Path, help="write the counts there")
    asked = parser.parse_args()
    options = Options(gpu=asked.gpu, gpus=asked.gpus, origins={"gpu": "--gpu", "gpus": "--gpus"})
    found = [*judged(Path(asked.checkouts).absolute(), options, asked.table)] if asked.checkouts else []
    if not found:
        print(f"no checkouts of the repositories in {asked.table}: nothing to judge")
        return 0
    for each in found:
        if each.verdict == "unknown":
            print(f"{each.row['repo']} {each.row['place']}: {each.reason}")
    reasons = Counter(kind_of(each.reason) for each in found if each.verdict == "unknown")
    print("\nreasons")
    for reason, count in reasons.most_common():
        print(f"{count:5} {reason}")
    shares: dict[str, tuple[int, int]] = {}
    for kind in (*dict.fromkeys(each.row["kind"] for each in found), "all"):
        of_kind = [each for each in found if kind in ("all", each.row["kind"])]
        shares[kind] = (sum(each.verdict != "unknown" for each in of_kind), len(of_kind))
    print()
    for kind, (with_verdict, count) in shares.items():
        print(f"{kind:10} {with_verdict:4} of {count:4}  {100 * with_verdict / count:.1f} %")
    if asked.json:
        asked.json.write_text(
            json.dumps({"shares": shares, "reasons": reasons.most_common()}, indent=1) + "\n", "utf-8"
        )
    with_verdict, count = shares["all"]
    return 0 if 100 * with_verdict >= BAR * count else 1


if __name__ == "__main__":
    sys.exit(main())
