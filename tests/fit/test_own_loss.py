"""What more accumulation does under a ``compute_loss`` of the project's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from lintfit.commands.check import check
from lintfit.findings.model import Applicability
from lintfit.options.model import Options

TRAINER = """\
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments


class Ours(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        outputs = model(**inputs)
        {loss}
        return (loss, outputs) if return_outputs else loss

    def log(self, values):
        print(values)


args = TrainingArguments("out", bf16=True, gradient_checkpointing=True, per_device_train_batch_size=32)
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-0.5B", torch_dtype="bfloat16")
Ours(model=model, args=args, train_dataset=data).train()
"""
MEAN = "loss = outputs.loss"


@pytest.mark.parametrize(
    ("loss", "transformers", "told"),
    [
        (MEAN, "4.57.1", True),
        (MEAN, "4.45.0", False),
        (MEAN + " if num_items_in_batch is None else outputs.loss * 1", "4.57.1", False),
        (MEAN + "\n        self.model_accepts_loss_kwargs = False", "4.57.1", False),
    ],
)
def test_gradients_that_grow_are_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loss: str, transformers: str, told: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(TRAINER.format(loss=loss))
    (tmp_path / "run.sh").write_text("CUDA_VISIBLE_DEVICES=0 python train.py\n")
    (tmp_path / "requirements.txt").write_text(f"transformers=={transformers}\n")
    origins = dict.fromkeys(("gpu", "gpus", "seq_len"), "--flag")
    options = Options(gpu="RTX 3090", gpus=1, seq_len=1024, isolated=True, origins=origins)
    (run,) = check([Path("run.sh")], options).runs
    assert run.plan is not None and run.plan.fix.changes["gradient_accumulation_steps"] > 1
    grown = [effect for effect in run.plan.effects if "num_items_in_batch" in effect]
    assert bool(grown) is told
    if told:
        assert "train.py:5 leaves out num_items_in_batch" in grown[0]
    assert not run.plan.by_hand
    assert run.plan.applicability is (Applicability.UNSAFE if told else Applicability.SAFE)
