"""PPO's policy and value model in one step, and its rounds; TRL's own loop is counted by ``bench.fake_tensors``."""

from __future__ import annotations

from typing import Any

import pytest

from lintfit.memory import estimate
from lintfit.memory.reading.contradictions import SpecError
from lintfit.memory.reading.parse import spec_from_mapping
from lintfit.memory.result import Estimate, Moment
from lintfit.memory.spec import Spec
from lintfit.memory.tensors.parameters import inventory
from tests.support import published

VOCABULARY = 128_256
POLICY = published("meta-llama/Llama-3.2-1B")
VALUE = POLICY
"""Llama-3.2-1B; its head is tied, so that the value model lacks none of its tensors."""
RESPONSE = 64


def _spec(**more: Any) -> Spec:
    return spec_from_mapping(
        {
            "model": "meta-llama/Llama-3.2-1B",
            "gpu_memory_gib": 79.2,
            "weights_dtype": "bf16",
            "trainer": "ppo",
            "micro_batch_size": 2,
            "seq_len": 512,
            "generation": {"completion_len": RESPONSE},
            **more,
        }
    )


def _at(guess: Estimate, name: str) -> Moment:
    return next(moment for moment in guess.moments if moment.name == name)


def test_two_models_train_and_two_more_are_there() -> None:
    step = _at(estimate(_spec()), "optimizer step").components
    assert step["gradients"] == pytest.approx(2 * (POLICY + VALUE), rel=1e-3)
    assert step["optimizer_states"] == pytest.approx(4 * (POLICY + VALUE), rel=1e-3)
    assert step["parameters"] == pytest.approx(2 * (2 * POLICY + 2 * VALUE), rel=1e-3)


def test_adapters_are_the_policys_and_the_value_model_trains_whole() -> None:
    held = inventory(_spec(method="lora", lora_rank=8))
    assert held.trainable == pytest.approx(VALUE, rel=0.01)
    assert held.frozen == POLICY
    assert not [weight for weight in held.weights if weight.role == "adapter" and "value_model" in weight.name]


def test_models_of_their_own() -> None:
    small = _spec(reward_model="Qwen/Qwen2.5-0.5B")
    assert inventory(small).trainable == POLICY + published("Qwen/Qwen2.5-0.5B")
    both = _spec(reward_model="Qwen/Qwen2.5-0.5B", value_model="meta-llama/Llama-3.2-1B")
    assert inventory(both).trainable == POLICY + VALUE


@pytest.mark.parametrize("key", ["reward_model", "value_model"])
def test_an_unknown_model_is_named_by_its_key(key: str) -> None:
    with pytest.raises(SpecError, match=f"^{key}: 'nobody/knows' is not known"):
        _spec(**{key: "nobody/knows"})


def test_ppo_splits_no_model() -> None:
    with pytest.raises(SpecError, match=r"^trainer: 'ppo' splits no model"):
        _spec(gpus=2, tensor_parallel=2)


def test_scores_of_a_whole_rollout_stay_through_the_training() -> None:
    one, four = (estimate(_spec(gradient_accumulation_steps=steps)) for steps in (1, 4))
    scores = 4 * 2 * RESPONSE * VOCABULARY
    assert _at(one, "scores put together").components["logits"] == 3 * scores
    assert _at(four, "scores put together").components["logits"] == 3 * 4 * scores
    grown = _at(four, "optimizer step").components["logits"] - _at(one, "optimizer step").components["logits"]
    softmax = 2 * 2 * RESPONSE * VOCABULARY
    assert grown == 3 * scores + softmax


def test_chunks_bound_the_reference_but_not_the_scores() -> None:
    whole = estimate(_spec(micro_batch_size=16))
    chunks = estimate(_spec(micro_batch_size=16, generation={"completion_len": RESPONSE, "rollout_batch_size": 4}))
    name = "reference scores, logits"
    scores = 4 * 16 * RESPONSE * VOCABULARY
    row = 2 * 2 * RESPONSE * VOCABULARY
    logits = [_at(guess, name).components["logits"] - scores - row for guess in (whole, chunks)]
    assert logits[0] == 4 * logits[1] == 2 * 16 * 512 * VOCABULARY


def test_only_the_policy_checkpoints() -> None:
    none, policy = (estimate(_spec(gradient_checkpointing=on)) for on in (False, True))
    saved = [_at(guess, "loss, backward").components["activations"] for guess in (none, policy)]
    assert 0.4 < saved[1] / saved[0] < 0.6


def test_fsdp_leaves_reference_and_reward_model_whole() -> None:
    sharded = _at(estimate(_spec(gpus=8, fsdp={"version": 1})), "optimizer step").components["parameters"]
    assert sharded >= 2 * (POLICY + VALUE) + 2 * (POLICY + VALUE) // 8
    zero = _at(estimate(_spec(gpus=8, zero_stage=3, mixed_precision="bf16")), "optimizer step").components["parameters"]
    assert zero == pytest.approx(2 * (2 * POLICY + 2 * VALUE) / 8, rel=0.01)


def test_both_models_are_gathered_to_generate() -> None:
    generation = {"completion_len": RESPONSE, "gather_weights": True}
    guess = estimate(_spec(gpus=8, zero_stage=3, mixed_precision="bf16", generation=generation))
    gathered = _at(guess, "generation").components["communication_buffers"]
    assert gathered >= 2 * (POLICY + VALUE)


def test_an_older_version_holds_a_log_softmax() -> None:
    old, new = (estimate(_spec(versions={"trl": version})) for version in ("0.14.0", "0.15.2"))
    held = [_at(guess, "optimizer step").components["logits"] for guess in (old, new)]
    assert held[0] - held[1] == 2 * 2 * RESPONSE * VOCABULARY


def test_the_host_reads_four_models() -> None:
    assert estimate(_spec()).host.load_peak == 2 * (2 * POLICY + 2 * VALUE)


def test_a_version_that_nobody_states_may_hold_more() -> None:
    unsaid, newest = (estimate(_spec(micro_batch_size=16, versions=versions)) for versions in ({}, {"trl": "1.12.0"}))
    assert unsaid.allocated_bytes == newest.allocated_bytes
    assert unsaid.peak.high > newest.peak.high
