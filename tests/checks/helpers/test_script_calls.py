"""What rules ask of a script's calls."""

from __future__ import annotations

import pytest

from lintfit.checks.helpers.script_calls import calls_of, knows_deepspeed, on_trained_model, trained_load
from tests.sources.scripts import script

TRAINER = """
    import torch
    from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

    {before}
    model = AutoModelForCausalLM.from_pretrained("a/b")
    judge = AutoModelForCausalLM.from_pretrained("c/d")
    {between}
    model.half()
    judge.bfloat16()
    model.float()
    Trainer(model=model, args=args).train()
"""
ARGUMENTS = 'args = TrainingArguments(output_dir="out")'


def test_casts_of_the_trained_model_are_told_apart_by_their_dtype() -> None:
    facts = script(TRAINER.format(before=ARGUMENTS, between="")).facts
    assert [cast.call.name for cast in facts.downcasts] == ["half"]
    assert [cast.call.name for cast in facts.upcasts] == ["float"]


def test_calls_are_found_by_their_last_name_unless_they_certainly_do_not_run() -> None:
    source = script(TRAINER.format(before=ARGUMENTS, between="if False:\n        model.eval()\n    judge.eval()"))
    assert [call.receiver for call in calls_of(source, "eval")] == ["judge"]


def test_a_method_of_the_trained_model_is_known_from_that_of_another() -> None:
    source = script(TRAINER.format(before=ARGUMENTS, between=""))
    asked = {call.receiver: on_trained_model(source, call) for call in calls_of(source, "half", "bfloat16")}
    assert asked == {"model": True, "judge": False}


def test_the_load_of_the_trained_model() -> None:
    load = trained_load(script(TRAINER.format(before=ARGUMENTS, between="")))
    assert load is not None
    assert load.assigned_to == "model"


@pytest.mark.parametrize(
    ("before", "between", "knows"),
    [
        (ARGUMENTS, "", True),
        ("", ARGUMENTS, None),
        ("from transformers.integrations import HfDeepSpeedConfig\n    kept = HfDeepSpeedConfig({})", ARGUMENTS, True),
        ("", "args = None", False),
    ],
)
def test_transformers_knows_of_deepspeed_from_the_config_object_on(
    before: str, between: str, knows: bool | None
) -> None:
    source = script(TRAINER.format(before=before, between=between))
    load = trained_load(source)
    assert load is not None
    assert knows_deepspeed(source, load) is knows


@pytest.mark.parametrize(("library", "expected"), [("transformers", False), ("trl", True)])
def test_trl_is_known_by_its_trainer(library: str, expected: bool) -> None:
    classes = {"transformers": ("TrainingArguments", "Trainer"), "trl": ("SFTConfig", "SFTTrainer")}[library]
    source = script(f"""
        from {library} import {", ".join(classes)}

        args = {classes[0]}(output_dir="out")
        {classes[1]}(model="a/b", args=args).train()
    """)
    assert source.uses_trl is expected
