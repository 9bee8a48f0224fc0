"""Real launches: what lintfit resolves against tables of what they say, which were read by hand.

``CHECKOUTS`` holds one folder for each repository, named ``owner+name`` or ``owner/name``, at the commit of its rows.
Each setting is *right*, *wrong* or *unknown* (lintfit says that it cannot tell, or says nothing); a setting that cannot
be known from the files (null in the table) is right where lintfit does not claim to know it. A wrong value that lintfit
marks as assumed counts as wrong and is listed as assumed.

A launch that stands in a page of Markdown or in a docstring is copied into a file of its own beside the others while
it is looked at, with the placeholders of its ``fill`` filled in, but where the row is to be read ``as_written``;
``cwd`` is the folder to start it from, and ``command`` a launch of what has no line of its own. A row with ``alone`` is
a command that people type where the script is not at hand: it is read in an empty folder and needs no checkout. A row
with ``recipe`` names a front end's recipe alone, which no launch line starts; ``also`` has further right values of a
setting. A row with ``notebook`` names the line of a notebook's JSON at which its training starts.

    python -m bench.launches CHECKOUTS [--table launches_2.jsonl] [--all] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import chdir, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from bench.checkouts import checkout  # noqa: E402
from lintfit.commands.check import load_runs  # noqa: E402
from lintfit.options.model import Options  # noqa: E402
from lintfit.run.model import Run  # noqa: E402
from lintfit.sources.script.model import ScriptFacts  # noqa: E402

DEFAULTS: Mapping[str, Any] = {
    "zero_stage": 0,
    "offload_optimizer": "none",
    "offload_param": "none",
    "gradient_checkpointing": False,
    "mixed_precision": "no",
    "quantization": None,
}
"""What a run without such a setting has; the first three only where no DeepSpeed runs."""


LAUNCHERS = (
    ("torch.distributed", r"-m torch\.distributed\.(run|launch)"),
    ("torchrun", r"\btorchrun\b"),
    ("deepspeed", r"\bdeepspeed (?!zero)"),
    ("accelerate", r"\baccelerate launch"),
    ("front end", r"\b(litgpt|swift|llamafactory-cli|axolotl|tune|trl) [a-z_]+"),
    ("python", r"\bpython3? "),
)


@dataclass(frozen=True, slots=True)
class Answer:
    """What lintfit says of one setting: a value with the kind of its provenance, or that it does not know."""

    value: Any
    known: bool
    kind: str = ""
    where: str = ""


def rows(table: str) -> list[dict[str, Any]]:
    """The table of facts of that name."""
    return [json.loads(line) for line in (ROOT / "bench/launches" / table).read_text("utf-8").splitlines()]


def _quoted(lines: Sequence[str], first: int) -> str:
    """The command that begins on a line of a page or a docstring, up to the line without a trailing backslash."""
    last = first
    while lines[last - 1].rstrip().endswith("\\") and last < len(lines):
        last += 1
    return "\n".join(line.rstrip().replace("\\\\", "\\") for line in lines[first - 1 : last])


@contextmanager
def _launcher(root: Path, row: Mapping[str, Any]) -> Iterator[tuple[Path, int | None]]:
    """The launcher of a row and the line of its launch; None for a command that was copied into a file of its own."""
    if "recipe" in row:
        yield Path(row["recipe"]), None
        return
    if "notebook" in row:
        yield Path(row["notebook"]), row["line"]
        return
    path = root / row["launcher"]
    if row.get("as_written") or ("command" not in row and path.suffix not in (".md", ".py")):
        yield Path(row["launcher"]), row["line"]
        return
    command = row.get("command") or _quoted(path.read_text("utf-8").splitlines(), row["line"])
    for placeholder, value in row.get("fill", {}).items():
        command = command.replace(placeholder, value)
    copy = Path(row.get("cwd", "."), "lintfit-launch.sh")
    (root / copy).write_text(f"{command}\n", "utf-8")
    try:
        yield copy, None
    finally:
        (root / copy).unlink()


@contextmanager
def _folder(folder: Path, row: Mapping[str, Any]) -> Iterator[Path | None]:
    """Where a row's launch is read: in the repository's checkout (None where there is none), or in an empty folder."""
    if row.get("alone"):
        with TemporaryDirectory() as empty:
            yield Path(empty)
    else:
        yield checkout(folder, row["repo"])


def run_of(root: Path, row: Mapping[str, Any]) -> Run | None:
    """The run of a row's launch; None where lintfit finds no launch there."""
    with chdir(root), _launcher(root, row) as (launcher, line):
        _, results = load_runs([launcher], Options())
    runs = [result.run for result in results]
    if "notebook" in row:
        return next((run for run in runs if run.id == f"{row['notebook']}:{line}"), None)
    if "recipe" in row:
        return next((run for run in runs if run.origin.kind == "recipe"), None)
    return next((run for run in runs if run.launch is not None and line in (None, run.launch.line)), None)


def place_of(row: Mapping[str, Any]) -> str:
    """Where a row's launch or recipe stands in its repository."""
    path = row.get("recipe") or row.get("notebook") or row["launcher"]
    return path if "recipe" in row else f"{path}:{row['line']}"


