"""Specs that cannot be: one line that names the key, the value and what is allowed."""

from __future__ import annotations

from typing import Any

import pytest

from lintfit.memory import estimate
from lintfit.memory.reading.contradictions import SpecError
from lintfit.memory.reading.parse import spec_from_mapping
from lintfit.memory.spec import Spec

MODEL = "meta-llama/Llama-2-7b-hf"
MIXTRAL = "mistralai/Mixtral-8x7B-v0.1"


def _zero(**keys: Any) -> dict[str, Any]:
    return {"gpus": 8, "deepspeed_config": {"zero_optimization": {"stage": 3, **keys}}}


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"zero_stage": 3, "gpus": 0}, "gpus: 0 must be a whole number from 1"),
        (
            {"optimizer": "adamw_trch"},
            "optimizer: 'adamw_trch' is no optimizer that is known (did you mean 'adamw_torch'?)",
        ),
        ({"versions": {"transformers": "main"}}, "versions.transformers: 'main' must be a version"),
        (_zero(reduce_bucket_size=1e300), "zero_optimization.reduce_bucket_size: 1e+300 must be a number up to"),
        (_zero(reduce_bucket_size=-1), "zero_optimization.reduce_bucket_size: -1 must not be negative"),
        (_zero(mics_shard_size=3), "zero_optimization.mics_shard_size: 3 does not divide gpus (8)"),
        (_zero(zero_hpz_partition_size=5), "zero_optimization.zero_hpz_partition_size: 5 does not divide gpus (8)"),
        ({"zero_stage": 3, "engine": "ddp"}, "zero_stage: 3 needs engine 'deepspeed'"),
        ({"gpus": 6, "tensor_parallel": 4}, "gpus: 6 is no multiple"),
        ({"gpus": 8, "expert_parallel": 8}, "expert_parallel: 8 needs a model with experts"),
        (
            {"gpus": 3, "expert_parallel": 3, "model": MIXTRAL},
            "expert_parallel: 3 does not divide the model's 8 experts",
        ),
        (
            {"trainer": "grpo", "seq_len": 512, "generation": {"completion_len": 1024}},
            "generation.completion_len: 1024 is more than seq_len (512)",
        ),
        ({"zero_stage": 2, **_zero()}, "zero_stage: 2 contradicts deepspeed_config.zero_optimization.stage (3)"),
        (
            {"offload_optimizer": "none", **_zero(offload_optimizer={"device": "cpu"})},
            "offload_optimizer: 'none' contradicts deepspeed_config.zero_optimization.offload_optimizer.device ('cpu')",
        ),
        (
            _zero(offload_param={"device": "nvme", "buffer_size": float("inf")}),
            "offload_param.buffer_size: inf must be",
        ),
        (_zero(offload_optimizer=["cpu"]), "zero_optimization.offload_optimizer: ['cpu'] must be a JSON object"),
        (_zero(reduce_bucket_size="5e8"), "zero_optimization.reduce_bucket_size: '5e8' must be a number or 'auto'"),
        (_zero(overlap_comm="yes"), "zero_optimization.overlap_comm: 'yes' must be true, false or 'auto'"),
        (
            {"deepspeed_config": {"zero_optimization": []}},
            "deepspeed_config.zero_optimization: [] must be a JSON object",
        ),
        ({"deepspeed_config": {"bf16": True}}, "deepspeed_config.bf16: True must be a JSON object"),
        (
            {"deepspeed_config": {"bf16": {"enabled": True}, "fp16": {"enabled": True}}},
            "deepspeed_config: bf16.enabled and fp16.enabled are both true",
        ),
        (
            {"deepspeed_config": {"data_types": {"grad_accum_dtype": "int8"}}},
            "deepspeed_config.data_types.grad_accum_dtype: 'int8' must be one of 'fp32', 'bf16', 'fp16'",
        ),
        ({"model": "a\nb"}, "model: 'a\\nb' is not known"),
        ({"gpu": "card\x1b[31m"}, "gpu: 'card\\x1b[31m' is not known"),
    ],
)
def test_one_line_says_what_is_wrong(more: dict[str, Any], said: str) -> None:
    with pytest.raises(SpecError) as caught:
        spec_from_mapping({"model": MODEL, **more})
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_only_looks_wrong_is_taken() -> None:
    def taken(**more: Any) -> Spec:
        return spec_from_mapping({"model": MODEL, **more})

    assert taken(**_zero(stage3_model_persistence_threshold=2**63 - 1, mics_shard_size=4)).zero_stage == 3
    assert taken(optimizer="galore_adamw").optimizer == "galore_adamw"
    assert taken(lora_targets=["lm_head"]).lora_targets == ("lm_head",)
    assert taken(model="mistralai/Mixtral-8x7B-v0.1", lora_targets=["w1"]).lora_targets == ("w1",)
    assert taken(**_zero(reduce_bucket_size="auto", offload_param=None, overlap_comm=None)).offload_param == "none"
    assert taken(zero_stage=3, offload_optimizer="none", **_zero()).offload_optimizer == "none"
    split = taken(model=MIXTRAL, gpus=8, expert_parallel=4, tensor_parallel=2)
    assert (split.expert_parallel, split.tensor_parallel) == (4, 2)


def test_facts_of_a_similar_model_leave_the_verdict_open() -> None:
    """The count may be off by as much either way."""
    config = {"model_type": "brand_new", "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32}
    config |= {"num_attention_heads": 32, "vocab_size": 32000}
    own = estimate(spec_from_mapping({"model_config": {**config, "model_type": "llama"}}))
    guess = estimate(spec_from_mapping({"model_config": config}))
    assert guess.peak.high >= 2 * own.peak.low
    assert guess.peak.low <= own.peak.low // 2 + own.peak.low // 20
