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
    """One case: torch's allocated peak, what it reserved, what the driver shows, and lintfit's figures (bytes).

    ``phases``: allocated at most, and lintfit's figure, by phase.
    """

    name: str
    allocated: int
    reserved: int
    driver: int
    guess_allocated: int
    guess_peak: int
    phases: dict[str, tuple[int, int]]


def rows(recording: dict[str, Any]) -> Iterator[Row]:
    """Every case that ran to its end. cuBLAS's workspaces, which torch allocates, are taken off what is allocated."""
    from lintfit.memory import estimate
    from lintfit.memory.reading.parse import spec_from_mapping

    versions = {"transformers": recording["versions"]["transformers"]}
    hardware = _hardware(recording["device"])
    for case in recording["cases"]:
        if "error" in case or "skipped" in case:
            continue
        peaks = [case["phases"][phase] for phase in PEAKS]
        figures = {key: max(peak[key] for peak in peaks) for key in ("allocated", "reserved", "driver")}
        scratch = case.get("workspaces", 0)
        figures["allocated"] -= scratch
        guess = estimate(spec_from_mapping({**case["spec"], **hardware, "versions": versions}))
        phases = {}
        for phase in (*PEAKS, "evaluate"):
            points = [moment.allocated for moment in guess.moments if moment.phase == phase]
            if phase in case["phases"] and points:
                phases[phase] = case["phases"][phase]["allocated"] - scratch, max(points)
        yield Row(case["name"], *figures.values(), guess.allocated_bytes, guess.peak.likely, phases)


def _hardware(card: dict[str, Any]) -> dict[str, Any]:
    if "bytes" not in card:
        return {}
    from lintfit.catalog import gpus

    return {"gpu_memory_gib": card["bytes"] / GIB} | ({"gpu": card["name"]} if gpus.lookup(card["name"]) else {})


def table(recording: dict[str, Any]) -> str:
    """Markdown tables with the differences in per cent; a dry run on the CPU has nothing to compare."""
    if "bytes" not in recording["device"]:
        return f"Recorded on {recording['device']['name']}: nothing to compare."
    found = list(rows(recording))
    lines = [
        "| case | allocated, GiB | lintfit | difference | reserved, GiB | nvidia-smi, GiB | lintfit | difference |",
        "| --- | --: | --: | --: | --: | --: | --: | --: |",
    ]
    for row in found:
        driver = f"{row.guess_peak / row.driver - 1:+.1%}" if row.driver else "–"
        lines.append(
            f"| {row.name} | {row.allocated / GIB:.3f} | {row.guess_allocated / GIB:.3f} "
            f"| {row.guess_allocated / row.allocated - 1:+.2%} | {row.reserved / GIB:.2f} "
            f"| {row.driver / GIB:.2f} | {row.guess_peak / GIB:.2f} | {driver} |"
        )
    phases = (*PEAKS, "evaluate")
    lines += ["", "What is allocated, by phase: lintfit's difference.", ""]
    lines += [f"| case | {' | '.join(phases)} |", "| --- |" + " --: |" * len(phases)]
    for row in found:
        cells = [_difference(row.phases[phase]) if phase in row.phases else "–" for phase in phases]
        lines.append(f"| {row.name} | {' | '.join(cells)} |")
    lines += [f"\n{case['name']}: {case['error']}" for case in recording["cases"] if "error" in case]
    return "\n".join(lines)


def _difference(figures: tuple[int, int]) -> str:
    counted, guess = figures
    return f"{guess / counted - 1:+.2%}" if counted > 0 else "–"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("recording", type=Path)
    print(table(json.loads(parser.parse_args().recording.read_text())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
