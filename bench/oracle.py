"""Compare the estimates with torch's own count of tensors under fake tensors and with published measurements.

Reads ``../shared/data`` beside the repository (``oracle.dev.jsonl``, ``published.dev.jsonl``,
``outcomes.dev.jsonl``); says so and stops where they are missing.

    python bench/oracle.py [--worst 10]
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT.parent / "shared" / "data"
GIB = 2**30

if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from bench.published import as_told  # noqa: E402
from lintfit.memory import estimate  # noqa: E402
from lintfit.memory.reading.parse import spec_from_mapping  # noqa: E402
from lintfit.memory.result import Estimate  # noqa: E402


def rows(name: str, told: bool = False) -> Iterator[tuple[dict[str, Any], Estimate]]:
    """Every row of a data file with the estimate of its spec; ``told``: of what :mod:`bench.published` knows of it."""
    for line in (DATA / name).read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        yield row, estimate(as_told(row) if told else spec_from_mapping(row["spec"]))


def summary(errors: list[float]) -> str:
    """Median, 90th and 95th percentile and maximum of absolute relative errors, in per cent."""
    ordered = sorted(abs(error) for error in errors)

    def at(share: float) -> float:
        return 100 * ordered[min(len(ordered) - 1, int(share * len(ordered)))]

    return f"n {len(ordered)}, median {at(0.5):.4f} %, p90 {at(0.9):.3f} %, p95 {at(0.95):.3f} %, max {at(1):.2f} %"


def fake_tensors() -> list[tuple[float, str]]:
    """Relative error of ``allocated_bytes`` and the case, for every fake-tensor case."""
    return [
        (guess.allocated_bytes / row["allocated_bytes"] - 1, f"{row['id']} ({row['peak_phase']})")
        for row, guess in rows("oracle.dev.jsonl")
    ]


def components() -> list[tuple[float, str]]:
    """Relative error of parameters, gradients, optimizer states and saved activations above 1 GiB."""
    found = []
    for row, guess in rows("oracle.dev.jsonl"):
        truth = row["components"]
        by_name = {moment.name: moment.components for moment in guess.moments}
        step = by_name["optimizer step"]
        pairs = {
            "params": step.get("parameters", 0),
            "grads": step.get("gradients", 0),
            "optimizer": step.get("optimizer_states", 0),
        }
        before = by_name["loss, backward"]
        if row["spec"]["loss"] == "full":
            # At the loss's backward three fp32 logits live, of which one, the log-softmax, is saved.
            saved = before.get("activations", 0) + before.get("logits", 0) - _two_of_three(row, before)
            pairs["saved_activations_at_forward_end"] = saved
        for name, value in pairs.items():
            if truth[name] > GIB:
                found.append((value / truth[name] - 1, f"{row['id']} {name}"))
    return found


def _two_of_three(row: dict[str, Any], parts: Any) -> int:
    config = row["spec"]["model_config"]
    tokens = row["spec"]["micro_batch_size"] * row["spec"]["seq_len"]
    return 8 * int(config["vocab_size"]) * tokens


def published(told: bool = False) -> list[tuple[float, str, str, bool]]:
    """Relative error, the case, its framework, and whether the measurement is of exact allocated bytes.

    ``told``: with what the row's other fields, and the files that it names as its source, say beside the spec.
    """
    found = []
    for row, guess in rows("published.dev.jsonl", told):
        measured = row.get("measured_peak_gib")
        if measured is None:
            continue
        kind = row.get("measure_kind", "")
        allocated = "allocated" in kind or "active" in kind
        value = guess.allocated_bytes if allocated else guess.peak.likely
        group = "fms" if row["id"].startswith("fms-") else row.get("framework", "other")
        if group == "fms" and "fast-ce" in row.get("loss_impl", ""):
            group = "fms, fast cross-entropy kernel"
        found.append((value / GIB / measured - 1, row["id"], group, allocated))
    return found


def nvidia_smi(told: bool = False) -> list[float]:
    """Relative error of the likely peak against nvidia-smi's, for the rows that have it beside the allocated one."""
    return [
        guess.peak.likely / GIB / row["nvidia_smi_gib"] - 1
        for row, guess in rows("published.dev.jsonl", told)
        if row.get("nvidia_smi_gib")
    ]


def contradictions() -> tuple[int, int, float]:
    """Specs that several rows share with different measurements, how many rows, and the widest ratio less one."""
    peaks: dict[str, list[float]] = {}
    for line in (DATA / "published.dev.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row.get("measured_peak_gib"):
            peaks.setdefault(json.dumps(row["spec"], sort_keys=True), []).append(row["measured_peak_gib"])
    apart = {spec: found for spec, found in peaks.items() if max(found) > 1.01 * min(found)}
    return len(apart), sum(map(len, apart.values())), max((max(f) / min(f) - 1 for f in apart.values()), default=0.0)


def outcomes() -> tuple[Counter[tuple[str, str]], list[str]]:
    """How many runs that fitted or died got which verdict, and the runs whose verdict was wrong."""
    counts: Counter[tuple[str, str]] = Counter()
    wrong = []
    for row, guess in rows("outcomes.dev.jsonl"):
        verdict = str(guess.verdict)
        counts[(row["outcome"], verdict)] += 1
        if (row["outcome"], verdict) in (("oom", "fits"), ("fits", "does-not-fit")):
            wrong.append(f"{row['id']}: {row['outcome']}, said {verdict}")
    return counts, wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--worst", type=int, default=10, help="how many of the worst cases to print")
    options = parser.parse_args()
    if not DATA.is_dir():
        print(f"{DATA} is missing: nothing to compare with")
        return 0
    cases = fake_tensors()
    print("fake tensors, allocated_bytes:", summary([error for error, _ in cases]))
    for error, name in sorted(cases, key=lambda case: -abs(case[0]))[: options.worst]:
        print(f"  {100 * error:+.3f} % {name}")
    parts = components()
    print("fake tensors, components above 1 GiB:", summary([error for error, _ in parts]))
    for error, name in sorted(parts, key=lambda case: -abs(case[0]))[: options.worst]:
        print(f"  {100 * error:+.3f} % {name}")
    for told in (False, True):
        found = published(told)
        print("published, " + ("with what the rows say beside it:" if told else "the spec alone:"))
        print("  all:", summary([case[0] for case in found]))
        print("  likely peak against nvidia-smi:", summary(nvidia_smi(told)))
        for group in dict.fromkeys(case[2] for case in found):
            print(f"  {group}:", summary([case[0] for case in found if case[2] == group]))
        for error, name, group, _ in sorted(found, key=lambda case: -abs(case[0]))[: options.worst]:
            print(f"  {100 * error:+.1f} % {name} ({group})")
    counts, wrong = outcomes()
    print("outcomes:", ", ".join(f"{had} said {said}: {count}" for (had, said), count in sorted(counts.items())))
    for line in wrong:
        print("  wrong:", line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
