"""Runs that a library refuses are not said to fit."""

from __future__ import annotations

import pytest

from lintfit.memory import estimate
from lintfit.memory.reading.parse import spec_from_mapping
from lintfit.memory.result import Verdict

LORA = {"gpu": "A100-80GB", "method": "lora", "lora_rank": 8, "micro_batch_size": 1, "seq_len": 512}


@pytest.mark.parametrize(("targets", "verdict"), [(["c_attn"], Verdict.UNKNOWN), (["q_proj", "c_attn"], Verdict.FITS)])
def test_adapters_need_a_module_to_go_on(targets: list[str], verdict: Verdict) -> None:
    """PEFT: "Target modules {'c_attn'} not found in the base model"; one that is there is enough."""
    found = estimate(spec_from_mapping({"model": "Qwen/Qwen2.5-7B", "lora_targets": targets, **LORA}))
    assert found.verdict is verdict
    assert any("PEFT refuses" in line for line in found.not_modelled) is (verdict is Verdict.UNKNOWN)


@pytest.mark.parametrize(("model", "ignores"), [("google/flan-t5-xl", False), ("OrionStarAI/Orion-14B-Base", True)])
def test_who_may_ignore_checkpointing(model: str, ignores: bool) -> None:
    """The high end says so: transformers' own classes do not, a model's own code may."""
    shape = {"model": model, "micro_batch_size": 8, "seq_len": 512, "gpu": "A100-80GB", "gpus": 8, "zero_stage": 3}
    on, off = (
        estimate(spec_from_mapping({**shape, "gradient_checkpointing": way, "attention": "eager"}))
        for way in (True, False)
    )
    assert (on.peak.high >= off.peak.likely) is ignores
