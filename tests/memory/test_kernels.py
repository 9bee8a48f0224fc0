"""Fused kernels, fp32 norms over a quantised base and repeated keys.

Runs that others have measured are in ``tests/recordings/published_peaks.json``.
"""

from __future__ import annotations

from typing import Any

import pytest

from lintfit.memory import estimate
from lintfit.memory.reading.parse import SpecError, spec_from_mapping

LORA: dict[str, Any] = {
    "gpu": "A100-80GB",
    "method": "lora",
    "lora_rank": 16,
    "lora_targets": ["q_proj", "k_proj", "v_proj", "o_proj"],
    "lora_dropout": 0.1,
    "weights_dtype": "bf16",
    "mixed_precision": "bf16",
    "optimizer": "adamw_torch",
    "gradient_checkpointing": True,
    "use_reentrant": True,
    "attention": "flash_attention_2",
    "seq_len": 4096,
}


def test_a_loss_that_overwrites_its_logits_saves_four_bytes_an_entry() -> None:
    spec = {
        **LORA,
        "model": "meta-llama/Meta-Llama-3-8B",
        "micro_batch_size": 4,
        "versions": {"transformers": "4.45.2"},
    }
    plain = estimate(spec_from_mapping(spec)).allocated_bytes
    fused = estimate(spec_from_mapping({**spec, "fused_kernels": ["cross_entropy"]})).allocated_bytes
    assert plain - fused == pytest.approx(4 * 4 * 4096 * 128256, rel=0.001)


def test_components_stay_positive_where_the_kernel_overwrites() -> None:
    spec = {**LORA, "model": "meta-llama/Meta-Llama-3-8B", "micro_batch_size": 4, "fused_kernels": ["cross_entropy"]}
    for moment in estimate(spec_from_mapping(spec)).moments:
        assert all(size >= 0 for size in moment.components.values()), moment


def test_whether_norms_were_cast_narrows_the_range() -> None:
    spec = {**LORA, "model": "mistralai/Mistral-7B-v0.1", "micro_batch_size": 8, "quantization": "nf4"}
    open_, known = (estimate(spec_from_mapping({**spec, **more})) for more in ({}, {"kbit_upcast": "none"}))
    assert open_.allocated_bytes == known.allocated_bytes
    assert open_.peak.high > known.peak.high


def test_unknown_kernel() -> None:
    with pytest.raises(SpecError, match="fused_kernels: 'rmsnorm' must be one of cross_entropy"):
        spec_from_mapping({"model": "mistralai/Mistral-7B-v0.1", "fused_kernels": ["rmsnorm"]})


def test_prepare_model_for_kbit_training_casts_embeddings_and_head() -> None:
    """PEFT ``utils/other.py``: every fp16 or bf16 parameter becomes fp32, but not GPTQ's."""
    spec = {**LORA, "model": "mistralai/Mistral-7B-v0.1", "micro_batch_size": 1, "seq_len": 512}

    def parameters(**more: Any) -> int:
        return estimate(spec_from_mapping({**spec, **more})).component("parameters")

    cast, plain = (parameters(quantization="nf4", kbit_upcast=what) for what in ("all", "none"))
    norms = (2 * 32 + 1) * 4096
    assert cast - plain == 2 * (2 * 32000 * 4096 + norms)
    assert parameters(quantization="gptq-int4", kbit_upcast="all") == parameters(quantization="gptq-int4")


def test_gptq_kernels_in_plain_torch_keep_dequantised_weights() -> None:
    """Which kernel runs is not in the spec: the range has a layer's weights in fp16, without checkpointing all."""
    spec = {**LORA, "model": "mistralai/Mistral-7B-v0.1", "micro_batch_size": 8, "kbit_upcast": "none"}
    layer = 2 * (2 * 4096 * 4096 + 2 * 1024 * 4096 + 3 * 4096 * 14336)
    for more, layers in (({}, 1), ({"gradient_checkpointing": False}, 32)):
        spans = [
            estimate(
                spec_from_mapping({**spec, **more, "quantization": method, "versions": {"bitsandbytes": "0.46.0"}})
            )
            for method in ("gptq-int4", "nf4")
        ]
        assert spans[0].peak.high - spans[1].peak.high >= layers * layer


def test_whose_chunked_loss_it_is_decides_the_high_end() -> None:
    spec = {**LORA, "model": "meta-llama/Meta-Llama-3-8B", "micro_batch_size": 8, "loss": "chunked"}
    open_, stated = (estimate(spec_from_mapping({**spec, **more})) for more in ({}, {"front_end": "transformers"}))
    assert open_.peak.likely == stated.peak.likely
    assert open_.peak.high - stated.peak.high >= 6 * 8 * 4096 * 128256
    assert any("chunked loss" in line for line in open_.assumptions)
    assert not any("chunked loss" in line for line in stated.assumptions)


def test_a_fused_mlp_keeps_gate_and_up_alone() -> None:
    """Unsloth's ``LoRA_MLP``, whose backward writes over both, beside one gradient of their width: of 65,536 tokens and
    14,336 elements in 16 bits each is 1.75 GiB."""
    spec = {
        **LORA,
        "model": "meta-llama/Meta-Llama-3-8B",
        "lora_dropout": 0,
        "lora_targets": "all-linear",
        "quantization": "nf4-double",
        "micro_batch_size": 16,
        "activation_offload": True,
        "loss": "chunked",
    }

    def needs(*kernels: str, **more: object) -> int:
        said = spec_from_mapping({**spec, **more, "fused_kernels": ["rms_norm", "rope", *kernels]})
        return estimate(said).allocated_bytes

    fused = needs("lora", "lora_mlp")
    assert 2 * 1.75 < (needs() - fused) / 2**30 < 6 * 1.75
    assert needs("lora", "lora_mlp", lora_targets=["q_proj", "up_proj"]) > fused
