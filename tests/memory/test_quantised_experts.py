"""bitsandbytes finds experts among the linear layers of transformers 4 and passes over the parameters of version 5."""

from __future__ import annotations

from typing import Any

import pytest

from lintfit.memory import estimate
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
