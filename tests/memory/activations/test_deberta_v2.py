"""DeBERTa v2 and v3 with the masked-language-model head against torch's own count under fake tensors.

``bench.fake_tensors`` on torch 2.13 and transformers 5.23, with ``AutoModelForMaskedLM`` in the place of a causal
language model: MiB of a whole step with SGD, 4 x 1024 tokens.
"""

from __future__ import annotations

from typing import Any

import pytest

from bench.fake_settings import EVERY, GC, LORA, REENTRANT
from lintfit.catalog import models
from lintfit.memory import estimate
from lintfit.memory.activations.families import known
from lintfit.memory.reading.parse import spec_from_mapping
from tests.memory.activations.steps import AMP, BF16, FP32, HALF_AMP, MIB, step

V3: dict[str, Any] = {
    "model_type": "deberta-v2", "vocab_size": 1000, "hidden_size": 512, "num_hidden_layers": 3,
    "num_attention_heads": 8, "intermediate_size": 2048, "max_position_embeddings": 512, "relative_attention": True,
    "position_buckets": 256, "norm_rel_ebd": "layer_norm", "share_att_key": True, "pos_att_type": "p2c|c2p",
    "position_biased_input": False, "type_vocab_size": 0,
}  # fmt: skip
V2 = {**V3, "conv_kernel_size": 3, "conv_act": "gelu", "attention_head_size": 64}
OWN: dict[str, Any] = {
    **V3, "share_att_key": False, "norm_rel_ebd": "none", "position_buckets": -1, "type_vocab_size": 2,
    "position_biased_input": True, "max_position_embeddings": 1024,
}  # fmt: skip
CONTENT = {**V3, "pos_att_type": ["c2p"], "share_att_key": False}
STILL = {**V3, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
FEW = {**LORA, "lora_targets": ["query_proj", "value_proj"], "lora_dtype": "fp32"}
ALL = {**EVERY, "lora_dtype": "fp32"}


@pytest.mark.parametrize(
    ("config", "more", "counted"),
    [
        (V3, BF16, 1117.02),
        (V3, AMP, 1525.56),
        (V3, FP32, 2079.04),
        (V3, {**BF16, **GC}, 493.36),
        (V3, {**AMP, **GC}, 730.90),
        (V3, {**HALF_AMP, **ALL}, 1485.62),
        (V3, {**AMP, **ALL}, 1517.63),
        (V3, {**HALF_AMP, **FEW}, 1423.11),
        (V3, {**AMP, **FEW}, 1455.11),
        (V3, {**BF16, "padded_batches": True}, 1133.04),
        (V3, {**AMP, "padded_batches": True}, 1541.59),
        (V3, {**HALF_AMP, **ALL, **REENTRANT}, 695.42),
        (V3, {**AMP, **ALL, **REENTRANT}, 712.94),
        (V2, BF16, 1132.57),
        (V2, AMP, 1548.10),
        (V2, FP32, 2108.08),
        (V2, {**BF16, **GC}, 506.89),
        (V2, {**AMP, **GC}, 749.42),
        (V2, {**HALF_AMP, **ALL}, 1495.16),
        (V2, {**HALF_AMP, **ALL, **REENTRANT}, 714.96),
        (V2, {**AMP, **ALL, **REENTRANT}, 735.48),
        (OWN, BF16, 1740.78),
        (OWN, AMP, 2164.83),
        (OWN, FP32, 3324.30),
        (OWN, {**BF16, **REENTRANT}, 708.15),
        (OWN, {**AMP, **REENTRANT}, 951.70),
        (OWN, {**AMP, **ALL}, 2152.49),
        (CONTENT, BF16, 968.53),
        (CONTENT, AMP, 1394.57),
        (CONTENT, {**BF16, **GC}, 437.86),
        (CONTENT, {**AMP, **FEW}, 1324.57),
        (STILL, BF16, 912.77),
        (STILL, AMP, 1345.81),
        (STILL, {**HALF_AMP, **ALL}, 1308.62),
    ],
)
def test_torchs_own_count(config: dict[str, Any], more: dict[str, Any], counted: float) -> None:
    more = {"gradient_checkpointing": False, **more}
    assert step(config, 4, 1024, more).allocated_bytes / MIB == pytest.approx(counted, rel=1e-4)


@pytest.mark.parametrize(
    ("config", "more", "counted"),
    [
        (V3, BF16, 408.61),
        (V3, AMP, 502.65),
        (V3, {**AMP, **ALL}, 491.54),
        (V2, BF16, 410.11),
        (V2, AMP, 507.16),
    ],
)
def test_an_evaluation(config: dict[str, Any], more: dict[str, Any], counted: float) -> None:
    evaluated = {"evaluation": {"batch_size": 4}, "gpu_memory_gib": 1000, **GC, **more}
    moments = step(config, 1, 1024, evaluated).moments
    assert max(moment.allocated for moment in moments if moment.phase == "evaluate") / MIB == pytest.approx(
        counted, rel=2e-4
    )


@pytest.mark.parametrize(
    ("size", "without_head"), [("v3-xsmall", 70_682_112), ("v3-small", 141_304_320), ("v3-base", 183_831_552)]
)
def test_the_published_models(size: str, without_head: int) -> None:
    facts = models.lookup(f"microsoft/deberta-{size}")
    assert facts is not None
    assert sum(tensor.total for tensor in facts.tensors if tensor.where != "head") == without_head


@pytest.mark.parametrize("odd", [{"embedding_size": 128}, {"legacy": False}])
def test_what_no_published_model_has_is_said_to_be_unknown(odd: dict[str, Any]) -> None:
    assert known(models.from_config(V3, "small"))
    assert not known(models.from_config({**V3, **odd}, "small"))
    spec = {"model_config": {**V3, **odd}, "gpu_memory_gib": 80, "micro_batch_size": 4, "seq_len": 512}
    assert estimate(spec_from_mapping(spec)).allocated_bytes
