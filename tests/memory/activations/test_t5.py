"""T5's encoder and decoder.

What torch counts of small ones is in ``tests/recordings/``.
"""

from __future__ import annotations

from typing import Any

import pytest

from lintfit.memory import estimate
from lintfit.memory.micro_batch.encoder_decoder import Encoder
from lintfit.memory.micro_batch.halves import of_decoder
from lintfit.memory.reading.contradictions import SpecError
from lintfit.memory.reading.parse import spec_from_mapping
from lintfit.memory.result import Estimate, Verdict
from lintfit.memory.tensors.parameters import inventory
from tests.memory.activations.steps import BF16, step

SMALL: dict[str, Any] = {
    "model_type": "t5",
    "vocab_size": 1000,
    "d_model": 512,
    "d_kv": 64,
    "d_ff": 1024,
    "num_layers": 2,
    "num_decoder_layers": 2,
    "num_heads": 8,
    "feed_forward_proj": "gated-gelu",
    "tie_word_embeddings": False,
}
EAGER = {"attention": "eager"}


def run(config: dict[str, Any], more: dict[str, Any]) -> Estimate:
    given = {"gradient_checkpointing": False, **more}
    return step({**SMALL, **config}, given.pop("micro_batch_size", 4), given.pop("seq_len", 512), given)


def test_a_decoder_of_unstated_length_has_a_range() -> None:
    said, unsaid = run({}, {**BF16, "decoder_seq_len": 512}), run({}, BF16)
    short = run({}, {**BF16, "decoder_seq_len": 1})
    assert said.allocated_bytes == unsaid.allocated_bytes
    assert unsaid.peak.low == short.peak.low < said.peak.low
    assert any("decoder_seq_len not stated" in line for line in unsaid.assumptions)
    assert not any("decoder_seq_len" in line for line in said.assumptions)


def test_before_5_15_scores_are_written_out_with_a_softmax_in_fp32() -> None:
    old = step(SMALL, 4, 512, {**BF16, "gradient_checkpointing": False, "versions": {"transformers": "4.57.1"}})
    new = run({}, {**BF16, **EAGER})
    saved = [next(moment for moment in found.moments if moment.name == "head, backward") for found in (old, new)]
    # Six attentions keep their softmax in four bytes an element in the place of two.
    more = saved[0].components["activations"] - saved[1].components["activations"]
    assert more == 6 * (4 * 8 * 512 * 512) * 2


@pytest.mark.parametrize(
    ("more", "dtype"),
    [
        ({"quantization": "int8", "method": "lora", "versions": {"transformers": "4.40.0"}}, "fp32"),
        ({"quantization": "int8", "method": "lora"}, "bf16"),
        ({"quantization": "int8", "method": "lora", "weights_dtype": "fp16"}, "fp32"),
        ({"weights_dtype": "fp16"}, "fp32"),
        ({}, "bf16"),
        ({"engine": "deepspeed", "zero_stage": 2, "gpus": 2, "mixed_precision": "fp16"}, "fp16"),
    ],
)
def test_the_projection_out_of_the_mlp_stays_as_its_class_keeps_it(more: dict[str, Any], dtype: str) -> None:
    spec = spec_from_mapping({"model_config": SMALL, "lora_targets": ["q", "v"], **BF16, **more})
    found = [weight for weight in inventory(spec).weights if weight.name.endswith(".wo.weight")]
    size = {"fp32": 4, "fp16": 2, "bf16": 2}[dtype]
    assert [(weight.dtype, weight.storage) for weight in found] == [(dtype, 512 * 1024 * size)] * 2


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"frozen_modules": ["shared"]}, "parts of an encoder and of a decoder"),
        ({"trainer": "dpo"}, "dpo of a model that has an encoder"),
        ({"gpus": 2, "pipeline_parallel": 2}, "split over ranks"),
    ],
)
def test_what_nobody_has_counted_is_unknown(more: dict[str, Any], said: str) -> None:
    found = estimate(spec_from_mapping({"model": "google/flan-t5-base", "gpu": "H100", **BF16, **more}))
    assert found.verdict is Verdict.UNKNOWN
    assert any(said in line for line in found.not_modelled)


def test_words_of_a_table_that_peft_made_fp32_are_fp32() -> None:
    """``prepare_model_for_kbit_training`` casts the shared table, too; the encoder's words are a leaf besides."""
    run = {"model": "google/flan-t5-base", "method": "lora", "quantization": "nf4", "gradient_checkpointing": True}
    batch = {"weights_dtype": "bf16", "micro_batch_size": 4, "seq_len": 512}
    half, full = (
        Encoder(of_decoder(spec_from_mapping({**run, **batch, "kbit_upcast": kbit}))) for kbit in ("norms", "all")
    )
    words = 4 * 512 * 768
    assert (half.embeddings(512), full.embeddings(512)) == (2 * words, 4 * words)
    assert (half.opening(), full.opening()) == (words + 2 * words, words + 4 * words)  # with the dropout's mask


def test_a_decoder_of_no_tokens_is_refused() -> None:
    with pytest.raises(SpecError, match="decoder_seq_len: 0 must be a whole number from 1"):
        spec_from_mapping({"model": "google/flan-t5-base", "decoder_seq_len": 0})
