from __future__ import annotations

from typing import Any

import pytest

from lintfit.catalog.defaults import ever_accepted
from lintfit.sources.training_arguments import ADAPTERS, EVALUATION, TRAINING, of_text
from lintfit.sources.training_defaults import fields_of

CONFIGS = ("SFTConfig", "DPOConfig", "GRPOConfig", "RLOOConfig", "PPOConfig")
SEQ2SEQ = {"predict_with_generate", "generation_num_beams"}


def test_every_field_is_one_of_the_libraries() -> None:
    known = fields_of("transformers.TrainingArguments").union(*(fields_of(f"trl.{each}") for each in CONFIGS))
    for names in (*TRAINING.values(), *EVALUATION.values()):
        assert (known | SEQ2SEQ) & set(names), names


def test_adapters_have_peft_and_trl_names() -> None:
    peft, trl = ever_accepted("peft", "LoraConfig"), ever_accepted("trl", "ModelConfig")
    assert [name for name, names in ADAPTERS.items() if not (peft & set(names) and trl & set(names))] == []


@pytest.mark.parametrize(
    ("text", "value"),
    [("True", True), ("false", False), ("None", None), ("8", 8), ("2e-5", 2e-5), ("adamw_torch", "adamw_torch")],
)
def test_what_a_flag_says(text: str, value: Any) -> None:
    assert of_text(text) == value
    assert type(of_text(text)) is type(value)
