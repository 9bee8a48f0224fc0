"""The inventory of weights: dtypes, adapters, quantised bytes, parallel shares."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lintfit.catalog.facts import ModelFacts, MoE, Tensor
from lintfit.memory.engines.model_states import states
from lintfit.memory.reading.parse import spec_from_mapping
from lintfit.memory.spec import Spec
from lintfit.memory.tensors.lora import adapters, default_targets, saved_modules
from lintfit.memory.tensors.parameters import inventory, model_dtype, rounded
from lintfit.memory.tensors.quantization import quantised_bytes


def test_every_parameter_is_counted_once(small: ModelFacts) -> None:
    held = inventory(Spec(small))
    assert held.trainable == small.parameters == 4_000_000
    assert held.frozen == 0
    assert held.largest == 2048 * 256


def test_a_tensor_takes_whole_blocks_of_512_bytes() -> None:
    assert [rounded(size) for size in (1, 512, 513)] == [512, 512, 1024]


@pytest.mark.parametrize(
    ("engine", "stage", "weights", "mixed", "zero3_init", "expected"),
    [
        ("single", 0, "bf16", "no", True, "bf16"),
        ("single", 0, "fp32", "bf16", True, "fp32"),
        ("deepspeed", 0, "fp32", "bf16", True, "bf16"),
        ("deepspeed", 2, "fp32", "no", True, "fp32"),
        ("deepspeed", 2, "bf16", "no", True, "bf16"),
        ("deepspeed", 3, "bf16", "no", True, "fp32"),
        ("deepspeed", 3, "bf16", "no", False, "bf16"),
        ("deepspeed", 3, "fp32", "fp16", True, "fp16"),
    ],
)
def test_the_engine_decides_the_dtype(
    small: ModelFacts, engine: str, stage: int, weights: str, mixed: str, zero3_init: bool, expected: str
) -> None:
    spec = Spec(
        small,
        engine=engine,  # type: ignore[arg-type]
        zero_stage=stage,  # type: ignore[arg-type]
        weights_dtype=weights,  # type: ignore[arg-type]
        mixed_precision=mixed,  # type: ignore[arg-type]
        zero3_init=zero3_init,
    )
    assert model_dtype(spec) == expected


def test_adapters_by_name_and_rank(small: ModelFacts) -> None:
    spec = Spec(small, method="lora", lora_rank=8, lora_targets=("q_proj", "v_proj"))
    # A: rank x 256, B: 256 x rank for q and 128 x rank for v, in 4 layers.
    assert sum(weight.total for weight in adapters(spec)) == 4 * 8 * ((256 + 256) + (256 + 128))
    assert all(weight.dtype == "fp32" for weight in adapters(spec))


def test_all_linear_leaves_the_head_out(small: ModelFacts) -> None:
    names = {weight.name for weight in adapters(Spec(small, method="lora", lora_targets="all-linear"))}
    assert len(names) == 14
    assert not any("lm_head" in name or "norm" in name for name in names)


def test_peft_has_default_targets_for_a_llama() -> None:
    assert tuple(default_targets("llama")) == ("q_proj", "v_proj")


def test_dora_adds_a_magnitude_a_module(small: ModelFacts) -> None:
    plain = Spec(small, method="lora", lora_targets=("q_proj",))
    dora = replace(plain, use_dora=True)
    assert inventory(dora).trainable - inventory(plain).trainable == 4 * 256


def test_a_saved_module_is_trained_beside_the_frozen_one(small: ModelFacts) -> None:
    spec = Spec(small, method="lora", lora_targets=("q_proj",), lora_modules_to_save=("lm_head",))
    held = inventory(spec)
    assert held.frozen == small.parameters
    assert held.trainable == 4 * 8 * 512 + 2048 * 256


def test_a_tied_head_is_saved_as_a_copy_of_its_own() -> None:
    from tests.memory.conftest import llama

    tied = llama(tied=True)
    spec = Spec(tied, method="lora", lora_targets=("q_proj",), lora_modules_to_save=("embed_tokens", "lm_head"))
    assert inventory(spec).trainable == 4 * 8 * 512 + 2 * 2048 * 256


def test_a_copied_head_is_no_embedding_and_learned_positions_are_no_head() -> None:
    def copies(modules: list[str]) -> list[tuple[str, str]]:
        spec = spec_from_mapping({"model": "gpt2", "method": "lora", "lora_modules_to_save": modules})
        return [(weight.name, weight.role) for weight in saved_modules(spec)]

    head, words = ("transformer.wte.modules_to_save.tied", "lm_head"), ("transformer.wte.modules_to_save", "embedding")
    assert copies(["lm_head"]) == [head]
    assert copies(["lm_head", "wte"]) == [words, head]


def test_experts_fused_by_transformers_5_get_wide_adapters(small: ModelFacts) -> None:
    experts = (
        Tensor("model.layers.{}.mlp.experts.gate_up_proj", (4, 256, 64), 2, "expert"),
        Tensor("model.layers.{}.mlp.experts.down_proj", (4, 64, 128), 2, "expert"),
    )
    facts = replace(small, model_type="mixtral", layers=2, tensors=experts, moe=MoE(4, 2, 128, 2))
    shapes = {weight.shape for weight in adapters(Spec(facts, method="lora", lora_rank=8, lora_targets="all-linear"))}
    # What peft 0.21 makes of a Mixtral with 4 experts, hidden 64, intermediate 128, rank 8.
    assert shapes == {(64, 64), (256, 64), (32, 128), (64, 32)}


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("nf4", 1024**2 // 2 + 65_536 + 512),
        ("nf4-double", 1024**2 // 2 + 16_384 + 512 + 512 + 512 + 1024),
        ("int8", 1024**2 + 4096),
        ("gptq-int4", 1024**2 // 2 + 4096 + 16_384 + 4096),
        ("gptq-int8", 1024**2 + 8192 + 16_384 + 4096),
    ],
)
def test_quantised_bytes_of_a_square_of_1024(method: str, expected: int) -> None:
    assert quantised_bytes((1024, 1024), method) == expected


def test_an_unknown_quantisation_is_named() -> None:
    with pytest.raises(ValueError, match="'nf3'; known: nf4"):
        quantised_bytes((8, 8), "nf3")


def test_embeddings_head_and_norms_stay_unquantised(small: ModelFacts) -> None:
    held = inventory(Spec(small, method="lora", quantization="nf4"))
    plain = {weight.name for weight in held.weights if not weight.trainable and not weight.quantised}
    assert plain == {
        "model.embed_tokens.weight",
        "model.layers.{}.input_layernorm.weight",
        "model.layers.{}.post_attention_layernorm.weight",
        "model.norm.weight",
        "lm_head.weight",
    }


def test_tensor_parallelism_halves_matrices_and_keeps_norms(small: ModelFacts) -> None:
    whole, half = inventory(Spec(small)), inventory(Spec(small, gpus=2, tensor_parallel=2))
    norms = 256 * (2 * 4 + 1)
    assert half.trainable == (whole.trainable - norms) // 2 + norms


def test_a_pipeline_stage_holds_half_the_layers_and_one_end(small: ModelFacts) -> None:
    stage = inventory(Spec(small, gpus=2, pipeline_parallel=2))
    ends = 2 * 2048 * 256 + 256
    layer = (small.parameters - ends) // 4
    assert stage.trainable == 2 * layer + 2048 * 256 + 256


@pytest.mark.parametrize("stage", [1, 2, 3])
def test_deepspeed_without_a_precision_leaves_adapters_in_fp32(stage: int) -> None:
    """The bucket takes their dtype; with bf16 enabled the engine casts them."""
    mapping = {"model": "meta-llama/Llama-2-7b-hf", "method": "lora", "gpus": 4, "zero_stage": stage}
    buckets = [
        states(spec_from_mapping({**mapping, "mixed_precision": precision})).first_gradient["communication_buffers"]
        for precision in ("no", "bf16")
    ]
    assert buckets[0] - buckets[1] >= 2 * 500_000_000 * (stage != 3)
    kinds = [
        {weight.dtype for weight in inventory(spec_from_mapping({**mapping, "mixed_precision": p})).trainables}
        for p in ("no", "bf16")
    ]
    # What is added to a model of zero.Init is left as it is since 0.19.2.
    assert kinds == [{"fp32"}, {"fp32" if stage == 3 else "bf16"}]
