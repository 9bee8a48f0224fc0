"""A state dict that a script takes of the whole model that it trains."""

from __future__ import annotations

import pytest

from tests.sources.scripts import script, values

TRAINER = """
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments
model = AutoModelForCausalLM.from_pretrained("m")
trainer = Trainer(model=model, args=TrainingArguments("out"))
trainer.train()
{}
"""
BY_HAND = """
import torch
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP, StateDictType
from transformers import AutoModelForCausalLM
model = AutoModelForCausalLM.from_pretrained("m")
{before}
model = FSDP(model)
for batch in loader:
    model(**batch).loss.backward()
{after}
"""


@pytest.mark.parametrize(
    ("line", "whole"),
    [
        ("state = trainer.model.state_dict()", True),
        ("state = trainer.model_wrapped.state_dict()", True),
        ("if chosen():\n    state = trainer.model.state_dict()", None),
        ("state = trainer.model.lm_head.state_dict()", None),
        ("state = trainer.optimizer.state_dict()", None),
        ("trainer.save_model()", None),
        ("with FSDP.state_dict_type(trainer.model, kind, how):\n    state = trainer.model.state_dict()", None),
        ("trainer.plugin.set_state_dict_type('x')\nstate = trainer.model.state_dict()", None),
    ],
)
def test_of_a_trainers_model(line: str, whole: bool | None) -> None:
    assert values(script(TRAINER.format(line), "")).get("whole_state_dict") is whole


def test_of_a_model_that_is_wrapped_by_hand() -> None:
    def said(**lines: str) -> object:
        text = BY_HAND.format(**{"before": "", "after": "", **lines})
        return values(script(text, "")).get("whole_state_dict")

    assert said(after="torch.save(model.state_dict(), 'm.pt')") is True
    assert said(before="torch.save(model.state_dict(), 'm.pt')") is None
    assert (
        said(after="with FSDP.state_dict_type(model, StateDictType.FULL_STATE_DICT):\n    model.state_dict()") is None
    )
    assert said(after="teacher.state_dict()") is None
