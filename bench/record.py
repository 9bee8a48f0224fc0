"""The figures in ``tests/recordings/`` that lintfit's tests hold it to, and how they are made again.

    python -m bench.record                           # which kinds there are, how many figures, made with what
    python -m bench.record steps --check             # measure them again and say which differ (needs the bench extra)
    python -m bench.record steps --update            # the same, and write what was measured
    python -m bench.record steps --update --only bert

A recording is JSON with the ``versions`` that it was measured with and ``groups`` of cases: what a group is about, the
``models`` (the content of a ``config.json``) and the part of a spec that its cases share, and for each case the rest of
its spec and the figure. ``within`` is how far lintfit may be off. A group that is ``kept`` says why no program makes it
again. Nothing here needs torch before something is measured; what a group needs beside the bench extra (auto-gptq, or
timm with torchvision) it says itself.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from time import monotonic
from typing import Any

from lintfit.catalog.attention import has_sdpa
from lintfit.catalog.models import code_of
from lintfit.memory.versions import NEWEST_TRANSFORMERS

FOLDER = Path(__file__).resolve().parents[1] / "tests" / "recordings"
MIB = 2**20
PLAIN: Mapping[str, Any] = {
    "weights_dtype": "fp32", "mixed_precision": "no", "method": "full", "optimizer": "sgd", "lora_dropout": 0.0,
    "gradient_checkpointing": False, "use_reentrant": False,
}  # fmt: skip
"""What a spec that says nothing of it means to the programs that measure."""

Group = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """One figure."""

    group: str
    name: str
    spec: dict[str, Any]
    """As lintfit reads it."""
    bytes: float
    within: float
    phase: str = ""
    """The phase of which ``bytes`` is the peak; of the whole step where empty."""

    def __str__(self) -> str:
        return f"{self.group}: {self.name}"


def read(kind: str) -> dict[str, Any]:
    """A recording as it is in its file."""
    found: dict[str, Any] = json.loads((FOLDER / f"{kind}.json").read_text("utf-8"))
    return found


def cases(kind: str) -> list[Case]:
    """All figures of a kind, each with the whole spec of its run."""
    recording = read(kind)
    versions = {name: number for name, number in recording["versions"].items() if name == "transformers"}
    return [_case(group, case, versions) for group in recording["groups"] for case in group["cases"]]


def _case(group: Group, case: Mapping[str, Any], versions: Mapping[str, str]) -> Case:
    given = {"versions": dict(versions), **spec_of(group, case)}
    return Case(group["name"], case["name"], given, bytes_of(case), group["within"], case.get("phase", ""))


def spec_of(group: Group, case: Mapping[str, Any]) -> dict[str, Any]:
    """The spec of a case with what its group shares."""
    config = {"model_config": group["models"][case["model"]]} if "model" in case else {}
    return {**config, **group["spec"], **case["spec"]}


def bytes_of(case: Mapping[str, Any]) -> float:
    """The recorded figure in bytes."""
    found: float = case["bytes"] if "bytes" in case else case["mib"] * MIB
    return found


# --- measuring --------------------------------------------------------------------------------------------------


def _step(group: Group, case: Mapping[str, Any]) -> float:
    from bench import fake_tensors

    return float(fake_tensors.run({"spec": whole(group, case)})["allocated_bytes"])


def _phase(group: Group, case: Mapping[str, Any]) -> float:
    from bench import fake_tensors

    return float(fake_tensors.run({"spec": whole(group, case)})["phases"][case["phase"]])


def _evaluation(group: Group, case: Mapping[str, Any]) -> float:
    from bench import fake_evaluation

    return float(fake_evaluation.run({"spec": whole(group, case)})["allocated_bytes"])


def _layer(group: Group, case: Mapping[str, Any]) -> float:
    from bench import saved_layers

    spec = spec_of(group, case)
    return round(saved_layers.layer_bytes(spec["model_config"], spec["weights_dtype"] == "bf16"), 1)


PRODUCERS: Mapping[str, Callable[[Group, Mapping[str, Any]], float]] = {
    "steps": _step,
    "phases": _phase,
    "evaluations": _evaluation,
    "layers": _layer,
}
"""What measures the bytes of a case, by kind."""

KINDS = (*PRODUCERS, "published_peaks")
"""All kinds; the last is what others have measured and published."""


def whole(group: Group, case: Mapping[str, Any]) -> dict[str, Any]:
    """The spec with nothing left unsaid, for programs that have no defaults."""
    given = spec_of(group, case)
    attention = "sdpa" if has_sdpa(code_of(given["model_config"]["model_type"]), NEWEST_TRANSFORMERS) else "eager"
    return {**PLAIN, "attention": attention, "masked_words": group.get("masked_words", False), **given}


def renewed(case: Mapping[str, Any], found: float) -> dict[str, Any]:
    """The case with the figure that was found; the old one where it is the same to its last digit."""
    if "bytes" in case:
        return {**case, "bytes": found}
    digits = len(str(case["mib"]).partition(".")[2])
    return {**case, "mib": case["mib"] if round(found / MIB, digits) == case["mib"] else round(found / MIB, 3)}


def made_with(versions: Mapping[str, str]) -> dict[str, str]:
    """The same packages as they are installed here."""
    return {name: version(name).partition("+")[0] for name in versions}


def again(kind: str, only: str, *, update: bool) -> int:
    """Measure the cases whose name contains ``only``. The exit status: 1 where one differs or cannot be run."""
    recording = read(kind)
    versions = made_with(recording["versions"])
    if versions != recording["versions"] and (only or not update):
        print(f"recorded with {recording['versions']}, here are {versions}: --update all of them", file=sys.stderr)
        return 2
    wrong = 0
    for group, index in _places(recording, only):
        wrong += _measure(kind, group, index)
        if update:
            (FOLDER / f"{kind}.json").write_text(written({**recording, "versions": versions}), "utf-8")
    return int(wrong > 0)


def _places(recording: Mapping[str, Any], only: str) -> Iterator[tuple[Group, int]]:
    """The groups and the cases' places in them that are asked for; those that are kept stay as they are."""
    for group in recording["groups"]:
        for index, case in enumerate(group["cases"]):
            if "kept" not in group and only in f"{group['name']}: {case['name']}":
                yield group, index


