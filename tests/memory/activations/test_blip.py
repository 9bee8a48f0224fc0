"""BLIP-2 and InstructBLIP beyond what torch counted of a small one (``seen/blip.py``)."""

from __future__ import annotations

import pytest

from lintfit.catalog import models
from lintfit.memory import estimate
from lintfit.memory.reading.parse import spec_from_mapping
from lintfit.memory.verdict.undecided import undecided

FLAN, VICUNA = "Salesforce/blip2-flan-t5-xl", "Salesforce/instructblip-vicuna-7b"
RUN = {"micro_batch_size": 4, "seq_len": 256, "images": 1, "gpu_memory_gib": 1000}


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("blip2-opt-2.7b", 3.745e9),
        ("blip2-opt-6.7b", 7.753e9),
        ("blip2-flan-t5-xl", 3.877e9),
        ("instructblip-vicuna-7b", 7.914e9),
        ("instructblip-flan-t5-xl", 3.957e9),
    ],
)
def test_published_models(name: str, parameters: float) -> None:
    facts = models.lookup(f"Salesforce/{name}")
    assert facts is not None and facts.parameters == pytest.approx(parameters, rel=0.001)


def test_autocast_copies_the_logits_twice_as_the_language_models_output_has_them_too() -> None:
    def logits(name: str) -> int:
        spec = {**RUN, "model": name, "weights_dtype": "bf16", "mixed_precision": "bf16", "method": "lora"}
        found = estimate(spec_from_mapping({**spec, "gradient_checkpointing": True}))
        return next(moment for moment in found.moments if moment.name == "loss, forward").components["logits"]

    words = 4 * 256 * 50304
    assert logits("Salesforce/blip2-opt-2.7b") == pytest.approx(words * (2 + 4 + 4 + 4), rel=0.01)


def test_what_the_queries_keep_of_an_instruction_is_not_known() -> None:
    assert any("instruction" in line for line in undecided(spec_from_mapping({**RUN, "model": VICUNA})))
    assert not undecided(spec_from_mapping({**RUN, "model": "Salesforce/blip2-opt-2.7b"}))


def test_what_flan_t5_keeps_is_not_known() -> None:
    assert any("decoder" in line for line in undecided(spec_from_mapping({**RUN, "model": FLAN})))
