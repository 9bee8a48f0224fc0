"""Configs that a launch script makes of others with envsubst."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.run.test_what_runs import runs_of

TRAIN = """
import sys
import yaml
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

with open(sys.argv[1]) as file:
    config = yaml.safe_load(file)
model = AutoModelForCausalLM.from_pretrained("meta-llama/Llama-2-7b-hf")
args = TrainingArguments("out", per_device_train_batch_size=config["batch"])
Trainer(model=model, args=args).train()
"""


@pytest.mark.parametrize(
    ("line", "batch"),
    [
        ("SEED=1 envsubst < recipes/a.yaml > filled.yaml && python train.py filled.yaml", 2),
        ("envsubst '$SEED' <recipes/a.yaml >./filled.yaml\npython train.py filled.yaml", 2),
        ("envsubst <recipes/a.yaml >filled.yaml; envsubst <recipes/b.yaml >filled.yaml;python train.py filled.yaml", 3),
        ("cp -f recipes/a.yaml filled.yaml\npython train.py filled.yaml", 2),
        ("envsubst < recipes/a.yaml > other.yaml && python train.py filled.yaml", 4),
        ("python train.py filled.yaml\nenvsubst < recipes/a.yaml > filled.yaml", 4),
    ],
)  # fmt: skip
def test_what_is_filled_in_is_read_and_not_what_an_earlier_launch_left(tmp_path: Path, line: str, batch: int) -> None:
    (tmp_path / "recipes").mkdir()
    for name, size in (("recipes/a.yaml", 2), ("recipes/b.yaml", 3), ("filled.yaml", 4)):
        (tmp_path / name).write_text(f"batch: {size}\nseed: $SEED\n")
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / "run.sh").write_text(line + "\n")
    (run,) = runs_of(tmp_path, "run.sh")
    assert run["settings"]["micro_batch_size"]["value"] == batch


def test_a_config_that_is_not_there_is_not_what_an_earlier_launch_left(tmp_path: Path) -> None:
    (tmp_path / "filled.yaml").write_text("batch: 4\n")
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / "run.sh").write_text("envsubst < a.yaml > filled.yaml && python train.py filled.yaml\n")
    (run,) = runs_of(tmp_path, "run.sh")
    assert run["settings"]["micro_batch_size"]["value"] is None