def _measure(kind: str, group: Group, index: int) -> bool:
    """Measure a case, put what was found in its place, and say so. Whether it is another figure than before."""
    case, began = group["cases"][index], monotonic()
    title = f"{group['name']}: {case['name']}"
    try:
        new = renewed(case, PRODUCERS[kind](group, case))
    except Exception as error:  # a case that these libraries refuse must not lose the others
        print(f"{title}: {type(error).__name__}: {' '.join(str(error).split())[:200]}", flush=True)
        return True
    off = bytes_of(new) / bytes_of(case) - 1
    group["cases"][index] = new
    print(f"{title}: {off:+.4%} ({monotonic() - began:.0f} s)", flush=True)
    return abs(off) > group["within"]


def written(recording: Mapping[str, Any]) -> str:
    """The JSON, a line for each model and each case."""
    groups = ",\n".join(_group(group) for group in recording["groups"])
    head = json.dumps({key: value for key, value in recording.items() if key != "groups"}, indent=1)
    return f'{head.removesuffix("}").rstrip()},\n "groups": [\n{groups}\n ]\n}}\n'


def _group(group: Group) -> str:
    head = {key: value for key, value in group.items() if key not in ("models", "cases")}
    lines = [f"   {json.dumps(key)}: {_line(value)}" for key, value in head.items()]
    models = ",\n".join(f"    {json.dumps(key)}: {_line(config)}" for key, config in group["models"].items())
    found = ",\n".join(f"    {_line(case)}" for case in group["cases"])
    lines += [f'   "models": {{\n{models}\n   }}' if models else '   "models": {}', f'   "cases": [\n{found}\n   ]']
    return "  {\n" + ",\n".join(lines) + "\n  }"


def _line(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def listed() -> str:
    """A line for each kind."""
    lines = []
    for kind in KINDS:
        recording = read(kind)
        kept = sum(len(group["cases"]) for group in recording["groups"] if "kept" in group)
        made = ", ".join(f"{name} {number}" for name, number in recording["versions"].items())
        lines.append(f"{kind}: {len(cases(kind))} figures ({kept} kept){made and f', {made}'}")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="*", help=f"{', '.join(PRODUCERS)}; all where none is named")
    parser.add_argument("--only", default="", help="the cases whose name contains this")
    parser.add_argument("--check", action="store_true", help="measure and compare")
    parser.add_argument("--update", action="store_true", help="measure and write")
    options = parser.parse_args()
    if unknown := set(options.kinds) - set(PRODUCERS):
        parser.error(f"no kind {', '.join(sorted(unknown))}; there are {', '.join(PRODUCERS)}")
    if not (options.check or options.update):
        print(listed())
        return 0
    return max(again(kind, options.only, update=options.update) for kind in options.kinds or PRODUCERS)


if __name__ == "__main__":
    sys.exit(main())
