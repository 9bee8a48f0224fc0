"""Specs as JSON: defaults by version, and one line for everything that is wrong."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from lintfit.memory.reading.parse import SpecError, spec_from_mapping
from lintfit.memory.spec import GIB
from lintfit.settings.values import Fsdp

CONFIG = {
    "model_type": "llama",
    "hidden_size": 256,
    "intermediate_size": 704,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "vocab_size": 1000,
    "max_position_embeddings": 1024,
    "torch_dtype": "bfloat16",
}


def parse(**settings: Any) -> Any:
    return spec_from_mapping({"model_config": CONFIG, **settings})


def test_missing_keys_take_the_libraries_defaults() -> None:
    spec = parse()
    assert spec.engine == "single"
    assert spec.weights_dtype == "bf16"
    assert spec.optimizer == "adamw_torch_fused"
    assert spec.micro_batch_size == 8
    assert spec.seq_len == 1024
    assert not spec.use_reentrant
    assert spec.stated == {"model_config"}


def test_transformers_4_loads_fp32_and_checkpoints_reentrantly() -> None:
    spec = parse(versions={"transformers": "4.48.1"})
    assert (spec.weights_dtype, spec.optimizer, spec.use_reentrant) == ("fp32", "adamw_torch", True)


@pytest.mark.parametrize(
    ("versions", "dtype"),
    [
        ({"torch": "2.3.1"}, "fp32"),
        ({"torch": "2.4.0"}, "bf16"),
        ({"trl": "0.19.1"}, "fp32"),
        ({"trl": "0.26.0"}, "bf16"),
        ({"trl": "0.19.1", "transformers": "5.0.0"}, "bf16"),
        ({"peft": "0.5.0"}, "bf16"),
    ],
)
def test_a_library_that_is_too_old_for_transformers_5_stands_beside_4(versions: dict[str, str], dtype: str) -> None:
    assert parse(versions=versions).weights_dtype == dtype


@pytest.mark.parametrize(
    ("settings", "reference"),
    [
        ({"trainer": "rloo"}, True),
        ({"trainer": "rloo", "method": "lora"}, False),
        ({"trainer": "rloo", "reference_model": False}, False),
        ({"trainer": "grpo"}, False),
        ({"trainer": "grpo", "versions": {"trl": "0.19.0"}}, False),
        ({"trainer": "grpo", "versions": {"trl": "0.18.1"}}, True),
        ({"trainer": "dpo"}, True),
        ({"trainer": "orpo"}, False),
        ({}, False),
    ],
)
def test_a_reference_model_stands_beside_the_policy_where_beta_is_not_0(
    settings: dict[str, Any], reference: bool
) -> None:
    assert parse(**settings).reference_model is reference


@pytest.mark.parametrize(
    ("settings", "engine"),
    [
        ({"gpus": 4}, "ddp"),
        ({"gpus": 4, "zero_stage": 2}, "deepspeed"),
        ({"deepspeed_config": {}}, "deepspeed"),
        ({"gpus": 2, "fsdp": {"version": 2}}, "fsdp"),
    ],
)
def test_the_engine_follows_from_its_settings(settings: dict[str, Any], engine: str) -> None:
    assert parse(**settings).engine == engine


def test_the_deepspeed_config_fills_what_the_spec_leaves_out() -> None:
    zero = {"stage": 3, "offload_optimizer": {"device": "cpu"}, "offload_param": {"device": "nvme"}}
    spec = parse(gpus=2, deepspeed_config={"zero_optimization": zero})
    assert (spec.zero_stage, spec.offload_optimizer, spec.offload_param) == (3, "cpu", "nvme")


def test_hardware() -> None:
    spec = parse(gpu="RTX 3090", host_memory_gib=256)
    assert spec.gpu is not None and "3090" in spec.gpu.name
    assert spec.capacity_bytes == spec.gpu.usable_bytes
    assert spec.host_memory_bytes == 256 * GIB
    assert parse(gpu="RTX 3090", gpu_memory_gib=20).capacity_bytes == 20 * GIB
    assert parse(gpu="a GPU of mine", gpu_memory_gib=20).gpu is None
    assert parse().capacity_bytes is None


def test_structures() -> None:
    spec = parse(
        gpus=2, engine="fsdp", fsdp={"version": 2, "cpu_offload": True}, method="lora", lora_targets=["q_proj"]
    )
    assert spec.fsdp == Fsdp(2, "FULL_SHARD", True)
    assert spec.lora_targets == ("q_proj",)
    assert parse(quantization=None).quantization is None


def test_the_same_config_gives_the_same_facts() -> None:
    assert parse().facts is parse(seq_len=16).facts


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"zero_stages": 3}, "zero_stages: unknown key (did you mean 'zero_stage'?)"),
        ({"gpus": 0, "zero_stage": 3}, "gpus: 0 must be a whole number from 1 to"),
        ({"micro_batch_size": -1}, "micro_batch_size: -1 must be a whole number from 1 to"),
        ({"micro_batch_size": True}, "micro_batch_size: True must be a whole number"),
        ({"lora_rank": 0}, "lora_rank: 0 must be a whole number from 1 to"),
        ({"seq_len": "2048"}, "seq_len: '2048' must be a whole number"),
        ({"zero_stage": 4}, "zero_stage: 4 must be one of 0, 1, 2, 3"),
        ({"mixed_precision": "fp8"}, "mixed_precision: 'fp8' must be one of 'no', 'bf16', 'fp16'"),
        ({"quantization": "nf5"}, "quantization: 'nf5' must be one of null, 'nf4'"),
        ({"lora_targets": "q_proj"}, "lora_targets: 'q_proj' must be a list of module names or 'all-linear'"),
        ({"gpu_memory_gib": 0}, "gpu_memory_gib: 0 must be a number above 0"),
        ({"gpu": "RTX 9999"}, "gpu: 'RTX 9999' is not known"),
        ({"zero_stage": 3, "engine": "fsdp"}, "zero_stage: 3 needs engine 'deepspeed', the spec says 'fsdp'"),
        ({"fsdp": {"verson": 1}, "gpus": 2}, "fsdp.verson: unknown key (did you mean 'version'?)"),
        ({"fsdp": {}, "engine": "ddp", "gpus": 2}, "fsdp: needs engine 'fsdp', the spec says 'ddp'"),
        ({"gpus": 3, "tensor_parallel": 2}, "gpus: 3 is no multiple of tensor_parallel"),
        ({"gpus": 2, "nodes": 4}, "nodes: 4 is more than gpus (2)"),
        ({"gpus": 2, "engine": "single"}, "engine: 'single' runs on one GPU, gpus is 2"),
        ({"quantization": "nf4"}, "quantization: 'nf4' weights cannot be trained with method 'full'"),
        ({"versions": {"transformers": 5}}, "versions.transformers: 5 must be a string"),
        ({"deepspeed_config": [], "engine": "deepspeed"}, "deepspeed_config: [] must be a JSON object"),
        (
            {"deepspeed_config": {"zero_optimization": {"stage": 7}}},
            "zero_optimization.stage: 7 must be",
        ),
    ],
)
def test_one_line_says_what_is_wrong(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError) as error:
        parse(**settings)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_the_model() -> None:
    with pytest.raises(SpecError, match=r"model: missing"):
        spec_from_mapping({})
    with pytest.raises(SpecError, match=r"model: 'nobody/no-such-model' is not known.*model_config"):
        spec_from_mapping({"model": "nobody/no-such-model"})
    with pytest.raises(SpecError, match=r"model_config: .*hidden_size"):
        spec_from_mapping({"model_config": {**CONFIG, "hidden_size": -4}})
    with pytest.raises(SpecError, match=r"model_config: 3 is not the content"):
        spec_from_mapping({"model_config": 3})
    with pytest.raises(SpecError, match=r"spec: must be a JSON object"):
        spec_from_mapping([])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"offload_optimizer": "cpu"}, "offload_optimizer: 'cpu' needs engine 'deepspeed', the spec says 'single'"),
        ({"expert_parallel": 4}, "gpus: 1 is no multiple of expert_parallel (4)"),
        (
            {"pipeline_parallel": 64, "gpus": 64},
            "pipeline_parallel: 64 is more than the model's 12 layers",
        ),
        (
            {"deepspeed_config": {"zero_optimization": {"stage": 2, "reduce_bucket_size": -5}}},
            "deepspeed_config.zero_optimization.reduce_bucket_size: -5 must not be negative",
        ),
    ],
)
def test_what_cannot_be_meant_together(more: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError) as caught:
        spec_from_mapping({"model": "gpt2", **more})
    assert str(caught.value) == message


def test_a_lora_key_says_the_method() -> None:
    assert spec_from_mapping({"model": "gpt2", "lora_rank": 4}).method == "lora"
    assert spec_from_mapping({"model": "gpt2", "lora_rank": 4, "method": "full"}).method == "full"


@pytest.mark.parametrize(
    ("stated", "gpus"),
    [
        ({"gpu": "8x3090"}, 8),
        ({"gpu": "gpu:a100:4", "nodes": 2}, 8),
        ({"gpu": "8x3090", "gpus": 4}, 4),
        ({"gpu": "3090"}, 1),
    ],
)
def test_the_name_of_the_cards_may_state_their_number(stated: dict[str, Any], gpus: int) -> None:
    run = spec_from_mapping({"model": "gpt2", **stated})
    assert (run.gpus, run.engine) == (gpus, "single" if gpus == 1 else "ddp")


def test_no_card_at_all() -> None:
    with pytest.raises(SpecError, match="gpu: '0x3090' states no GPU"):
        spec_from_mapping({"model": "gpt2", "gpu": "0x3090"})


def test_torchs_name_of_a_strategy_is_the_same_without_its_underscore() -> None:
    run = {"model": "gpt2", "gpu": "A100 80GB", "gpus": 16, "nodes": 2, "engine": "fsdp"}
    named = [
        spec_from_mapping({**run, "fsdp": {"strategy": name}}) for name in ("_HYBRID_SHARD_ZERO2", "HYBRID_SHARD_ZERO2")
    ]
    assert named[0].fsdp == named[1].fsdp == Fsdp(1, "HYBRID_SHARD_ZERO2")
    assert named[0].fsdp is not None and named[0].fsdp.gathers == 1


@pytest.mark.parametrize(
    ("settings", "tokens"),
    [
        ({"trainer": "grpo"}, 512),
        ({"trainer": "grpo", "versions": {"trl": "1.8.0"}}, 256),
        ({"trainer": "rloo"}, 512),
        ({"trainer": "ppo"}, 53),
        ({"trainer": "grpo", "seq_len": 128}, 128),
        ({"trainer": "grpo", "seq_len": 128, "generation": {"steps_per_generation": 2}}, 128),
        ({"trainer": "grpo", "generation": {"completion_len": 7}}, 7),
    ],
)
def test_a_completion_is_as_long_as_trl_lets_it_be(settings: dict[str, Any], tokens: int) -> None:
    generation = parse(**settings).generation
    assert generation is not None and generation.completion_len == tokens


@pytest.mark.parametrize(
    ("settings", "gathers"),
    [
        ({"zero_stage": 3}, True),
        ({"zero_stage": 3, "generation": {"completion_len": 64}}, True),
        ({"zero_stage": 3, "generation": {"gather_weights": False}}, False),
        ({"zero_stage": 3, "generation": {"vllm_gpu_memory_utilization": 0.3}}, False),
        ({"zero_stage": 2}, False),
    ],
)
def test_zero_3_gathers_all_weights_to_generate(settings: dict[str, Any], gathers: bool) -> None:
    assert parse(trainer="grpo", gpus=8, **settings).gathers_to_generate is gathers


def test_another_stage_gathers_what_is_sharded_there() -> None:
    """Of a run that is asked what another stage would take: ZeRO-2 has all weights anyway, ZeRO-3 gathers them."""
    second, third = (parse(trainer="grpo", gpus=8, zero_stage=stage) for stage in (2, 3))
    assert replace(second, zero_stage=3).gathers_to_generate
    assert not replace(third, zero_stage=2).gathers_to_generate


def test_null_leaves_a_part_to_its_default() -> None:
    assert parse(gpus=2, fsdp={"version": None, "strategy": None}).fsdp == Fsdp()
