"""How long a check takes that has next to nothing to do, against check-jsonschema in the same minutes.

    python bench/startup.py [--repeats 15]

Prints a Markdown table: medians of interleaved runs, their ratio to check-jsonschema, the peak resident memory, and
which heavy packages a check of one JSON loads (it should load none). Needs the ``bench`` extra for check-jsonschema.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parent.parent
HEAVY = ("rich", "libcst", "ruamel", "tree_sitter", "tree_sitter_bash", "jsonschema", "torch", "numpy")

CONFIG = {
    "train_micro_batch_size_per_gpu": "auto",
    "gradient_accumulation_steps": "auto",
    "gradient_clipping": 1.0,
    "bf16": {"enabled": "auto"},
    "zero_optimization": {
        "stage": 3,
        "overlap_comm": True,
        "contiguous_gradients": True,
        "offload_optimizer": {"device": "cpu", "pin_memory": True},
        "stage3_gather_16bit_weights_on_model_save": True,
    },
}

UNRELATED = '''"""Something that has nothing to do with training."""

import argparse
from collections import Counter


class Report{number}:
    """Counts words."""

    def __init__(self, limit: int = {number}) -> None:
        self.limit = limit
        self.words: Counter[str] = Counter()

    def add(self, line: str) -> None:
        for word in line.split():
            if len(word) > self.limit:
                self.words[word.lower()] += 1
'''


@dataclass
class Timed:
    """Seconds and peak resident bytes of each run of one command."""

    command: Sequence[str]
    folder: Path
    seconds: list[float] = field(default_factory=list)
    resident: list[int] = field(default_factory=list)

    def run(self) -> None:
        start = time.perf_counter()
        with subprocess.Popen(
            self.command, cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        ) as process:
            error = process.stderr.read() if process.stderr else b""
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        self.seconds.append(time.perf_counter() - start)
        self.resident.append(usage.ru_maxrss * 1024)
        if process.returncode not in (0, 1):
            raise SystemExit(f"{' '.join(self.command)}: exit {process.returncode}: {error.decode()}")

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)


def commands(folder: Path) -> Mapping[str, Timed]:
    """What is compared, by name."""
    lintfit = [sys.executable, "-m", "lintfit", "check", "--isolated"]
    schema = ROOT / "schemas" / "deepspeed.schema.json"
    if not schema.is_file():
        schema = folder / "any.schema.json"
        schema.write_text("{}")
    peer = [sys.executable, "-m", "check_jsonschema", "--schemafile", str(schema), "ds_config.json"]
    return {
        "python -c pass": Timed([sys.executable, "-c", "pass"], folder),
        "check-jsonschema ds_config.json": Timed(peer, folder),
        "lintfit check ds_config.json": Timed([*lintfit, "ds_config.json"], folder),
        "lintfit check unrelated/ (500 Python files)": Timed([*lintfit, "unrelated"], folder),
    }


def loaded_packages(arguments: Sequence[str], folder: Path) -> list[str]:
    """Which of the heavy packages a run of lintfit imports."""
    command = [sys.executable, "-X", "importtime", "-m", "lintfit", "check", "--isolated", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    names = {line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.splitlines()}
    return [name for name in HEAVY if name in names]


def prepare(folder: Path) -> None:
    (folder / "ds_config.json").write_text(json.dumps(CONFIG, indent=2))
    (folder / "unrelated").mkdir()
    for number in range(500):
        (folder / "unrelated" / f"module_{number}.py").write_text(UNRELATED.replace("{number}", str(number)) * 5)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=15)
    repeats = parser.parse_args().repeats
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package is compiled, too
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["PYTHONPYCACHEPREFIX"] = str(folder / "compiled")
        prepare(folder)
        timed = commands(folder)
        for command in timed.values():
            command.run()  # fills the caches of compiled modules
            command.seconds.clear()
        for _ in range(repeats):
            for command in timed.values():
                command.run()
        peer = timed["check-jsonschema ds_config.json"].median
        print("| command | median | of check-jsonschema | peak memory | heavy packages loaded |")
        print("| --- | ---: | ---: | ---: | --- |")
        for label, command in timed.items():
            heavy = "–"
            if label.startswith("lintfit"):
                heavy = ", ".join(loaded_packages(command.command[5:], folder)) or "none"
            size = statistics.median(command.resident) / 2**20
            times = f"{1000 * command.median:.0f} ms | {command.median / peer:.2f}"
            print(f"| `{label}` | {times} | {size:.0f} MiB | {heavy} |")


if __name__ == "__main__":
    main()
