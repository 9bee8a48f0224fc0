"""The goals of speed, measured as ratios in one run: ``python -m bench.speed --goals`` (see there).

Whole processes, processor seconds and seconds on the clock, medians of interleaved runs. Peers work on the same
files: check-jsonschema validates a DeepSpeed JSON by lintfit's schema, ``fixit lint`` reads a script with libcst.
``cold`` runs with ``--no-cache``; ``warm`` finds the report of the run before; ``edited`` has one script changed since.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from bench.startup import CONFIG, UNRELATED

ROOT = Path(__file__).resolve().parents[1]
LINES = 1000
FILES = 5000
SHORT = {"pass": 10, "json": 3, "check-jsonschema": 3}
"""How often these run each time: what takes hundredths of a second differs by as much."""
COMPILING = ("json", "script", "unrelated")
"""Run once before anything is timed: they compile what all others load. The peers' programs are compiled already."""
SCRIPT_HEAD = """import torch
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B", torch_dtype=torch.bfloat16)
arguments = TrainingArguments("out", per_device_train_batch_size=4, bf16=True, gradient_checkpointing=True)
Trainer(model=model, args=arguments).train()
"""
SCRIPT_PART = '''
def part_{number}(batch, limit={number}):
    """Cuts a batch and counts what is left."""
    kept = [row for row in batch if len(row["input_ids"]) <= limit]
    if not kept:
        raise ValueError(f"nothing is shorter than {limit}")
    lengths = torch.tensor([len(row["input_ids"]) for row in kept])
    for index, row in enumerate(kept):
        row["length"] = lengths[index].item()
    return kept, lengths.float().mean()
'''


@dataclass
class Command:
    """One command that is timed, and what is done before each run."""

    words: Sequence[str]
    folder: Path
    before: Callable[[int], None] = lambda _: None
    processor: list[float] = field(default_factory=list)
    clock: list[float] = field(default_factory=list)
    resident: list[float] = field(default_factory=list)

    def run(self, turn: int, environment: Mapping[str, str]) -> None:
        self.before(turn)
        start = time.perf_counter()
        null = subprocess.DEVNULL
        with subprocess.Popen(self.words, cwd=self.folder, env=environment, stdout=null, stderr=null) as process:
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode not in (0, 1):
            raise SystemExit(f"{' '.join(self.words)}: exit {process.returncode}")
        self.clock.append(time.perf_counter() - start)
        self.processor.append(usage.ru_utime + usage.ru_stime)
        self.resident.append(usage.ru_maxrss / 1024)


@dataclass(frozen=True)
class Goal:
    """What a command is held against: a ratio to another one, seconds on the clock, or MiB."""

    name: str
    command: str
    of: str
    most: float


GOALS = (
    Goal("one DeepSpeed JSON", "json", "check-jsonschema", 0.45),
    Goal(f"a script of {LINES} lines", "script", "fixit", 0.25),
    Goal("a repository, cold", "cold", "pass", 550),
    Goal("a repository, warm", "warm", "pass", 20),
    Goal("a repository, one script edited", "edited", "pass", 30),
    Goal(f"{FILES} unrelated files", "unrelated", "s", 1.0),
    Goal("memory of the repository, cold", "cold", "MiB", 300),
)


def commands(folder: Path, repository: Path | None, peers: Path) -> dict[str, Command]:
    """What is timed, by name."""
    check = [sys.executable, "-m", "lintfit", "check", "--isolated"]
    cold = [*check, "--no-cache"]
    (folder / "ds_config.json").write_text(json.dumps(CONFIG, indent=2))
    parts = range((LINES - SCRIPT_HEAD.count("\n")) // SCRIPT_PART.count("\n"))
    script = SCRIPT_HEAD + "".join(SCRIPT_PART.replace("{number}", str(number)) for number in parts)
    (folder / "train.py").write_text(script)
    (folder / "unrelated").mkdir()
    for number in range(FILES):
        (folder / "unrelated" / f"module_{number}.py").write_text(UNRELATED.replace("{number}", str(number)))
    schema = ROOT / "schemas" / "deepspeed.schema.json"
    validate = [str(peers / "check-jsonschema"), "--schemafile", str(schema), "ds_config.json"]
    found = {
        "pass": Command([sys.executable, "-c", "pass"], folder),
        "check-jsonschema": Command(validate, folder),
        "json": Command([*cold, "ds_config.json"], folder),
        "fixit": Command([str(peers / "fixit"), "lint", "train.py"], folder),
        "script": Command([*cold, "train.py"], folder),
        "unrelated": Command([*cold, "unrelated"], folder),
    }
    if repository is not None:
        tree = folder / "repository"
        shutil.copytree(repository, tree, symlinks=True, ignore=shutil.ignore_patterns(".git"))
        edited = next(path for path in sorted(tree.rglob("*.py")) if "Trainer(" in path.read_text("utf-8", "replace"))
        text = edited.read_text("utf-8")

        def edit(turn: int) -> None:
            edited.write_text(f"{text}\n# {turn}\n")

        found["cold"] = Command([*cold, "."], tree)
        found["edited"] = Command([*check, "."], tree, edit)
        found["warm"] = Command([*check, "."], tree)
    return found


def measure(repeats: int, repository: Path | None, peers: Path) -> str:
    """The table of goals, in Markdown."""
    with tempfile.TemporaryDirectory() as top:
        folder = Path(top)
        own = {"PYTHONPATH": str(ROOT), "PYTHONPYCACHEPREFIX": f"{top}/compiled", "XDG_CACHE_HOME": f"{top}/cache"}
        environment = {**os.environ, **own}
        for unwanted in ("PYTHONDONTWRITEBYTECODE", "LINTFIT_NO_CACHE"):
            environment.pop(unwanted, None)
        timed = commands(folder, repository, peers)
        for name in COMPILING:
            replace(timed[name], processor=[], clock=[], resident=[]).run(0, environment)
        for turn in range(repeats + 1):
            for name, command in timed.items():
                for _ in range(SHORT.get(name, 1)):
                    command.run(turn, environment)
    rows = [
        "| goal | measured | at most | seconds on the clock | processor seconds | MiB |",
        "| --- " + "| ---: " * 5 + "|",
    ]
    for goal in GOALS:
        if goal.command not in timed:
            continue
        command = timed[goal.command]
        clock, processor, resident = (_typical(each) for each in (command.clock, command.processor, command.resident))
        if goal.of == "s":
            measured, most = f"{clock:.2f} s", f"{goal.most} s"
        elif goal.of == "MiB":
            measured, most = f"{resident:.0f} MiB", f"{goal.most:.0f} MiB"
        else:
            measured = f"{processor / _typical(timed[goal.of].processor):.2f} × {goal.of}"
            most = f"{goal.most} ×"
        rows.append(f"| {goal.name} | {measured} | {most} | {clock:.2f} | {processor:.2f} | {resident:.0f} |")
    return "\n".join(rows)


def _typical(values: Sequence[float]) -> float:
    """The median of all runs but the first, which compiles and fills caches."""
    return statistics.median(values[1:] or values)
