"""Flags that ask for a way of training which no code that was read goes into."""

from __future__ import annotations

import pytest

from lintfit.settings.model import UNKNOWN
from tests.sources.scripts import script, trained, values


@pytest.mark.parametrize(
    "line",
    [
        "--hier_tuning --epochs 3",
        "--train_adapter",
        "--tune_type_llm mores",
        "--finetuning_type freeze",
        "--use_prompt_tuning True",
        "--use_adapter pfeiffer",
    ],
)
def test_a_way_of_training_that_is_not_read_leaves_the_method_open(line: str) -> None:
    assert values(script(trained(""), line))["method"] is UNKNOWN


@pytest.mark.parametrize(
    "line",
    [
        "--finetuning_type full",
        "--tune_type_vision_tower frozen",
        "--use_lora False --lora_r 16",
        "--tune_mm_mlp_adapter True",
        "--instruction_tuning",
        "--save_only_model True",
        "--prompt_tuning_file prompts.json",
    ],
)
def test_other_flags_do_not(line: str) -> None:
    assert values(script(trained(""), line))["method"] == "full"
