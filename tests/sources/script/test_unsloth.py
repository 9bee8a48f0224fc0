"""What Unsloth decides where TRL's configs have it otherwise."""

from __future__ import annotations

from typing import Any

import pytest

from lintfit.settings.model import BY_UNSLOTH
from tests.sources.scripts import script, values

SFT = """
    from unsloth import FastLanguageModel
    from trl import {config}, {trainer}
    model, tokenizer = FastLanguageModel.from_pretrained("unsloth/Qwen3-0.6B"{load})
    {trainer}(model=model, args={config}({config_has})).train()
    """


def read(load: str = "", has: str = "", kind: str = "SFT") -> dict[str, Any]:
    found = script(SFT.format(load=load, config_has=has, config=f"{kind}Config", trainer=f"{kind}Trainer"))
    return values(found)


@pytest.mark.parametrize(
    ("load", "has", "length"),
    [
        ("", "", 2048),
        (", max_seq_length=4096", "", 4096),
        (", 512", "", 512),
        (", max_seq_length=4096", "max_length=256", 4096),
        (", max_seq_length=4096", "max_seq_length=256", 256),
        (", max_seq_length=4096", "max_seq_length=8192", 4096),
        (", **options", "max_length=256", 256),
    ],
)
def test_the_length_is_the_one_that_the_model_is_loaded_for(load: str, has: str, length: int) -> None:
    assert read(load, has)["seq_len"] == length


@pytest.mark.parametrize(
    ("load", "has", "bf16", "fp16"),
    [
        ("", "", True, False),
        (", dtype=None", "", True, False),
        (', dtype="float16"', "", False, True),
        (', dtype="bfloat16"', "", True, False),
        ("", "fp16=True", None, True),
        ("", "bf16=True", True, False),
    ],
)
def test_the_precision_is_that_of_the_model(load: str, has: str, bf16: object, fp16: object) -> None:
    found = read(load, has)
    assert (found["bf16"] or None, found["fp16"]) == (bf16 or None, fp16)


def test_the_loss_comes_with_the_head() -> None:
    assert read()["loss"] == "chunked"
    assert "loss" not in read(kind="DPO")


def test_its_checkpointing_keeps_the_inputs_on_the_host() -> None:
    wrap = 'model = FastLanguageModel.get_peft_model(model, use_gradient_checkpointing="unsloth")'
    text = SFT.format(load="", config_has="", config="SFTConfig", trainer="SFTTrainer")
    text = text.replace("    SFTTrainer(model", f"    {wrap}\n    SFTTrainer(model")
    found = values(script(text))
    assert (found["gradient_checkpointing"], found["activation_offload"]) == (True, True)


def test_its_models_make_no_scores() -> None:
    assert read()["own_attention"] == {BY_UNSLOTH: ("flash_attention_2", True)}
