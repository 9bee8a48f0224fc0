"""What bench/gpu/run.py recorded on a GPU, against lintfit.

python -m bench.gpu.compare bench/results/gpu.json
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

GIB = 2**30
PEAKS = ("forward", "backward", "step")
"""The phases of the steady state; the first step, loading and evaluation are recorded beside them."""


class Row(NamedTuple):
    """One case: torch's allocated peak, what it reserved, what the driver shows, and lintfit's figures (bytes)."""

    name: str
    allocated: int
    reserved: int
    driver: int
    guess_allocated: int
    guess_peak: int


def rows(recording: dict[str, Any]) -> Iterator[Row]:
    """Every case that ran."""
    from lintfit.memory import estimate
    from lintfit.memory.parse import spec_from_mapping

    card = recording["device"]
    hardware: dict[str, Any] = {"gpu_memory_gib": card["bytes"] / GIB} if "bytes" in card else {}
    if hardware:
        from lintfit.catalog import gpus

        hardware |= {"gpu": card["name"]} if gpus.lookup(card["name"]) else {}
    for case in recording["cases"]:
        if "phases" not in case:
            continue
        peaks = [case["phases"][phase] for phase in PEAKS]
        figures = {key: max(peak[key] for peak in peaks) for key in ("allocated", "reserved", "driver")}
        versions = {"transformers": recording["versions"]["transformers"]}
        guess = estimate(spec_from_mapping({**case["spec"], **hardware, "versions": versions}))
        yield Row(case["name"], *figures.values(), guess.allocated_bytes, guess.peak.likely)


def table(recording: dict[str, Any]) -> str:
    """A Markdown table with the differences in per cent; a dry run on the CPU has nothing to compare."""
    if "bytes" not in recording["device"]:
        return f"Recorded on {recording['device']['name']}: nothing to compare."
    lines = [
        "| case | allocated, GiB | lintfit | difference | reserved, GiB | nvidia-smi, GiB | lintfit | difference |",
        "| --- | --: | --: | --: | --: | --: | --: | --: |",
    ]
    for row in rows(recording):
        driver = f"{row.guess_peak / row.driver - 1:+.1%}" if row.driver else "–"
        lines.append(
            f"| {row.name} | {row.allocated / GIB:.3f} | {row.guess_allocated / GIB:.3f} "
            f"| {row.guess_allocated / row.allocated - 1:+.2%} | {row.reserved / GIB:.2f} "
            f"| {row.driver / GIB:.2f} | {row.guess_peak / GIB:.2f} | {driver} |"
        )
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("recording", type=Path)
    print(table(json.loads(parser.parse_args().recording.read_text())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
