"""The encoders and decoders of BART's kind against torch's own count of small models under fake tensors.

``bench.fake_tensors`` on torch 2.13 and transformers 5.23, no layer dropped: MiB of a whole step with SGD.
"""

from __future__ import annotations

from typing import Any

import pytest

from bench.fake_settings import GC, LORA, REENTRANT
from lintfit.memory.result import Estimate
from tests.memory.activations.steps import AMP, BF16, FP32, HALF_AMP, MIB, step

SMALL: dict[str, Any] = {
    "vocab_size": 1000,
    "d_model": 512,
    "encoder_ffn_dim": 1024,
    "decoder_ffn_dim": 1024,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 8,
    "decoder_attention_heads": 8,
    "max_position_embeddings": 1024,
    "activation_function": "gelu",
    "dropout": 0.1,
}
EAGER = {"attention": "eager"}
PADDED = {"padded_batches": True}
FEW = {**LORA, "lora_targets": ["q_proj", "v_proj"], "lora_dtype": "fp32"}
ADAPTERS = {
    **FEW,
    "lora_targets": ["q_proj", "k_proj", "v_proj", "out_proj", "fc1", "fc2"],
    "lora_dropout": 0.0,
}


def run(kind: str, more: dict[str, Any]) -> Estimate:
    given = {"gradient_checkpointing": False, **more}
    config = {**SMALL, "model_type": kind, "vocab_size": given.pop("vocab_size", 1000)}
    return step(config, given.pop("micro_batch_size", 4), given.pop("seq_len", 512), given)


@pytest.mark.parametrize(
    ("kind", "more", "counted"),
    [
        ("bart", BF16, 175.38),
        ("bart", {**BF16, **EAGER}, 276.73),
        ("bart", FP32, 338.14),
        ("bart", AMP, 277.35),
        ("bart", {**AMP, **EAGER}, 572.76),
        ("bart", {**BF16, **GC}, 89.28),
        ("bart", {**BF16, **REENTRANT}, 93.28),
        ("bart", {**AMP, **GC}, 161.34),
        ("bart", {**AMP, **REENTRANT}, 157.31),
        ("bart", {**HALF_AMP, **ADAPTERS}, 242.57),
        ("bart", {**HALF_AMP, **FEW, **GC}, 117.66),
        ("bart", {**BF16, "decoder_seq_len": 128}, 112.62),
        ("bart", {**BF16, "micro_batch_size": 3, "seq_len": 333}, 97.36),
        ("bart", {**FP32, **GC}, 174.31),
        ("bart", {**AMP, "vocab_size": 50264}, 1576.26),
        ("mbart", BF16, 179.42),
        ("mbart", AMP, 285.39),
        ("mbart", {**AMP, **GC}, 159.36),
        ("mbart", {**AMP, **REENTRANT}, 161.35),
        ("mbart", {**HALF_AMP, **FEW, **GC}, 118.68),
        ("mbart", {**HALF_AMP, **FEW, **REENTRANT}, 120.68),
        ("mbart", {**BF16, "decoder_seq_len": 128}, 115.14),
        ("bart", {**BF16, **PADDED}, 183.38),
        ("bart", {**AMP, **PADDED}, 285.37),
        ("mbart", {**BF16, **PADDED}, 187.42),
        ("mbart", {**AMP, **PADDED}, 293.41),
        ("mbart", {**FP32, **PADDED}, 362.18),
        ("mbart", {**BF16, **PADDED, **GC}, 97.31),
        ("mbart", {**BF16, **PADDED, **REENTRANT}, 99.31),
        ("mbart", {**BF16, **PADDED, **EAGER}, 280.77),
        ("mbart", {**HALF_AMP, **FEW, **PADDED, **GC}, 122.68),
        ("mbart", {**BF16, **PADDED, "micro_batch_size": 3, "seq_len": 333}, 101.90),
        ("m2m_100", BF16, 175.36),
        ("m2m_100", {**BF16, **EAGER}, 414.98),
        ("m2m_100", AMP, 281.24),
        ("m2m_100", {**AMP, **GC}, 151.30),
        ("m2m_100", {**AMP, **REENTRANT}, 153.29),
        ("m2m_100", {**HALF_AMP, **ADAPTERS}, 242.57),
        ("m2m_100", {**HALF_AMP, **FEW, **GC}, 106.64),
        ("pegasus", BF16, 175.36),
        ("pegasus", {**AMP, **GC}, 151.30),
        ("pegasus", {**HALF_AMP, **FEW, **GC}, 106.63),
        ("marian", BF16, 171.32),
        ("marian", {**AMP, **GC}, 153.27),
        ("marian", {**HALF_AMP, **FEW, **GC}, 105.61),
        ("blenderbot", BF16, 175.36),
        ("blenderbot", {**AMP, **GC}, 151.30),
        ("blenderbot", {**HALF_AMP, **FEW, **GC}, 106.63),
        ("bart", {**HALF_AMP, **FEW, **REENTRANT}, 121.66),
        ("m2m_100", {**HALF_AMP, **FEW, **REENTRANT}, 108.64),
        ("pegasus", {**HALF_AMP, **FEW, **REENTRANT}, 108.63),
        ("marian", {**HALF_AMP, **FEW, **REENTRANT}, 109.36),
    ],
)
def test_torchs_own_count(kind: str, more: dict[str, Any], counted: float) -> None:
    assert run(kind, more).allocated_bytes / MIB == pytest.approx(counted, rel=3e-4)


@pytest.mark.parametrize(
    ("kind", "more", "counted"),
    [
        ("bart", BF16, 41.59),
        ("bart", {**BF16, **EAGER}, 87.59),
        ("bart", AMP, 91.18),
        ("bart", HALF_AMP, 50.62),
        ("bart", {**BF16, "decoder_seq_len": 128}, 39.07),
        ("bart", {**BF16, "vocab_size": 50264}, 467.98),
        ("bart", {**AMP, "vocab_size": 50264}, 1005.03),
        ("mbart", BF16, 43.60),
        ("mbart", AMP, 95.18),
        ("mbart", HALF_AMP, 51.60),
    ],
)
def test_evaluation(kind: str, more: dict[str, Any], counted: float) -> None:
    found = run(kind, {"evaluation": {"batch_size": 4}, **more})
    worst = max(moment.allocated for moment in found.moments if moment.phase == "evaluate")
    assert worst / MIB == pytest.approx(counted, rel=1e-3)
