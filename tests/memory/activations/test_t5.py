"""T5's encoder and decoder against torch's own count of a small model under fake tensors.

``bench.fake_tensors`` and ``bench.fake_evaluation`` on torch 2.13 and transformers 5.23: MiB of a whole step with SGD.
"""

from __future__ import annotations

from typing import Any

import pytest

from bench.fake_settings import GC, LORA, REENTRANT
from lintfit.memory import estimate
from lintfit.memory.micro_batch.encoder_decoder import Encoder
from lintfit.memory.micro_batch.language import of_decoder
from lintfit.memory.reading.contradictions import SpecError
from lintfit.memory.reading.parse import spec_from_mapping
from lintfit.memory.result import Estimate, Verdict
from lintfit.memory.tensors.parameters import inventory
from tests.memory.activations.steps import AMP, BF16, FP32, HALF_AMP, MIB, step

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
PADDED = {"padded_batches": True}
FEW = {**LORA, "lora_targets": ["q", "v"], "lora_dtype": "fp32"}
ADAPTERS = {**FEW, "lora_targets": ["q", "k", "v", "o", "wi_0", "wi_1", "wo"], "lora_dropout": 0.0}


def run(config: dict[str, Any], more: dict[str, Any]) -> Estimate:
    given = {"gradient_checkpointing": False, **more}
    return step({**SMALL, **config}, given.pop("micro_batch_size", 4), given.pop("seq_len", 512), given)


@pytest.mark.parametrize(
    ("config", "more", "counted"),
    [
        ({}, BF16, 363.97),
        ({}, FP32, 604.42),
        ({}, {**FP32, **EAGER}, 1000.12),
        ({}, AMP, 523.51),
        ({}, {**AMP, **EAGER}, 869.11),
        ({}, {**BF16, **GC}, 167.41),
        ({}, {**BF16, **REENTRANT}, 167.41),
        ({}, {**BF16, **EAGER, **GC}, 245.03),
        ({}, {**BF16, **EAGER, **REENTRANT}, 245.03),
        ({}, {**AMP, **GC}, 267.38),
        ({}, HALF_AMP, 439.54),
        ({}, {**HALF_AMP, **GC}, 193.41),
        ({}, {**HALF_AMP, **REENTRANT}, 199.41),
        ({}, {**AMP, **ADAPTERS, **GC}, 244.64),
        ({}, {**HALF_AMP, **ADAPTERS, **GC}, 198.65),
        ({}, {**HALF_AMP, **ADAPTERS, **REENTRANT}, 202.63),
        ({}, {**HALF_AMP, **FEW, **REENTRANT}, 191.54),
        ({}, {**HALF_AMP, **FEW, **GC}, 181.54),
        ({}, {**AMP, **EAGER, **REENTRANT}, 403.00),
        ({}, {**BF16, **PADDED, **GC}, 185.41),
        ({}, {**AMP, **PADDED}, 576.52),
        ({}, {**AMP, **EAGER, **PADDED}, 873.13),
        ({}, {**BF16, "decoder_seq_len": 128}, 221.14),
        ({}, {**BF16, **EAGER, "decoder_seq_len": 128}, 316.41),
        ({}, {**BF16, "seq_len": 64, "decoder_seq_len": 512}, 227.96),
        ({}, {**BF16, "seq_len": 1024, "decoder_seq_len": 64}, 373.92),
        ({}, {**BF16, "micro_batch_size": 3, "seq_len": 333}, 191.05),
        ({"feed_forward_proj": "relu", "tie_word_embeddings": True}, BF16, 279.97),
        ({"vocab_size": 32128}, BF16, 758.89),
        ({"vocab_size": 32128}, {**AMP, **GC}, 957.20),
        ({"vocab_size": 32128}, {**HALF_AMP, **FEW, **GC}, 851.17),
        ({"num_layers": 1, "num_decoder_layers": 1}, BF16, 204.48),
        ({"num_layers": 1, "num_decoder_layers": 1}, {**BF16, **GC}, 132.40),
        ({"num_layers": 3, "num_decoder_layers": 1}, BF16, 342.64),
        ({"dropout_rate": 0.0}, BF16, 342.97),
        ({"model_type": "mt5"}, BF16, 363.97),
    ],
)
def test_torchs_own_count(config: dict[str, Any], more: dict[str, Any], counted: float) -> None:
    assert run(config, more).allocated_bytes / MIB == pytest.approx(counted, rel=3e-4)


@pytest.mark.parametrize(
    ("config", "more", "counted"),
    [
        ({}, {**BF16, **EAGER}, 585.13),
        ({}, {**HALF_AMP, **ADAPTERS}, 445.11),
        ({}, {**HALF_AMP, **FEW}, 392.82),
        ({}, {**BF16, **EAGER, **PADDED}, 587.15),
        ({}, {**BF16, **PADDED}, 418.03),
        ({}, {**HALF_AMP, **ADAPTERS, **PADDED}, 497.12),
        ({}, {**BF16, "micro_batch_size": 1}, 130.12),
        ({"vocab_size": 32128}, {**BF16, **GC, "micro_batch_size": 1, "seq_len": 64}, 164.21),
        ({"dropout_rate": 0.0}, {**AMP, **GC}, 257.38),
    ],
)
def test_near_it_where_the_vocabulary_is_as_small(config: dict[str, Any], more: dict[str, Any], counted: float) -> None:
    assert run(config, more).allocated_bytes / MIB == pytest.approx(counted, rel=0.007)


RELU = {"feed_forward_proj": "relu"}
WORDS = {"vocab_size": 32128}


@pytest.mark.parametrize(
    ("config", "more", "counted"),
    [
        ({}, BF16, 59.04),
        ({}, {**BF16, **EAGER}, 99.04),
        ({}, FP32, 118.03),
        ({}, AMP, 132.03),
        ({}, {**AMP, **EAGER}, 224.53),
        ({}, HALF_AMP, 67.04),
        ({}, {**AMP, **FEW}, 110.15),
        ({}, {**HALF_AMP, **ADAPTERS}, 77.02),
        ({}, {**AMP, "seq_len": 64, "decoder_seq_len": 512}, 125.01),
        ({}, {**AMP, "micro_batch_size": 3, "seq_len": 333, "evaluation": {"batch_size": 3}}, 101.52),
        ({}, {**BF16, "decoder_seq_len": 128}, 53.01),
        ({}, {**BF16, **EAGER, "decoder_seq_len": 128}, 73.01),
        ({}, {**BF16, **GC}, 59.04),
        (RELU, BF16, 51.29),
        (RELU, FP32, 102.28),
        (RELU, AMP, 108.03),
        (WORDS, BF16, 310.44),
        (WORDS, AMP, 801.70),
        (WORDS, HALF_AMP, 686.94),
        (WORDS, {**BF16, "decoder_seq_len": 128}, 120.66),
        (WORDS, {**HALF_AMP, **FEW}, 688.06),
    ],
)
def test_evaluation(config: dict[str, Any], more: dict[str, Any], counted: float) -> None:
    found = run(config, {"evaluation": {"batch_size": 4}, **more})
    worst = max(moment.allocated for moment in found.moments if moment.phase == "evaluate")
    assert worst / MIB == pytest.approx(counted, rel=2e-4)


def test_reentrant_checkpointing_makes_zeros_of_the_gradient_of_biases_that_the_last_layer_gives_back() -> None:
    more = {**HALF_AMP, **FEW, **REENTRANT, "seq_len": 1024, "decoder_seq_len": 64}
    assert run({"num_layers": 3}, more).allocated_bytes / MIB == pytest.approx(292.37, rel=5e-4)


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
