r"""Plans for public launches that do not fit, carried out and held against the real libraries.

``CHECKOUTS`` holds one folder for each repository, named ``owner+name``, at the commit of its rows in
``bench/fixes/launches.jsonl`` (``repo``, ``commit``, ``launch`` as path:line or a recipe's path, ``gpus``: pairs, and
``options``, what a user states beside; ``nth``, which of the commands that a script starts). Each launch is read in a
copy without history and large files. ``--python`` is an interpreter with transformers, accelerate, DeepSpeed, trl, PEFT
and torch, of the time that the projects were written in (transformers 4.45 takes the flags of nearly all of them);
without it nothing is parsed.

    python -m bench.fixes CHECKOUTS [--python PYTHON] [--jobs N] [--kinds N] [--only WORD] \
        [--table FILE] [--diffs FILE] [--out FILE]

Columns: *offered* (a plan exists), *written* (not by hand), *parsed* before and after, *step* (one training step of a
tiny random model on the CPU by the launch's own script, bench/fixing/step_probe.py), *stable* (a second check of what
was written finds that the run fits and offers nothing more), *batch* (a rank's sequences of an optimizer step are
kept, by the parsed arguments), *taken* (the parsed launch says what the plan says), *lost* (comments that are gone).
The diffs are one file of Markdown. Recipes of a front end, which no shell script starts, are parsed by nothing here.
"""

from __future__ import annotations

import argparse
import datetime
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from bench.checkouts import checkout  # noqa: E402
from bench.fixing import carry  # noqa: E402
from bench.fixing.steps import stepped  # noqa: E402
from bench.fixing.trial import said_of  # noqa: E402

LAUNCHES = ROOT / "bench/fixes/launches.jsonl"
SECONDS = 60.0
"""The limit of one step."""


def rows() -> list[dict[str, Any]]:
    """The list of launches."""
    return [json.loads(line) for line in LAUNCHES.read_text("utf-8").splitlines()]


def checked(root: Path, path: str, gpu: str, gpus: int, options: Sequence[str]) -> dict[str, Any]:
    """The JSON report of a check of one file."""
    words = [sys.executable, "-m", "lintfit", "check", path, "--gpu", gpu, "--gpus", str(gpus), *options]
    words += ["--isolated", "--as-found", "--exit-zero", "--output-format", "json"]
    path_of_lintfit = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(words, cwd=root, capture_output=True, text=True, check=True, timeout=300, env=path_of_lintfit)
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def place(report: Mapping[str, Any], launch: str) -> int | None:
    """Which of the runs of a report is the launch: lines that are written before it move its name, not its place."""
    return next((at for at, each in enumerate(report["runs"]) if each["id"] == launch), None)


def offered(report: Mapping[str, Any], at: int | None) -> tuple[dict[str, Any] | None, dict[str, Any] | None, str]:
    """The plan of a report's run and the fix that carries it out, None where there is none, and its verdict."""
    run = report["runs"][at] if at is not None and at < len(report["runs"]) else None
    if run is None:
        return None, None, "no such run"
    own = [(run["id"], rule) for rule in ("does-not-fit", "tight-fit")]
    fixes = (each.get("fix") for each in report["findings"] if (each["run"], each["rule"]) in own)
    fix = next((each for each in fixes if each), None)
    return run["plan"], fix, run["verdict"]


