"""From what the files say of an evaluation to the spec's."""

from __future__ import annotations

from typing import Any

import pytest

from lintfit.memory.spec import Evaluation
from lintfit.run.evaluation import evaluation
from lintfit.settings.model import UNKNOWN, Provenance, Setting


def read(trainer: str = "causal-lm", **said: Any) -> tuple[Evaluation | None, list[str]]:
    doubtful: list[str] = []
    settings = {name: Setting(name, value, Provenance("derived")) for name, value in said.items()}
    return evaluation(settings, {"trainer": trainer}, doubtful), doubtful


def test_a_run_without_a_batch_evaluates_as_nobody_knows() -> None:
    assert read() == (None, [])
    assert read(eval_predictions="kept", eval_accumulation_steps=4) == (None, [])
    assert read("ppo", eval_batch_size=8) == (None, [])


@pytest.mark.parametrize("batch", [UNKNOWN, 0, -1, True, "8", 2**40])
def test_a_batch_that_is_none_is_doubtful_and_taken_as_the_least(batch: Any) -> None:
    assert read(eval_batch_size=batch) == (Evaluation(1), ["eval_batch_size"])


def test_all_that_the_trainer_is_told() -> None:
    said = {
        "eval_batch_size": 4,
        "eval_predictions": "kept",
        "eval_accumulation_steps": 16,
        "eval_do_concat_batches": False,
        "predict_with_generate": True,
        "generation_num_beams": 4,
    }
    assert read(**said) == (Evaluation(4, "kept", 16, False, None, True, 4), [])
    unknown = {**dict.fromkeys(said, UNKNOWN), "eval_batch_size": 4}
    assert read(**unknown) == (Evaluation(4), [])


def test_answers_of_a_loop_of_the_scripts_own() -> None:
    said = {"eval_batch_size": 4, "eval_new_tokens": 64}
    assert read(**said, eval_generates="only") == (Evaluation(4, generates="only", new_tokens=64), [])
    beside = Evaluation(4, "held", generates=True, new_tokens=64)
    assert read(**said, eval_generates="beside", eval_predictions="held") == (beside, [])
    assert read(eval_batch_size=4, eval_generates="only", eval_new_tokens=UNKNOWN) == (
        Evaluation(4, generates="only"),
        [],
    )