def kind_of(root: Path, row: Mapping[str, Any]) -> str:
    """The launcher's name, or the front end's."""
    if "front_end" in row:
        return str(row["front_end"])
    if "notebook" in row:
        return "notebook"
    path = root / row["launcher"]
    if "command" in row:
        text = row["command"]
    else:
        lines = path.read_text("utf-8", errors="replace").splitlines()
        text = _quoted(lines, row["line"])
        if "training_commands" in text or "$CMD" in text or "SCRIPT" in text:
            text = "\n".join(lines[: row["line"]])
    found = [(match.start(), name) for name, pattern in LAUNCHERS for match in [re.search(pattern, text)] if match]
    return min(found)[1] if found else "other"


def _decides(facts: ScriptFacts) -> bool:
    """Whether the calls are in sight whose silence means a library's default, or a loop in plain PyTorch."""
    decisive = (facts.training_arguments, facts.accelerator, facts.initialize)
    return any(call is not None for call in decisive) or (facts.trains and facts.trainer is None)


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


def judge(expected: Any, given: Answer, name: str, also: Sequence[Any] = ()) -> str:
    """``right``, ``wrong``, ``assumed`` (wrong, but marked as assumed) or ``unknown``; ``also`` are right as well."""
    if expected is None and name != "quantization":
        return "right" if not given.known or given.value is None or given.kind == "assumed" else "wrong"
    if not given.known:
        return "unknown"
    value = given.value.rstrip("/") if name == "model" and isinstance(given.value, str) else given.value
    if value in (expected, *also) or given.value == expected:
        return "right"
    return "assumed" if given.kind == "assumed" else "wrong"


@dataclass(frozen=True, slots=True)
class Judged:
    """One setting of one row."""

    row: Mapping[str, Any]
    launcher: str
    name: str
    judgement: str
    given: Answer

    def __str__(self) -> str:
        said = self.given.value if self.given.known else "unknown"
        place = f"{self.row['repo']} {place_of(self.row)}"
        expected = self.row["settings"][self.name]
        return f"{self.judgement:8} {place} {self.name}: {said} instead of {expected} ({self.given.where})"


def compare(folder: Path, table: str, half: str | None = None) -> Iterator[Judged]:
    """Every setting of every row whose repository is there; of one half of the table, where that is asked for."""
    for row in rows(table):
        if half is not None and bool(row.get("held")) is not (half == "held"):
            continue
        with _folder(folder, row) as root:
            if root is None:
                continue
            run, launcher = run_of(root, row), kind_of(root, row)
        for name, expected in row["settings"].items():
            given = answer(run, name) if run is not None else Answer(None, False, where="no launch found")
            also = row.get("also", {}).get(name, ())
            yield Judged(row, launcher, name, judge(expected, given, name, also), given)


def counts(found: Sequence[Judged]) -> dict[str, dict[str, Counter[str]]]:
    """How many are right, wrong, assumed and unknown: by setting, by launcher, and in all."""
    groups: dict[str, dict[str, Counter[str]]] = {"setting": {}, "launcher": {}, "all": {}}
    for judged in found:
        for group, name in (("setting", judged.name), ("launcher", judged.launcher), ("all", "all")):
            groups[group].setdefault(name, Counter())[judged.judgement] += 1
    return groups


def main() -> int:
    """Print everything that is not right and the counts; 1 where a wrong value is not assumed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("checkouts", nargs="?", default=os.environ.get("LINTFIT_CHECKOUTS", ""))
    parser.add_argument("--table", default="launches.jsonl", help="a table of bench/launches")
    parser.add_argument("--half", choices=("first", "held"), help="the rows that are kept back, or all others")
    parser.add_argument("--all", action="store_true", help="list right answers as well")
    parser.add_argument("--json", type=Path, help="write the counts there")
    options = parser.parse_args()
    found = list(compare(Path(options.checkouts).absolute(), options.table, options.half)) if options.checkouts else []
    if not found:
        print(f"no checkouts of the repositories in {options.table}: nothing to compare")
        return 0
    for judged in found:
        if judged.judgement != "right" or options.all:
            print(judged)
    launches = len({(judged.row["repo"], place_of(judged.row)) for judged in found})
    lost = {place_of(judged.row) for judged in found if judged.given.where == "no launch found"}
    groups = counts(found)
    print(f"\n{f'{launches} launches':30} right wrong assumed unknown")
    for name, count in (item for group in groups.values() for item in group.items()):
        print(f"{name:30} {count['right']:5} {count['wrong']:5} {count['assumed']:7} {count['unknown']:7}")
    total = groups["all"]["all"]
    print(f"{launches - len(lost)} of {launches} found, ", end="")
    print(f"{100 * total['right'] / len(found):.1f} % right, {100 * total['wrong'] / len(found):.1f} % wrong")
    if options.json:
        options.json.write_text(json.dumps({"launches": launches, **groups}, indent=1) + "\n", "utf-8")
    return 1 if total["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
