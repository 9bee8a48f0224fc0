"""A trainer that compares two answers, handed batches of single ones, is not counted as one."""

from __future__ import annotations

import pytest

from lintfit.settings.model import UNKNOWN
from lintfit.sources.script.source import ScriptSource
from tests.sources.scripts import script

TEXT = """
import torch
from transformers import AutoModelForCausalLM, TrainingArguments
from trl import DPOTrainer

class Own(DPOTrainer):
{method}

class Collator:
    def __call__(self, instances):
{batch}
        return batch

def module():
    return dict(train_dataset=load(), eval_dataset=None, data_collator=Collator())

model = AutoModelForCausalLM.from_pretrained("a/b")
Own(model=model, args=TrainingArguments("out"), **module()).train()
"""
PLAIN = "        batch = dict(input_ids=pad(instances), labels=pad(instances))"
PAIRS = "        batch = dict(chosen_input_ids=pad(instances), chosen_labels=pad(instances), labels=None)"
KEPT = '        batch = {key: pad(values) for key, values in instances[0].items()}\n        batch["labels"] = None'
COMPARES = "    def concatenated_forward(self, model, batch):\n        return self.halves(model(**batch))"


def read(batch: str, method: str = "    pass") -> ScriptSource:
    return script(TEXT.format(batch=batch, method=method), "")


def test_batches_without_pairs() -> None:
    settings = read(PLAIN).settings
    assert settings["trainer"].value is UNKNOWN
    assert settings["trainer"].provenance.detail == "Collator makes batches without the pairs that DPOTrainer compares"
    assert "reference_model" not in settings


@pytest.mark.parametrize(
    ("batch", "method"),
    [(PAIRS, "    pass"), (KEPT, "    pass"), (PLAIN, COMPARES)],
    ids=["pairs", "keys of the data", "a step of its own"],
)
def test_batches_that_may_be_pairs(batch: str, method: str) -> None:
    settings = read(batch, method).settings
    assert (settings["trainer"].value, settings["reference_model"].value) == ("dpo", True)


def test_a_collator_that_nobody_knows() -> None:
    text = TEXT.format(batch=PLAIN, method="    pass").replace("data_collator=Collator()", "data_collator=collator()")
    assert script(text, "").settings["trainer"].value == "dpo"
