"""bitsandbytes finds experts among the linear layers of transformers 4 and passes over the parameters of version 5."""

from __future__ import annotations

from typing import Any

import pytest

from lintfit.memory import estimate
from lintfit.memory.explain import OTHER, at
from lintfit.memory.reading.contradictions import SpecError
from lintfit.memory.reading.parse import spec_from_mapping
from lintfit.memory.result import Estimate, Verdict

MIXTRAL = "mistralai/Mixtral-8x7B-v0.1"
OLD, NEW = {"transformers": "4.57.0"}, {"transformers": "5.23.0"}


def _qlora(model: str, **more: Any) -> Estimate:
    adapters = {"method": "lora", "lora_rank": 8, "lora_targets": ["q_proj", "v_proj"], "quantization": "nf4"}
    base = {"gpu": "A100-40GB", "weights_dtype": "bf16", "mixed_precision": "bf16", "micro_batch_size": 1}
    return estimate(spec_from_mapping({"model": model, **base, "seq_len": 512, **adapters, **more}))


def test_an_unstated_version_may_be_either() -> None:
    either, old, new = (_qlora(MIXTRAL, versions=versions) for versions in ({}, OLD, NEW))
    assert either.peak.low == pytest.approx(old.peak.low, rel=1e-3)
    assert either.peak.low < either.peak.likely == new.peak.likely
    assert (either.verdict, new.verdict) == (Verdict.TIGHT, Verdict.DOES_NOT_FIT)
    assert any("experts" in note for note in either.assumptions)
    assert not any("experts" in note for guess in (old, new) for note in guess.assumptions)


@pytest.mark.parametrize("model", ["openai/gpt-oss-20b", "Qwen/Qwen3-VL-30B-A3B-Instruct"])
def test_experts_that_never_were_linear_layers_stay_as_they_are(model: str) -> None:
    found = [_qlora(model, versions=versions, images=0) for versions in (OLD, NEW)]
    parameters = {max(guess.moments, key=lambda moment: moment.allocated).components["parameters"] for guess in found}
    assert len(parameters) == 1
    assert not any("experts" in note for note in _qlora(model).assumptions)


GLM = "zai-org/GLM-4.7-Flash"
FUSED = 46 * 64 * 3 * 1536 * 2048
"""Elements of its routed experts."""
ATTENTION = ["q_proj", "k_proj", "v_proj", "o_proj"]


def _axolotl(**more: Any) -> Estimate:
    """axolotl examples/glm47-flash/lora.yaml, ``quantize_moe_experts``: ~35 GiB of a GPU of 48 GB."""
    run = {
        "model": GLM, "gpu_memory_gib": 47.5, "method": "lora", "quantization": "int8", "kbit_upcast": "none",
        "quantized_experts": True, "weights_dtype": "bf16", "mixed_precision": "bf16", "lora_rank": 32,
        "lora_targets": ATTENTION, "micro_batch_size": 2, "seq_len": 2048, "gradient_checkpointing": True,
        "attention": "flash_attention_2", "padded_batches": False, "loss": "liger", "optimizer": "adamw_torch_8bit",
        "evaluation": {"batch_size": 0},
        "versions": {"transformers": "5.2.0", "bitsandbytes": "0.49.1", "peft": "0.18.1"},
    }  # fmt: skip
    return estimate(spec_from_mapping({**run, **more}))


def _peak(guess: Estimate, component: str) -> int:
    return max(moment.components.get(component, 0) for moment in guess.moments)


def test_glm_of_axolotl() -> None:
    found = _axolotl()
    assert found.verdict is Verdict.FITS
    assert found.peak.low <= 35 * 2**30 <= found.peak.high
    assert _axolotl(quantized_experts=False).verdict is Verdict.DOES_NOT_FIT


@pytest.mark.parametrize(
    ("quantization", "saved"), [("int8", 1), ("nf4", 2 - 1 / 2 - 4 / 64), ("nf4-double", 2 - 1 / 2 - 1 / 64)]
)
def test_bytes_of_experts_that_are_one_parameter(quantization: str, saved: float) -> None:
    sixteen, quantised = (
        _peak(_axolotl(quantization=quantization, quantized_experts=said), "parameters") for said in (False, True)
    )
    assert sixteen - quantised == pytest.approx(saved * FUSED, rel=3e-3)


@pytest.mark.parametrize(("quantization", "item"), [("int8", 4), ("nf4", 2)])
def test_a_layers_experts_are_dequantised_until_its_backward_is_over(quantization: str, item: int) -> None:
    """Of one layer where layers are checkpointed, else of all, because autograd keeps what it multiplied with."""
    one, every = (
        _axolotl(quantization=quantization, gradient_checkpointing=said, micro_batch_size=1, seq_len=64)
        for said in (True, False)
    )
    held = _peak(every, "temporaries") + _peak(every, "activations")
    assert held - _peak(one, "temporaries") - _peak(one, "activations") == pytest.approx(
        45 / 46 * FUSED * item, rel=0.05
    )


def test_adapters_on_them_are_not_counted() -> None:
    adapted = _axolotl(lora_targets=[*ATTENTION, "gate_up_proj", "down_proj"])
    assert adapted.verdict is Verdict.UNKNOWN
    assert "adapters on quantised experts" in adapted.not_modelled
    assert "adapters on quantised experts" not in _axolotl().not_modelled


def test_before_transformers_5_they_are_linear_layers_anyway() -> None:
    said, unsaid = (_qlora(MIXTRAL, versions=OLD, quantized_experts=flag) for flag in (True, False))
    assert said.peak == unsaid.peak


def test_what_is_stated_leaves_no_guess() -> None:
    assert any("experts" in note for note in _qlora(MIXTRAL).assumptions)
    assert not any("experts" in note for note in _qlora(MIXTRAL, quantized_experts=True).assumptions)


@pytest.mark.parametrize(
    ("more", "line"),
    [
        ({"model": "Qwen/Qwen2.5-7B"}, "quantized_experts: .* has no experts"),
        ({"quantization": "gptq-int4"}, "quantized_experts: true needs quantization 'nf4', 'nf4-double' or 'int8'"),
        ({"quantized_experts": 1}, "quantized_experts: 1 must be true or false"),
    ],
)
def test_what_cannot_be(more: dict[str, Any], line: str) -> None:
    with pytest.raises(SpecError, match=line):
        _axolotl(**more)


@pytest.mark.parametrize("quantization", ["int8", "nf4-double"])
def test_every_byte_has_a_term(quantization: str) -> None:
    run = {"model": GLM, "method": "lora", "quantization": quantization, "quantized_experts": True, "seq_len": 512}
    spec = spec_from_mapping({**run, "gradient_checkpointing": True, "lora_targets": ATTENTION})
    found = estimate(spec)
    for moment in found.moments:
        assert [part for part in at(spec, found, moment) for term in part.terms if term.what == OTHER] == []
