"""Checkpoints that are quantised: by the conventions of their names, and by their configs."""

from __future__ import annotations

from typing import Any

import pytest

from lintfit.catalog import models
from lintfit.catalog.facts import Stored
from lintfit.catalog.quantized import by_config, by_name, quant_method, skips


@pytest.mark.parametrize(
    ("name", "kind", "method"),
    [
        ("unsloth/Meta-Llama-3.1-8B-bnb-4bit", "bitsandbytes 4-bit", "nf4-double"),
        ("unsloth/Qwen2.5-7B-Instruct-unsloth-bnb-4bit", "bitsandbytes 4-bit", "nf4-double"),
        ("org/Qwen3-8B-bnb-8bit", "bitsandbytes 8-bit", "int8"),
        ("Qwen/Qwen2-7B-Instruct-GPTQ-Int8", "GPTQ 8-bit", "gptq-int8"),
        ("hugging-quants/Meta-Llama-3.1-8B-Instruct-GPTQ-INT4", "GPTQ 4-bit", "gptq-int4"),
        ("/data/models/model-4bit-gptq/", "GPTQ 4-bit", "gptq-int4"),
        ("Qwen/Qwen-7B-Chat-Int4", "GPTQ 4-bit", "gptq-int4"),
        ("TheBloke/Llama-2-7B-GPTQ", "GPTQ", None),
        ("Qwen/Qwen2.5-7B-Instruct-AWQ", "AWQ", None),
        ("hugging-quants/Meta-Llama-3.1-8B-Instruct-AWQ-INT4", "AWQ", None),
        ("Qwen/Qwen3-8B-FP8", "FP8", None),
        ("RedHatAI/Meta-Llama-3.1-8B-Instruct-FP8-dynamic", "FP8", None),
        ("RedHatAI/Llama-3.2-1B-Instruct-quantized.w8a8", "W8A8", None),
        ("openbmb/MiniCPM-V-2_6-int4", "4-bit", None),
        ("01-ai/Yi-34B-Chat-8bits", "8-bit", None),
    ],
)
def test_names_say_how_a_checkpoint_is_stored(name: str, kind: str, method: str | None) -> None:
    stored = by_name(name)
    assert stored is not None
    assert (stored.kind, stored.method) == (kind, method)
    assert stored.partly == ("unsloth-bnb" in name)


@pytest.mark.parametrize(
    "name",
    [
        "meta-llama/Llama-3.1-8B",
        "openai/gpt-oss-20b",
        "./out/llama-4bit-lora",
        "gptq-experiments/llama",
        "org/Qwen2.5-7B-bf16",
        "deepseek-ai/DeepSeek-V3",
        "",
    ],
)
def test_other_names_say_nothing(name: str) -> None:
    assert by_name(name) is None


@pytest.mark.parametrize(
    ("section", "stored"),
    [
        ({"load_in_4bit": True, "bnb_4bit_use_double_quant": True}, Stored("bitsandbytes 4-bit", "nf4-double")),
        (
            {
                "quant_method": "bitsandbytes",
                "load_in_4bit": True,
                "llm_int8_skip_modules": ["lm_head", "model.layers.1.mlp"],
            },
            Stored("bitsandbytes 4-bit", "nf4", ("lm_head", "model.layers.1.mlp")),
        ),
        (
            {"quant_method": "bitsandbytes", "load_in_8bit": True, "load_in_4bit": False},
            Stored("bitsandbytes 8-bit", "int8"),
        ),
        ({"quant_method": "gptq", "bits": 4, "group_size": 32}, Stored("GPTQ 4-bit", "gptq-int4")),
        ({"quant_method": "gptq", "bits": 3}, Stored("GPTQ")),
        ({"quant_method": "awq", "bits": 4}, Stored("AWQ")),
        ({"quant_method": ["awq"], "bits": {}}, Stored("quantized")),
        ({"quant_method": "two\nlines"}, Stored("quantized")),
        (
            {"quant_method": "gptq", "bits": 4, "modules_to_not_convert": [1, "lm_head"]},
            Stored("GPTQ 4-bit", "gptq-int4", ("lm_head",)),
        ),
        ({"quant_method": "mxfp4"}, None),
        ({"quant_method": "awq", "dequantize": True}, None),
        ({}, None),
    ],
)
def test_configs_say_how_a_checkpoint_is_stored(section: dict[str, Any], stored: Stored | None) -> None:
    assert by_config({"quantization_config": section}) == stored
    assert by_config({"text_config": {"quantization_config": section}}) == stored


def test_a_config_says_more_than_a_name() -> None:
    config, _ = models.config_of("Qwen/Qwen2.5-0.5B")
    assert models.from_config(config, "org/Qwen2.5-0.5B-AWQ").stored == Stored("AWQ")
    section = {"quant_method": "gptq", "bits": 8}
    stored = models.from_config({**config, "quantization_config": section}, "org/Qwen2.5-0.5B-GPTQ-Int4").stored
    assert stored == Stored("GPTQ 8-bit", "gptq-int8")


def test_a_copy_by_another_owner_is_quantised_as_its_name_says() -> None:
    copied, plain = models.lookup("unsloth/Qwen2.5-3B-bnb-4bit"), models.lookup("Qwen/Qwen2.5-3B")
    assert copied is not None and copied.stored == Stored("bitsandbytes 4-bit", "nf4-double")
    assert plain is not None and plain.stored is None


@pytest.mark.parametrize(
    ("pattern", "module", "left"),
    [
        ("lm_head", "lm_head", True),
        ("model.layers.1", "model.layers.1.mlp.up_proj", True),
        ("model.layers.1", "model.layers.11.mlp.up_proj", False),
        ("mlp.up_proj", "model.layers.3.mlp.up_proj", True),
        ("visual", "model.visual.blocks.0.attn.qkv", True),
        ("language_model.model.layers.0", "model.language_model.layers.0.mlp.up_proj", True),
        ("(", "model.layers.0.mlp", False),
    ],
)
def test_modules_that_a_checkpoint_leaves(pattern: str, module: str, left: bool) -> None:
    assert skips((pattern,), module) is left


@pytest.mark.parametrize(
    ("config", "name", "method"),
    [
        ({}, "Qwen/Qwen2.5-7B-Instruct-AWQ", "awq"),
        ({}, "Qwen/Qwen2.5-7B-Instruct-GPTQ-Int4", "gptq"),
        ({}, "unsloth/Qwen2.5-7B-bnb-4bit", "bitsandbytes"),
        ({}, "openai/gpt-oss-20b", "mxfp4"),
        ({}, "Qwen/Qwen2.5-7B", None),
        ({"quantization_config": {"quant_method": "compressed-tensors"}}, "any/thing-AWQ", "compressed-tensors"),
        ({"quantization_config": {"load_in_8bit": True}}, "any/thing", "bitsandbytes"),
        ({"quantization_config": {"bits": 4}}, "any/thing", None),
    ],
)
def test_the_method_by_the_config_before_the_name(config: dict[str, Any], name: str, method: str | None) -> None:
    assert quant_method(config, name) == method
