"""How much processor time a thousand specs take in one process, against ``python -c pass`` in the same minutes.

python -m bench.speed [--repeats 7] [--out bench/results/speed.json]
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
from itertools import cycle, islice, product
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
COUNT = 1000
MODELS = ("meta-llama/Llama-2-7b-hf", "Qwen/Qwen2.5-7B", "mistralai/Mistral-7B-v0.1", "google/gemma-2-9b", "gpt2")
RUNS: tuple[dict[str, Any], ...] = (
    {"gpus": 1},
    {"gpus": 8, "zero_stage": 2, "mixed_precision": "bf16"},
    {"gpus": 8, "zero_stage": 3, "offload_optimizer": "cpu", "mixed_precision": "bf16"},
    {"gpus": 4, "engine": "fsdp", "mixed_precision": "bf16"},
    {"gpus": 1, "method": "lora", "quantization": "nf4", "mixed_precision": "bf16"},
)


def specs(count: int = COUNT) -> list[dict[str, Any]]:
    """Specs that all differ: five models, five ways to run, batches and lengths."""
    lengths = [512 + 8 * number for number in range(count)]
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
        for (model, run, batch, checkpointing), length in zip(islice(kinds, count), lengths, strict=True)
    ]


def timed(command: Sequence[str], environment: dict[str, str]) -> float:
    """Processor seconds of one run (user and system): what else the machine does meanwhile does not count."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environment) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)}: exit {process.returncode}")
    return usage.ru_utime + usage.ru_stime


def measure(repeats: int) -> dict[str, Any]:
    """Medians of interleaved runs in processor seconds, their ratio, and specs a second once the process has begun."""
    with tempfile.TemporaryDirectory() as folder:
        files = {count: Path(folder) / f"{count}.json" for count in (1, COUNT)}
        for count, file in files.items():
            file.write_text(json.dumps(specs(count)))
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONPYCACHEPREFIX": str(Path(folder) / "compiled")}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        commands = {"python -c pass": [sys.executable, "-c", "pass"]}
        for count, file in files.items():
            commands[f"estimate --spec, {count}"] = [sys.executable, "-m", "lintfit", "estimate", "--spec", str(file)]
        seconds: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(repeats + 1):
            for name, command in commands.items():
                seconds[name].append(timed(command, environment))
    medians = {name: statistics.median(found[1:]) for name, found in seconds.items()}
    nothing, single, many = medians.values()
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "python": sys.version.split()[0],
        "processor_seconds": medians,
        "ratio": many / nothing,
        "specs_per_second": (COUNT - 1) / (many - single),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    found = measure(options.repeats)
    print(json.dumps(found, indent=1))
    if options.out:
        options.out.write_text(json.dumps(found, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
