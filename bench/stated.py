"""Memory that front ends' documentation, recipes and issues state for a run, against what lintfit says of that run.

``CHECKOUTS`` holds one folder for each repository, named ``owner+name``. A row of ``bench/stated_memory.jsonl`` names a
``recipe`` of it, or a ``command`` that is copied into a file of its own there, with the GPUs that it ran on and, where
they are known, the ``versions`` of the libraries when the figure was written. ``what`` is ``peak per GPU``, where the
estimate is compared with the figure, ``peak of all GPUs``, or ``fits on`` and ``GPU size``, where nothing that is
stated to run may be said not to fit. A row that is not ``tied`` is of a recipe with options that its page does not
tell, or that have changed since. Errors are those of the likely peak, for rows whose sequences are full
(``length_full``) and for the others.

    python -m bench.stated CHECKOUTS [--all]
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import chdir, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from bench.checkouts import checkout  # noqa: E402
from lintfit.catalog import gpus  # noqa: E402
from lintfit.commands.check import load_runs  # noqa: E402
from lintfit.findings.results import RunResult  # noqa: E402
from lintfit.options.config import from_flags  # noqa: E402

GIB = 2**30
TABLE = ROOT / "bench/stated_memory.jsonl"


@dataclass(frozen=True, slots=True)
class Said:
    """What lintfit says of one row: its verdict, and its peak in GiB where there is an estimate."""

    row: Mapping[str, Any]
    verdict: str
    peak: float | None = None
    allocated: float | None = None
    """What of it the allocator holds, in GiB."""
    why: str = ""

    @property
    def error(self) -> float | None:
        """The relative error, where the row states a measured peak of this very recipe.

        Pages do not say whether they read nvidia-smi or the allocator: the nearer of the two counts.
        """
        stated: float | None = self.row["stated_gib"]
        tied = self.row["what"].startswith("peak") and self.row.get("tied", True)
        if self.peak is None or self.allocated is None or not stated or not tied:
            return None
        parts: int = self.row.get("gpus") or 1 if self.row["what"] == "peak of all GPUs" else 1
        share = stated / parts
        nearest = min(max(share, self.allocated), self.peak)
        return nearest / share - 1

    def __str__(self) -> str:
        error = f"{self.error:+.0%}" if self.error is not None else ""
        peak = f"{self.peak:.1f}" if self.peak is not None else "-"
        what = self.row.get("recipe") or self.row.get("command", "")[:70]
        return f"{self.verdict:13} {peak:>6} of {self.row['stated_gib']:>5} {error:>6}  {what}  {self.why}"


@contextmanager
def _named(root: Path, row: Mapping[str, Any]) -> Iterator[Path]:
    """The file to check: the recipe, or the command in a file beside the others."""
    if "command" not in row:
        yield Path(row["recipe"])
        return
    copy = Path(row.get("cwd", "."), "lintfit-stated.sh")
    (root / copy).write_text(f"{row['command']}\n", "utf-8")
    try:
        yield copy
    finally:
        (root / copy).unlink()


def _gpu(stated: str) -> tuple[str | None, str | None]:
    """The GPU's name where lintfit knows it, else its memory: ``rtx4090-24gb``, ``80gb``."""
    if not stated:
        return None, None
    short = stated.partition("-")[0]
    known = next((each for each in (stated, short) if gpus.lookup(each) is not None), None)
    size = re.search(r"(\d+)gb$", stated)
    return known, f"{size[1]}GB" if known is None and size is not None else None


def _run(root: Path, row: Mapping[str, Any]) -> RunResult | None:
    name, memory = _gpu(row.get("gpu") or "")
    flags = {
        "gpu": name,
        "gpu-memory": memory,
        "gpus": row.get("gpus"),
        "seq-len": row.get("seq_len"),
        "images": row.get("images"),
        "versions": row.get("versions"),
    }
    if name is None and memory is None and row["what"] in ("GPU size", "fits on"):
        flags["gpu-memory"] = f"{row['stated_gib']}GiB"
    options = from_flags({name: str(value) for name, value in flags.items() if value is not None})
    with chdir(root), _named(root, row) as path:
        _, results = load_runs([path], options)
    return next((result for result in results if result.run.origin.kind in ("recipe", "launch")), None)


def said(checkouts: Path, row: Mapping[str, Any]) -> Said:
    """What lintfit says of a row."""
    root = checkout(checkouts, row["repo"])
    if root is None:
        return Said(row, "no checkout")
    result = _run(root, row)
    if result is None:
        return Said(row, "no run")
    peak = result.estimate.peak.likely / GIB if result.estimate is not None else None
    held = result.estimate.allocated_bytes / GIB if result.estimate is not None else None
    return Said(row, result.verdict.value, peak, held, "; ".join(result.unknown)[:160])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkouts", type=Path)
    parser.add_argument("--all", action="store_true", help="list every row, not only those that do not fit")
    arguments = parser.parse_args()
    rows = [json.loads(line) for line in TABLE.read_text(encoding="utf-8").splitlines()]
    found = [said(arguments.checkouts.absolute(), row) for row in rows]
    for each in found:
        if arguments.all or each.verdict == "does-not-fit":
            print(each)
    print(f"{len(found)} rows: {dict(Counter(each.verdict for each in found))}")
    short = sum(each.verdict == "does-not-fit" and each.row.get("tied", True) for each in found)
    print(f"stated to run as the recipe stands, and said not to fit: {short}")
    for name, full in (("full", True), ("not full", False)):
        errors = [abs(each.error) for each in found if each.error is not None and bool(each.row["length_full"]) is full]
        if errors:
            worst = max(errors)
            print(f"sequences {name}: {len(errors)} measured, median error {median(errors):.1%}, largest {worst:.0%}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
