"""How much processor time a thousand specs take in one process, against ``python -c pass`` in the same minutes.

python -m bench.speed [--repeats 7] [--out bench/results/speed.json]
python -m bench.speed --pages    what a thousand pages of Markdown without a launch add to a check of a folder
python -m bench.speed --goals [--repository CHECKOUT] [--peers BIN] [--repeats 3]    all goals of speed, as a table

The goals need check-jsonschema and fixit, best in an environment of their own (``--peers`` names its ``bin``), and a
checkout with many scripts (DeepSpeedExamples has 272 launch scripts).

Whole processes of the command line: ``lintfit estimate --spec FILE``, from the interpreter's start to the end of the
JSON. Two kinds of specs: ``planned``, five models in many ways, as somebody who plans has them; ``measured``, runs
whose memory others have measured or counted (``../shared/data`` beside the repository; left out where that is not
there), of which hardly two have the model and the settings in common.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import count, cycle, islice, product
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT.parent / "shared" / "data"
MEASURED = ("oracle.dev.jsonl", "published.dev.jsonl", "outcomes.dev.jsonl")
COUNT = 1000
MODELS = ("meta-llama/Llama-2-7b-hf", "Qwen/Qwen2.5-7B", "mistralai/Mistral-7B-v0.1", "google/gemma-2-9b", "gpt2")
RUNS: tuple[dict[str, Any], ...] = (
    {"gpus": 1},
    {"gpus": 8, "zero_stage": 2, "mixed_precision": "bf16"},
    {"gpus": 8, "zero_stage": 3, "offload_optimizer": "cpu", "mixed_precision": "bf16"},
    {"gpus": 4, "engine": "fsdp", "mixed_precision": "bf16"},
    {"gpus": 1, "method": "lora", "quantization": "nf4", "mixed_precision": "bf16"},
)


def planned(number: int = COUNT) -> list[dict[str, Any]]:
    """Specs that all differ: five models, five ways to run, batches and lengths."""
    lengths = [512 + 8 * length for length in range(number)]
    kinds = cycle(product(MODELS, RUNS, (1, 2, 4), (True, False)))
    return [
        {
            "model": model,
            **run,
            "gpu": "A100-80GB",
            "micro_batch_size": batch,
            "seq_len": length,
            "gradient_checkpointing": checkpointing,
        }
        for (model, run, batch, checkpointing), length in zip(islice(kinds, number), lengths, strict=True)
    ]


def measured(number: int = COUNT) -> list[dict[str, Any]]:
    """Specs that all differ: those of the data as they are, then again with other lengths; none without the data."""
    files = [DATA / name for name in MEASURED]
    if not all(file.is_file() for file in files):
        return []
    rows = [json.loads(line)["spec"] for file in files for line in file.read_text().splitlines()]
    found: dict[str, dict[str, Any]] = {}
    for turn in count():
        for row in rows:
            spec = {**row, "seq_len": row.get("seq_len", 2048) + 8 * turn}
            found.setdefault(json.dumps(spec, sort_keys=True), spec)
            if len(found) == number:
                return list(found.values())
    return []


def timed(command: Sequence[str], environment: dict[str, str]) -> float:
    """Processor seconds of one run (user and system): what else the machine does meanwhile does not count."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environment) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)}: exit {process.returncode}")
    return usage.ru_utime + usage.ru_stime


def measure(repeats: int) -> dict[str, Any]:
    """Medians of interleaved runs in processor seconds, their ratios, and specs a second once the process has begun."""
    kinds = {"planned": planned(), "measured": measured()}
    lists = {"1": kinds["planned"][:1], **{f"{COUNT} {kind}": found for kind, found in kinds.items() if found}}
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONPYCACHEPREFIX": str(Path(folder) / "compiled")}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        commands = {"python -c pass": [sys.executable, "-c", "pass"]}
        for name, found in lists.items():
            file = Path(folder) / f"{name}.json"
            file.write_text(json.dumps(found))
            commands[f"estimate --spec, {name}"] = [sys.executable, "-m", "lintfit", "estimate", "--spec", str(file)]
        seconds: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(repeats + 1):
            for name, command in commands.items():
                seconds[name].append(timed(command, environment))
    medians = {name: statistics.median(times[1:]) for name, times in seconds.items()}
    nothing, single, *many = medians.values()
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "python": sys.version.split()[0],
        "processor_seconds": medians,
        "ratios": {name: time / nothing for name, time in medians.items()},
        "specs_per_second": [(COUNT - 1) / (time - single) for time in many],
    }


PAGE = """# Title {number}

Some words about python, models and how to train them.

```python
import torch

model = torch.nn.Linear({number}, 2)
```

```bash
pip install -r requirements.txt
git clone https://example.org/a/b && cd b
python serve.py --port {number}
```

| a | b |
| - | - |
""" + "\n".join("A line of prose with nothing in it but `words`." for _ in range(60))


def pages(repeats: int) -> dict[str, Any]:
    """Processor seconds of a check of an empty folder and of one with pages that start nothing; the difference."""
    with tempfile.TemporaryDirectory() as folder:
        empty, full = Path(folder, "empty"), Path(folder, "full")
        empty.mkdir()
        full.mkdir()
        for number in range(COUNT):
            Path(full, f"page_{number}.md").write_text(PAGE.replace("{number}", str(number)))
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONPYCACHEPREFIX": str(Path(folder) / "compiled")}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        seconds: dict[str, list[float]] = {"empty": [], "full": []}
        for _ in range(repeats + 1):
            for name in seconds:
                command = [sys.executable, "-m", "lintfit", "check", "--isolated", str(Path(folder, name))]
                seconds[name].append(timed(command, environment))
    medians = {name: statistics.median(times[1:]) for name, times in seconds.items()}
    return {"processor_seconds": medians, "added": medians["full"] - medians["empty"]}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--pages", action="store_true", help="what pages of Markdown without a launch add")
    parser.add_argument("--goals", action="store_true", help="all goals of speed, as a table")
    parser.add_argument("--repository", type=Path, help="with --goals: a checkout to be checked")
    parser.add_argument("--peers", type=Path, default=Path(sys.executable).parent, help="where the peers' programs lie")
    options = parser.parse_args()
    if options.goals:
        from bench.goals import measure as goals

        print(goals(options.repeats, options.repository, options.peers))
        return 0
    found = pages(options.repeats) if options.pages else measure(options.repeats)
    print(json.dumps(found, indent=1))
    if options.out:
        options.out.write_text(json.dumps(found, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
