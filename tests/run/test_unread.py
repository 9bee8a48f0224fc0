"""Trainings that lintfit has not read: no verdict, whatever the trainer is called."""

from __future__ import annotations

from pathlib import Path

import pytest

from lintfit.commands.check import load_runs
from lintfit.options.model import Options

HEAD = """import deepspeed
from transformers import AutoModelForCausalLM, Trainer

model = AutoModelForCausalLM.from_pretrained("meta-llama/Llama-2-7b-hf")
"""
OWN = """
class FusedTrainer{base}:
    def __init__(self, model, training_args):
        self.engine, _, _, _ = deepspeed.initialize(model=model, config="ds.json"{given})

    def train(self):
        for batch in self.batches:
            loss = self.engine(**batch).loss
            {update}


FusedTrainer(model=model, training_args=None).train()
"""
FUSED = "self.optimizer.fused_backward(loss, 0.1)"
STEPS = "self.engine.backward(loss); self.engine.step()"
ADAMW = ', "optimizer": {"type": "AdamW", "params": {"lr": 1e-5}}'


@pytest.mark.parametrize(
    ("given", "update", "config", "read"),
    [
        ("", FUSED, "", False),
        ("", FUSED, ADAMW, True),
        ("", STEPS, "", True),
        (", optimizer=made()", FUSED, "", True),
    ],
)
def test_weights_that_a_loop_updates_itself(tmp_path: Path, given: str, update: str, config: str, read: bool) -> None:
    (tmp_path / "ds.json").write_text(f'{{"train_micro_batch_size_per_gpu": 1, "fp16": {{"enabled": true}}{config}}}')
    (tmp_path / "train.py").write_text(HEAD + OWN.format(base="", given=given, update=update))
    (tmp_path / "run.sh").write_text("deepspeed --num_gpus 1 train.py\n")
    _, results = load_runs([tmp_path], Options(gpu="RTX 3090"))
    (run,) = [result.run for result in results if result.run.launch is not None]
    assert (run.spec is not None) is read
    assert any("updates the weights itself" in reason for reason in run.unknown) is not read


@pytest.mark.parametrize("base", ["", "(object)", "(Base)", "(Trainer)"])
def test_a_trainer_in_which_nothing_comes_from_a_library(tmp_path: Path, base: str) -> None:
    own = "class Base:\n    pass\n" + OWN.format(base=base, given="", update=FUSED)
    (tmp_path / "train.py").write_text(HEAD + own)
    _, results = load_runs([tmp_path], Options(gpu="RTX 3090"))
    (script,) = [result.run.script for result in results]
    assert script is not None
    assert script.facts.trainer is None


@pytest.mark.parametrize(
    "trainer", ["from transformers import Trainer", "from collie.controller.trainer import Trainer"]
)
@pytest.mark.parametrize("launch", ["", "torchrun --nproc_per_node 1 train.py\n"])
def test_a_trainer_of_another_package(tmp_path: Path, trainer: str, launch: str) -> None:
    (tmp_path / "train.py").write_text(f"{HEAD}\n{trainer}\nTrainer(model=model).train()\n")
    if launch:
        (tmp_path / "run.sh").write_text(launch)
    _, results = load_runs([tmp_path], Options(gpu="RTX 3090"))
    (run,) = [result.run for result in results]
    assert (run.spec is not None) is ("transformers" in trainer)
    assert any("a package of its own" in reason for reason in run.unknown) is ("collie" in trainer)
