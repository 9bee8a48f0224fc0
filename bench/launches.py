"""Forty real launches: what lintfit resolves against what stands in ``launches.jsonl``, which was read by hand.

``CHECKOUTS`` holds one folder for each repository, named ``owner+name`` or ``owner/name``, at the commit of its rows.
Each setting is *right*, *wrong* or *unknown* (lintfit says that it cannot tell, or says nothing); a setting that cannot
be known from the files (null in the table) is right where lintfit does not claim to know it. A wrong value that lintfit
marks as assumed counts as wrong and is listed as assumed.

    python bench/launches.py CHECKOUTS [--all]
"""

from __future__ import annotations

import argparse
import json
import os
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

from lintfit.config import Options  # noqa: E402
from lintfit.engine import load_runs  # noqa: E402
from lintfit.run.model import Run  # noqa: E402
from lintfit.sources.script_model import ScriptFacts  # noqa: E402

DEFAULTS: Mapping[str, Any] = {
    "zero_stage": 0,
    "offload_optimizer": "none",
    "offload_param": "none",
    "gradient_checkpointing": False,
    "mixed_precision": "no",
    "quantization": None,
}
"""What a run without such a setting has; the first three only where no DeepSpeed runs."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What lintfit says of one setting: a value with the kind of its provenance, or that it does not know."""

    value: Any
    known: bool
    kind: str = ""
    where: str = ""


def rows() -> list[dict[str, Any]]:
    """The table of facts."""
    return [json.loads(line) for line in (ROOT / "bench" / "launches.jsonl").read_text("utf-8").splitlines()]


def checkout(folder: Path, repo: str) -> Path | None:
    """Where a repository's files are, None where they are not there."""
    found = (folder / name for name in (repo.replace("/", "+"), repo))
    return next((path for path in found if path.is_dir()), None)


def run_of(root: Path, launcher: str, line: int) -> Run | None:
    """The run of the launch on a line of a launcher; None where lintfit finds no launch there."""
    with chdir(root):
        _, results = load_runs([Path(launcher)], Options())
    for result in results:
        launch = result.run.launch
        if launch is not None and launch.line == line:
            return result.run
    return None


def _decides(facts: ScriptFacts) -> bool:
    """Whether the calls are in sight whose silence means a library's default."""
    return any(call is not None for call in (facts.training_arguments, facts.accelerator, facts.initialize))


def answer(run: Run, name: str) -> Answer:
    """What a run's settings say. FSDP and plain runs have no ZeRO stage and no offload."""
    setting = run.settings.get(name)
    read = run.recipe is not None or (run.script is not None and _decides(run.script.facts))
    if setting is None and not read:
        return Answer(None, False, where="the training is not read")
    if setting is None:
        engine = run.settings.get("engine")
        zero = name in ("zero_stage", "offload_optimizer", "offload_param")
        if (zero or name == "mixed_precision") and engine is not None and engine.value == "deepspeed":
            return Answer(None, False, where="DeepSpeed's config is not read")
        return Answer(DEFAULTS.get(name), name in DEFAULTS, "default")
    if not setting.known:
        return Answer(None, False, setting.provenance.kind, str(setting.provenance))
    return Answer(setting.value, True, setting.provenance.kind, str(setting.provenance))


def judge(expected: Any, given: Answer, name: str) -> str:
    """``right``, ``wrong``, ``assumed`` (wrong, but marked as assumed) or ``unknown``."""
    if expected is None and name != "quantization":
        return "right" if not given.known or given.kind == "assumed" else "wrong"
    if not given.known:
        return "unknown"
    if given.value == expected:
        return "right"
    return "assumed" if given.kind == "assumed" else "wrong"


def compare(folder: Path) -> Iterator[tuple[dict[str, Any], str, str, Answer]]:
    """Every setting of every row whose repository is there: row, name, judgement, answer."""
    for row in rows():
        root = checkout(folder, row["repo"])
        if root is None:
            continue
        run = run_of(root, row["launcher"], row["line"])
        for name, expected in row["settings"].items():
            given = answer(run, name) if run is not None else Answer(None, False, where="no launch found")
            yield row, name, judge(expected, given, name), given


def main() -> int:
    """Print the counts by setting and everything that is not right; 1 where a wrong value is not assumed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("checkouts", nargs="?", default=os.environ.get("LINTFIT_CHECKOUTS", ""))
    parser.add_argument("--all", action="store_true", help="list right answers as well")
    options = parser.parse_args()
    folder = Path(options.checkouts).absolute()
    found = list(compare(folder)) if options.checkouts else []
    if not found:
        print("no checkouts of the repositories in launches.jsonl: nothing to compare")
        return 0
    counts: dict[str, Counter[str]] = {}
    for row, name, judgement, given in found:
        counts.setdefault(name, Counter())[judgement] += 1
        if judgement != "right" or options.all:
            said = given.value if given.known else "unknown"
            place = f"{row['repo']} {row['launcher']}:{row['line']}"
            print(f"{judgement:8} {place} {name}: {said} instead of {row['settings'][name]} ({given.where})")
    total = Counter(judgement for _, _, judgement, _ in found)
    launches = len({(row["repo"], row["launcher"], row["line"]) for row, *_ in found})
    print(f"\n{'setting':30} right wrong assumed unknown")
    for name, count in [*counts.items(), (f"all of {launches} launches", total)]:
        print(f"{name:30} {count['right']:5} {count['wrong']:5} {count['assumed']:7} {count['unknown']:7}")
    print(f"{100 * total['right'] / len(found):.1f} % right")
    return 1 if total["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