def kept(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool | None:
    """Whether a rank has as many sequences in a step as before, by its arguments; None: they do not say it."""
    counts = []
    for said in (before, after):
        values = said.get("values") or {}
        words = values.get("per_device_train_batch_size"), values.get("gradient_accumulation_steps")
        if not all(isinstance(each, int) for each in words):
            return None
        counts.append(words[0] * words[1])  # type: ignore[operator]
    return counts[0] == counts[1]


TAKEN = {
    "micro_batch_size": "per_device_train_batch_size",
    "gradient_accumulation_steps": "gradient_accumulation_steps",
    "gradient_checkpointing": "gradient_checkpointing",
    "zero_stage": "zero_stage",
}
"""The settings of a plan that a launch's parsed arguments and its DeepSpeed config say, by their names there."""


def taken(steps: Iterable[Mapping[str, Any]], said: Mapping[str, Any]) -> bool | None:
    """Whether the parsed launch says what the steps of its plan come to; None: it says nothing of them."""
    values = {**(said.get("values") or {}), "zero_stage": said.get("zero_stage")}
    pairs = [(values.get(TAKEN[each["setting"]]), each["to"]) for each in steps if each["setting"] in TAKEN]
    held = [value == to for value, to in pairs if value is not None]
    return all(held) if held else None


def tried(root: Path, row: Mapping[str, Any], python: str | None, work: Path) -> Iterator[dict[str, Any]]:
    """One row of the table for each kind of GPU, with the diff."""
    path = row["launch"].partition(":")[0]
    real = Real(python, root, path, row.get("nth", 0), work) if python is not None else None
    for gpu, gpus in row["gpus"]:
        report = checked(root, path, gpu, gpus, row.get("options", []))
        at = place(report, row["launch"])
        plan, fix, verdict = offered(report, at)
        edits = (fix or {}).get("edits") or []
        written = bool(edits) and plan is not None and plan["applicability"] != "display"
        changed = carry.carried_out(root, edits)
        found: dict[str, Any] = {**row, "gpu": gpu, "gpus": gpus, "verdict": verdict, "offered": plan is not None}
        found |= {"written": written, "message": fix and fix["message"], **_plan(plan)}
        found |= {"diff": carry.unified(changed), "lost": carry.lost_comments(changed)}
        if written:
            found |= real.before(gpus) if real is not None else {}
            carry.write(root, changed)
            try:
                again, _, later = offered(checked(root, path, gpu, gpus, row.get("options", [])), at)
                found |= {"stable": again is None and later in ("fits", "tight"), "verdict_after": later}
                found |= real.after(found) if real is not None else {}
            finally:
                carry.take_back(root, changed)
        yield found


class Real:
    """What the real libraries say of one launch in a copy: its arguments, and one step on a tiny model."""

    def __init__(self, python: str, root: Path, path: str, nth: int, work: Path) -> None:
        self.launch = (python, root, path, nth)
        self.work = work
        self.parsed: dict[int, dict[str, Any]] = {}
        self.step: dict[str, Any] | None = None

    def before(self, gpus: int) -> dict[str, Any]:
        """The launch as it was, on GPUs as new as it likes; it is asked once for each number of them."""
        said = self.parsed.get(gpus) or said_of(*self.launch, gpus, self.work)
        self.parsed[gpus] = said
        if said["parsed"] and self.step is None:
            self.step = stepped(*self.launch, gpus, self.work, SECONDS)
        return {"before": said, "step_before": self.step if said["parsed"] else None}

    def after(self, found: Mapping[str, Any]) -> dict[str, Any]:
        """The launch as the copy stands now, where it did before: nothing where it did not."""
        if not found["before"]["parsed"]:
            return {}
        said = said_of(*self.launch, found["gpus"], self.work, found["gpu"])
        made: dict[str, Any] = {
            "after": said,
            "batch": kept(found["before"], said),
            "taken": taken(found["steps"], said),
        }
        if found["step_before"]["stepped"]:
            made["step_after"] = stepped(*self.launch, found["gpus"], self.work, SECONDS, found["gpu"])
        return made


def _plan(plan: Mapping[str, Any] | None) -> dict[str, Any]:
    """What the table says of a plan."""
    if plan is None:
        return {}
    found = {key: plan[key] for key in ("applicability", "steps", "effects")}
    return {"plan": plan["name"], "by_hand": plan.get("by_hand"), **found}


def tried_in_copy(source: Path, row: Mapping[str, Any], python: str | None) -> list[dict[str, Any]]:
    """The table's rows of one launch, made in a copy of its checkout; what goes wrong is said and is no row."""
    with TemporaryDirectory() as folder:
        root = Path(folder, "copy")
        carry.copied(source, root)
        try:
            table = list(tried(root, row, python, Path(folder)))
        except (subprocess.SubprocessError, json.JSONDecodeError) as error:
            print(row["repo"], row["launch"], f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
            return []
    for found in table:
        marks = {key: found.get(key) for key in ("verdict", "offered", "written", "stable", "batch")}
        parsed = [(found.get(key) or {}).get("parsed") for key in ("before", "after")]
        parsed += [(found.get(f"step_{key}") or {}).get("stepped") for key in ("before", "after")]
        print(row["repo"], row["launch"], found["gpu"], marks, parsed, flush=True)
    return table


def told(found: Mapping[str, Any]) -> str:
    """A plan and its diff, for reading."""
    options = " ".join(found.get("options", []))
    head = f"## {found['repo']} {found['launch']} · {found['gpus']} x {found['gpu']} {options}".rstrip()
    if not found["offered"]:
        return f"{head}\n\n{found['verdict']}, no plan.\n"
    how = found["applicability"] + (f"; by hand: {found['by_hand']}" if found["by_hand"] else "")
    steps = "; ".join(f"{each['setting']} {each['from']} -> {each['to']} ({each['path']})" for each in found["steps"])
    parts = [head, f"Plan: {found['plan']} [{how}]", f"Steps: {steps}"]
    parts += [f"Effects: {' '.join(found['effects'])}"] if found["effects"] else []
    parts += [f"Text: {found['message']}"] if found["message"] else []
    parts += ["Comments lost: " + " | ".join(found["lost"])] if found["lost"] else []
    parts += [f"```diff\n{found['diff']}\n```"] if found["diff"] else []
    return "\n\n".join(parts) + "\n"


KEPT = ("repo", "commit", "launch", "gpu", "gpus", "verdict", "plan", "written", "stable", "batch", "taken")


def outcome(found: Mapping[str, Any]) -> dict[str, Any]:
    """A row of the table without any text of the repository, for ``bench/results/fixes.json``."""
    short = {key: found.get(key) for key in KEPT} | {"lost": len(found["lost"]) if found["written"] else 0}
    parsed = {f"parsed {key}": (found.get(key) or {}).get("parsed") for key in ("before", "after")}
    steps = {f"step {key}": (found.get(f"step_{key}") or {}).get("stepped") for key in ("before", "after")}
    stage = (found.get("before") or {}).get("stage") if parsed["parsed before"] is False else None
    return {**short, **parsed, **steps, "not parsed at": stage}


def recorded(table: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What ``bench/results/fixes.json`` holds: the sums, of shell scripts and recipes apart, and every row."""
    shell = [each for each in table if ":" in each["launch"]]
    recipes = [each for each in table if ":" not in each["launch"]]
    sums = {"shell scripts": counted(shell), "recipes": counted(recipes), "all": counted(table)}
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    listed = rows()
    asked = {"launches": len(listed), "pairs": sum(len(each["gpus"]) for each in listed)}
    return {"date": date, "listed": asked, "sums": sums, "rows": [outcome(each) for each in table]}


def counted(table: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """The sums that the bars are about, of the runs that do not fit."""
    total: Counter[str] = Counter()
    launches, whole, moved = set(), set(), set()
    for found in table:
        launches.add((found["repo"], found["launch"]))
        before, after = found.get("before") or {}, found.get("after") or {}
        parsed = found["written"] and bool(before.get("parsed"))
        total["pairs of launch and GPUs"] += 1
        total["runs that do not fit"] += found["verdict"] == "does-not-fit"
        if found["verdict"] != "does-not-fit":
            continue
        if parsed:
            whole.add((found["repo"], found["launch"]))
        if (found.get("step_before") or {}).get("stepped"):
            moved.add((found["repo"], found["launch"]))
        total["offered"] += found["offered"]
        total["written"] += found["written"]
        total["by hand"] += found["offered"] and not found["written"]
        total["parsed before"] += parsed
        total["parsed after"] += parsed and bool(after.get("parsed"))
        total["step before"] += bool((found.get("step_before") or {}).get("stepped"))
        total["step after"] += bool((found.get("step_after") or {}).get("stepped"))
        total["stable"] += bool(found.get("stable"))
        total["batch kept"] += found.get("batch") is True
        total["batch changed"] += found.get("batch") is False
        total["as planned"] += found.get("taken") is True
        total["not as planned"] += found.get("taken") is False
        total["comments lost"] += found["written"] and bool(found["lost"])
    return {"launches": len(launches), "launches parsed": len(whole), "launches with a step": len(moved), **total}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkouts", type=Path)
    parser.add_argument("--python", help="an interpreter that has the real libraries")
    parser.add_argument("--jobs", type=int, default=1, help="launches at a time")
    parser.add_argument("--kinds", type=int, default=3, help="at most so many kinds of GPU for each launch")
    parser.add_argument("--only", default="", help="launches whose repository or path has this word")
    parser.add_argument("--table", type=Path, help="write the table there, as JSON")
    parser.add_argument("--diffs", type=Path, help="write the diffs there, as Markdown")
    parser.add_argument("--out", type=Path, help="write the sums and outcomes there, as bench.report reads them")
    args = parser.parse_args()
    chosen = [{**row, "gpus": row["gpus"][: args.kinds]} for row in rows()]
    chosen = [row for row in chosen if args.only in f"{row['repo']}/{row['launch']}"]
    at_hand = [(source, row) for row in chosen if (source := checkout(args.checkouts, row["repo"]))]
    table: list[dict[str, Any]] = []
    with ThreadPoolExecutor(args.jobs) as pool:
        for part in pool.map(lambda each: tried_in_copy(*each, args.python), at_hand):
            table += part
            if args.table:
                args.table.write_text(json.dumps(table, indent=1), "utf-8")
            if args.diffs:
                args.diffs.write_text("\n".join(told(each) for each in table), "utf-8")
            if args.out:
                args.out.write_text(json.dumps(recorded(table), indent=1) + "\n", "utf-8")
    for name, count in counted(table).items():
        print(f"{name}: {count}")


if __name__ == "__main__":
    main()
