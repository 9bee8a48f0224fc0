"""Optimizers that a script makes and hands to its trainer."""

from __future__ import annotations

import pytest

from lintfit.settings.model import UNKNOWN
from tests.sources.scripts import script, values

TRAINING = """
import torch
from bitsandbytes.optim import PagedAdamW8bit
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

class Own(Trainer):
    def other(self):
        {method}

model = AutoModelForCausalLM.from_pretrained("a/b")
optimizer = PagedAdamW8bit(model.parameters(), lr=1e-4)
{trainer}(model=model, args=TrainingArguments("out", optim="adafactor"){passed}).train()
"""


@pytest.mark.parametrize(
    ("passed", "optimizer"),
    [
        ("", "adafactor"),
        (", optimizers=(optimizer, None)", "paged_adamw_8bit"),
        (", optimizers=(torch.optim.AdamW(model.parameters(), fused=True), None)", "adamw_torch_fused"),
        (", optimizers=(None, schedule())", "adafactor"),
        (", optimizers=(None, None)", "adafactor"),
        (", optimizers=(made(), None)", UNKNOWN),
        (", optimizers=(optimizer if asked() else None, None)", UNKNOWN),
        (", optimizers=both", UNKNOWN),
    ],
)
def test_what_is_handed_to_the_trainer(passed: str, optimizer: object) -> None:
    text = TRAINING.format(trainer="Trainer", passed=passed, method="pass")
    assert values(script(text, ""))["optimizer"] == optimizer


@pytest.mark.parametrize(
    ("body", "optimizer"),
    [
        ("self.optimizer = torch.optim.SGD(self.model.parameters())", "sgd"),
        ("self.optimizer = something(self.model)", UNKNOWN),
        ("return super().create_optimizer()", "adafactor"),
        ("cls, options = Trainer.get_optimizer_cls_and_kwargs(self.args)", "adafactor"),
    ],
)
def test_what_the_trainers_class_makes(body: str, optimizer: object) -> None:
    text = TRAINING.format(trainer="Own", passed="", method=f"pass\n\n    def create_optimizer(self):\n        {body}")
    assert values(script(text, ""))["optimizer"] == optimizer
