"""How long a check of one DeepSpeed JSON takes, against check-jsonschema with the same schema in the same minutes.

    python bench/schemas.py [--repeats 21] [--config ds_config.json]

Runs both commands in turn and prints the medians and their ratio; exits with 1 where it is above 0.5. Needs the
``bench`` extra.
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
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TARGET = 0.5

CONFIG = {
    "train_micro_batch_size_per_gpu": "auto",
    "gradient_accumulation_steps": "auto",
    "gradient_clipping": 1.0,
    "bf16": {"enabled": "auto"},
    "optimizer": {"type": "AdamW", "params": {"lr": "auto", "betas": "auto", "eps": "auto", "weight_decay": "auto"}},
    "zero_optimization": {
        "stage": 3,
        "overlap_comm": True,
        "contiguous_gradients": True,
        "sub_group_size": 1e9,
        "reduce_bucket_size": "auto",
        "stage3_prefetch_bucket_size": "auto",
        "stage3_param_persistence_threshold": "auto",
        "stage3_max_live_parameters": 1e9,
        "offload_optimizer": {"device": "cpu", "pin_memory": True},
        "stage3_gather_16bit_weights_on_model_save": True,
    },
    "steps_per_print": 2000,
    "wall_clock_breakdown": False,
}


def seconds(command: Sequence[str], folder: Path) -> float:
    """Wall time of one run. Raises SystemExit where it does not end with 0: a config without mistakes is compared."""
    start = time.perf_counter()
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    taken = time.perf_counter() - start
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: exit {done.returncode}: {done.stdout}{done.stderr}")
    return taken


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=21)
    parser.add_argument("--config", type=Path, help="a DeepSpeed JSON without mistakes (default: a usual one)")
    options = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package is compiled, too
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["PYTHONPYCACHEPREFIX"] = str(folder / "compiled")
        text = options.config.read_text("utf-8") if options.config else json.dumps(CONFIG, indent=2)
        (folder / "ds.json").write_text(text, "utf-8")
        schema = str(ROOT / "schemas" / "deepspeed.schema.json")
        commands = {
            "lintfit check ds.json": [sys.executable, "-m", "lintfit", "check", "--isolated", "ds.json"],
            "check-jsonschema": [sys.executable, "-m", "check_jsonschema", "--schemafile", schema, "ds.json"],
        }
        taken: dict[str, list[float]] = {label: [] for label in commands}
        for command in commands.values():
            seconds(command, folder)  # fills the caches of compiled modules
        for _ in range(options.repeats):
            for label, command in commands.items():
                taken[label].append(seconds(command, folder))
    medians = {label: statistics.median(times) for label, times in taken.items()}
    ratio = medians["lintfit check ds.json"] / medians["check-jsonschema"]
    for label, median in medians.items():
        print(f"{label}: median {1000 * median:.0f} ms of {options.repeats}")
    print(f"ratio {ratio:.2f} (at most {TARGET})")
    return 0 if ratio <= TARGET else 1


if __name__ == "__main__":
    sys.exit(main())
