"""What an estimate rests on is said: what nobody stated, and what the catalogue notes of the model."""

from __future__ import annotations

from typing import Any

import pytest

from lintfit.catalog.models import confirmed, ids, lookup
from lintfit.frozen import replace
from lintfit.memory import estimate
from lintfit.memory.reading.parse import spec_from_mapping

LLAMA = {
    "model_type": "brand_new",
    "hidden_size": 2048,
    "intermediate_size": 8192,
    "num_hidden_layers": 16,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
}


def _assumed(**spec: Any) -> list[str]:
    found = estimate(spec_from_mapping({"gpu": "A100-80GB", "seq_len": 1024, **spec}))
    return list(found.to_json()["assumptions"])


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"model": "TheBloke/Mistral-7B-Instruct-v0.2-GPTQ"}, "the shape of mistralai/Mistral-7B-Instruct-v0.2, by"),
        ({"model": "Salesforce/codegen-16B-mono"}, "the shape of Salesforce/codegen-16B-mono as remembered"),
        ({"model": "Salesforce/codegen-16B-nl"}, "the shape of Salesforce/codegen-16B-nl as remembered"),
        ({"model": "zai-org/GLM-4.5-Air"}, "no multi-token-prediction layers"),
        ({"model": "google/flan-t5-xl"}, "the embedding as output layer"),
        ({"model_config": LLAMA}, "the shape of a Llama with these numbers (model_type 'brand_new' is not known)"),
        (
            {"model_config": {"model_type": "brand_new_vl", "vision_config": {}, "text_config": LLAMA}},
            "its text_config alone, without encoders (model_type 'brand_new_vl' is not known)",
        ),
    ],
)
def test_what_the_catalogue_notes_of_a_model_is_among_the_assumptions_once(spec: dict[str, Any], said: str) -> None:
    assert sum(line.startswith(said) for line in _assumed(**spec)) == 1


@pytest.mark.parametrize("model", ["google/paligemma-3b-pt-224", "meta-llama/Llama-3.1-8B"])
def test_a_shape_with_a_source_needs_no_word(model: str) -> None:
    assert not any("shape" in line for line in _assumed(model=model))


def test_rows_that_nothing_confirms_are_few_and_say_so() -> None:
    unconfirmed = [model for model in ids() if not confirmed(model)]
    assert 0 < len(unconfirmed) < len(ids()) / 50
    for model in unconfirmed:
        facts = lookup(model)
        assert facts is not None
        assert any("as remembered" in note for note in facts.notes)


@pytest.mark.parametrize(
    ("targets", "said"), [(None, "the modules that PEFT picks for this model"), ("all-linear", "all linear layers")]
)
def test_where_adapters_are_taken_to_be(targets: str | None, said: str) -> None:
    spec = spec_from_mapping({"model": "meta-llama/Llama-2-7b-hf", "method": "lora", "lora_rank": 8})
    found = estimate(spec if targets is None else replace(spec, lora_targets=targets)).assumptions
    assert f"LoRA on {said} (not stated)" in found
