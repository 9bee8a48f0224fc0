"""Models that give a few scores in the place of logits over a vocabulary."""

from __future__ import annotations

import pytest

from tests.sources.scripts import script, values

TRAINER = """
from transformers import {model}, Trainer, TrainingArguments

model = {model}.from_pretrained("some/model", num_labels=3)
Trainer(model=model, args=TrainingArguments(output_dir="out")).train()
"""
LOOP = """
import torch
from transformers import {model}

model = {model}.from_pretrained("some/model")
optimizer = torch.optim.AdamW(model.parameters())
for batch in loader:
    model(**batch).loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("model", "found"),
    [
        ("AutoModelForSequenceClassification", "classification"),
        ("LlamaForSequenceClassification", "classification"),
        ("AutoModelForTokenClassification", "classification"),
        ("AutoModelForQuestionAnswering", "classification"),
        ("AutoModelForCausalLM", "causal-lm"),
        ("AutoModelForSeq2SeqLM", "causal-lm"),
    ],
)
def test_by_the_class_of_the_model(model: str, found: str) -> None:
    assert values(script(TRAINER.format(model=model)))["trainer"] == found
    assert values(script(LOOP.format(model=model))).get("trainer", "causal-lm") == found


def test_trls_reward_trainer_has_pairs() -> None:
    text = TRAINER.replace(
        "import {model}, Trainer, TrainingArguments", "import {model}\nfrom trl import RewardTrainer"
    )
    text = text.replace('Trainer(model=model, args=TrainingArguments(output_dir="out"))', "RewardTrainer(model=model)")
    assert values(script(text.format(model="AutoModelForSequenceClassification")))["trainer"] == "reward"


@pytest.mark.parametrize(
    ("name", "found"), [("GPTNeoXForSequenceClassification", "classification"), ("GPTNeoXForCausalLM", "causal-lm")]
)
def test_a_copy_of_modelling_code_in_the_project(name: str, found: str) -> None:
    text = LOOP.replace("from transformers import {model}", "from transformers import PreTrainedModel\n{classes}")
    classes = (
        f"class GPTNeoXPreTrainedModel(PreTrainedModel):\n    pass\nclass {name}(GPTNeoXPreTrainedModel):\n    pass\n"
    )
    assert values(script(text.format(model=name, classes=classes))).get("trainer", "causal-lm") == found
