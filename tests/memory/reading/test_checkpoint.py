"""Specs whose model is quantised already, by its name or by its config."""

from __future__ import annotations

from typing import Any

import pytest

from lintfit.catalog import models
from lintfit.memory.estimator import estimate
from lintfit.memory.reading.contradictions import SpecError
from lintfit.memory.reading.parse import spec_from_mapping
from lintfit.memory.result import Verdict
from lintfit.memory.tensors.parameters import inventory
from lintfit.memory.tensors.quantization import quantised_bytes

FOUR_BIT = "unsloth/Meta-Llama-3.1-8B-bnb-4bit"


def test_a_name_is_worth_the_key() -> None:
    named = spec_from_mapping({"model": FOUR_BIT})
    stated = spec_from_mapping({"model": "meta-llama/Llama-3.1-8B", "quantization": "nf4-double", "method": "lora"})
    assert (named.quantization, named.method) == ("nf4-double", "lora")
    assert inventory(named).frozen_bytes == inventory(stated).frozen_bytes
    assert any("bitsandbytes 4-bit already" in line for line in estimate(named).assumptions)


def test_what_is_stated_may_be_more_exact() -> None:
    assert spec_from_mapping({"model": FOUR_BIT, "quantization": "nf4", "method": "lora"}).quantization == "nf4"
    awq = spec_from_mapping({"model": "Qwen/Qwen2.5-7B-Instruct-AWQ", "quantization": "gptq-int4", "method": "lora"})
    assert estimate(awq).not_modelled == ()


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ({"quantization": "int8", "method": "lora"}, "quantization: 'int8' contradicts the model"),
        ({"quantization": None}, "quantization: null contradicts the model"),
        ({"method": "full"}, "method: 'full' cannot train the bitsandbytes 4-bit weights of the model"),
    ],
)
def test_contradictions_are_one_line(extra: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message) as caught:
        spec_from_mapping({"model": FOUR_BIT, **extra})
    assert FOUR_BIT in str(caught.value) and "\n" not in str(caught.value)


def test_weights_that_nobody_has_counted_are_not_said_to_fit() -> None:
    spec = spec_from_mapping(
        {"model": "Qwen/Qwen2.5-7B-Instruct-AWQ", "gpu": "H100", "seq_len": 128, "micro_batch_size": 1}
    )
    found = estimate(spec)
    assert found.verdict is Verdict.UNKNOWN
    assert any("AWQ, whose bytes nobody has counted" in line for line in found.not_modelled)


def test_weights_that_nobody_has_counted_may_certainly_not_fit() -> None:
    spec = spec_from_mapping({"model": "Qwen/Qwen2.5-72B-Instruct-AWQ", "gpu": "RTX 3090"})
    assert estimate(spec).verdict is Verdict.DOES_NOT_FIT


def test_modules_that_a_checkpoint_leaves_keep_their_width() -> None:
    config, _ = models.config_of("meta-llama/Llama-3.1-8B")
    section = {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_use_double_quant": True}
    base = {"method": "lora", "gpu": "RTX 4090"}

    def size(left: list[str] | None) -> int:
        full = {**config, "quantization_config": {**section, "llm_int8_skip_modules": left}}
        return inventory(spec_from_mapping({**base, "model_config": full})).frozen_bytes

    layer = 3 * 4096 * 14336
    down = layer // 3
    packed = 2 * quantised_bytes((14336, 4096), "nf4-double") + quantised_bytes((4096, 14336), "nf4-double")
    assert size(["lm_head", "model.layers.3.mlp"]) - size(None) == 2 * layer - packed
    head = 128256 * 4096
    assert size(None) - size([]) == 2 * head - quantised_bytes((128256, 4096), "nf4-double")
    everywhere = 32 * (2 * down - quantised_bytes((4096, 14336), "nf4-double"))
    assert size(["lm_head", "down_proj"]) - size(None) == everywhere


def test_a_dynamic_checkpoint_may_need_more_than_its_name_says() -> None:
    base = {"gpu": "RTX 4090", "seq_len": 512, "micro_batch_size": 1, "gradient_checkpointing": True}
    spec = spec_from_mapping({**base, "model": "unsloth/Qwen2.5-7B-bnb-4bit"})
    plain = estimate(spec)
    dynamic = estimate(spec_from_mapping({**base, "model": "unsloth/Qwen2.5-7B-unsloth-bnb-4bit"}))
    assert dynamic.peak.low == plain.peak.low
    assert dynamic.peak.high - plain.peak.high == int(0.33 * inventory(spec).frozen_bytes)
