"""What TRL's trainers change about a step; the trainers themselves are counted by ``bench.fake_tensors``."""

from __future__ import annotations

from typing import Any

import pytest

from lintfit.memory import estimate
from lintfit.memory.activations.recipe import of
from lintfit.memory.loss.logits import head
from lintfit.memory.loss.preference import loss_path, scored, sequences
from lintfit.memory.reading.parse import spec_from_mapping
from lintfit.memory.result import Estimate, Moment
from lintfit.memory.spec import GIB, Spec
from tests.support import published

VOCABULARY = 128_256


def _spec(**more: Any) -> Spec:
    return spec_from_mapping(
        {
            "model": "meta-llama/Llama-3.2-1B",
            "gpu_memory_gib": 79.2,
            "weights_dtype": "bf16",
            "micro_batch_size": 2,
            "seq_len": 1024,
            **more,
        }
    )


def _at(guess: Estimate, name: str) -> Moment:
    return next(moment for moment in guess.moments if moment.name == name)


@pytest.mark.parametrize(
    ("trainer", "trl", "path"),
    [
        ("causal-lm", "1.13.0", "full"),
        ("dpo", "1.16.0", "chunked"),
        ("dpo", "1.13.0", "selective"),
        ("dpo", "1.14.0", "selective-kernel"),
        ("dpo", "0.15.0", "selective"),
        ("dpo", "0.14.0", "gathered"),
        ("kto", "0.24.0", "selective"),
        ("grpo", "1.15.0", "chunked"),
        ("orpo", "1.13.0", "odds"),
        ("orpo", "0.14.0", "odds-gathered"),
        ("orpo", "1.16.0", "odds-kernel"),
        ("cpo", "1.16.0", "odds-kernel"),
        ("reward", "1.16.0", "score"),
    ],
)
def test_the_loss_follows_the_trainer_and_its_version(trainer: str, trl: str, path: str) -> None:
    assert loss_path(_spec(trainer=trainer, versions={"trl": trl})) == path


@pytest.mark.parametrize("versions", [{}, {"transformers": "4.45.2"}, {"trl": "0.9.6"}])
def test_torchtunes_dpo_has_a_loss_of_its_own(versions: dict[str, str]) -> None:
    """The policy's log-softmax is there while the reference's fp32 logits are divided and make one of their own; TRL's
    versions decide nothing, and no range is opened to an older one of them."""
    spec = _spec(trainer="dpo", front_end="torchtune", method="lora", versions=versions)
    assert loss_path(spec) == "tempered"
    assert loss_path(_spec(trainer="causal-lm", front_end="torchtune", loss="chunked")) == "chunked"
    found = _at(estimate(spec), "reference, forward").components["logits"]
    assert found == pytest.approx(16 * 4 * 1024 * VOCABULARY, rel=0.01)
    assert not any("TRL" in line or "loss of" in line for line in estimate(spec).assumptions)


def test_pairs_double_the_sequences() -> None:
    found = [sequences(_spec(trainer=name)) for name in ("dpo", "reward", "kto", "grpo", "causal-lm")]
    assert found == [4, 4, 2, 2, 2]


def test_rollouts_score_the_completion_only() -> None:
    spec = _spec(trainer="grpo", generation={"completion_len": 256})
    assert scored(spec, 1024) == 256
    older = _spec(trainer="grpo", generation={"completion_len": 256}, versions={"trl": "0.19.0"})
    assert scored(older, 1024) == 257


def test_whole_logits_of_older_versions() -> None:
    """fp32 logits under autocast are there four times: kept, as gradients of ``logsumexp`` put together, as zeros, and
    as the gradient of ``gather``, which goes into these out of place. Torch counts ORPO's so under fake tensors."""
    guess = estimate(_spec(trainer="dpo", mixed_precision="bf16", versions={"trl": "1.13.0"}))
    entries = 4 * 1024 * VOCABULARY
    parts = _at(guess, "loss, backward").components
    assert parts["logits"] == pytest.approx(12 * entries, rel=0.01)
    assert parts["temporaries"] >= 4 * entries


@pytest.mark.parametrize(
    ("path", "weights", "forward", "backward"),
    [
        ("selective-kernel", 2, 2, 4),
        ("odds", 2, 5, 5),
        ("odds-kernel", 2, 4, 5),
        ("odds", 4, 8, 18),
        ("odds-kernel", 4, 8, 10),
        ("gathered", 2, 4, 6),
        ("gathered", 4, 8, 12),
        ("odds-gathered", 4, 10, 14),
        ("tempered", 2, 12, 12),
        ("tempered", 4, 12, 12),
    ],
)
def test_bytes_an_entry_of_losses_from_whole_logits(path: str, weights: int, forward: int, backward: int) -> None:
    """As torch counts them under fake tensors in steps of ORPO and CPO, with the kernel and without."""
    precision = {"weights_dtype": "bf16" if weights == 2 else "fp32"}
    spec = _spec(**precision)
    found = head(spec.facts, of(spec), 8, 1024, path, stream=weights)
    entries = 8 * 1024 * VOCABULARY
    assert found.saved.logits + found.forward.logits == pytest.approx(forward * entries, rel=1e-4)
    assert found.loss.logits + found.loss.temporaries == pytest.approx(backward * entries, rel=1e-4)


@pytest.mark.parametrize(
    ("trl", "transformers", "mixed", "entry"),
    [
        ("0.8.6", "4.42.0", "no", 16),
        ("0.8.6", "4.46.0", "no", 8),
        ("0.8.6", "4.46.0", "bf16", 16),
        ("0.9.6", "4.42.0", "no", 18),
        ("0.9.6", "4.46.0", "no", 9),
        ("0.11.4", "4.46.0", "bf16", 18),
        ("0.14.0", "4.46.0", "no", 6),
        ("0.14.0", "4.46.0", "bf16", 12),
    ],
)
def test_bytes_an_entry_while_the_reference_of_an_older_version_answers(
    trl: str, transformers: str, mixed: str, entry: int
) -> None:
    """The policy's log-softmax, the reference's logits and log-softmax, up to 0.11 the policy's logits too, as torch
    counts such a loss under fake tensors. Models of transformers before 4.46 give back fp32 logits."""
    guess = estimate(_spec(trainer="dpo", mixed_precision=mixed, versions={"trl": trl, "transformers": transformers}))
    found = _at(guess, "reference, forward").components["logits"]
    assert found == pytest.approx(entry * 4 * 1024 * VOCABULARY, rel=0.01)


def test_the_trl_of_a_transformers_before_4_46_is_older_than_0_12() -> None:
    assert loss_path(_spec(trainer="dpo", versions={"transformers": "4.45.2"})) == "gathered"
    assert loss_path(_spec(trainer="dpo", versions={"transformers": "4.46.0"})) == "chunked"
    assert loss_path(_spec(trainer="dpo", versions={"transformers": "4.45.2", "trl": "0.15.0"})) == "selective"


def test_a_reward_models_embedding_waits_for_no_head() -> None:
    """Llama 3.2 1B ties its head; as a classifier it has one row in its place."""
    rated = estimate(_spec(trainer="reward", weights_dtype="fp32", mixed_precision="bf16"))
    trained = estimate(_spec(weights_dtype="fp32", mixed_precision="bf16"))
    ends = [_at(guess, "end of backward").components["temporaries"] for guess in (rated, trained)]
    assert ends[1] - ends[0] >= 4 * 128256 * 2048 - GIB // 8


def test_a_version_that_nobody_states_may_hold_whole_logits() -> None:
    unsaid, newest = (estimate(_spec(trainer="dpo", versions=v)) for v in ({}, {"trl": "1.16.0"}))
    assert unsaid.allocated_bytes == newest.allocated_bytes
    assert unsaid.peak.high > newest.peak.high + GIB


def test_a_version_that_nobody_states_may_have_no_kernel() -> None:
    adapters = {"method": "lora", "mixed_precision": "bf16", "gradient_checkpointing": True}
    unsaid, newest = (estimate(_spec(trainer="orpo", versions=v, **adapters)) for v in ({}, {"trl": "1.16.0"}))
    assert unsaid.allocated_bytes == newest.allocated_bytes
    assert unsaid.peak.high > newest.peak.high + GIB // 2
    assert any("kernel" in line for line in unsaid.assumptions)


def test_the_reference_scores_beside_the_policys_graph() -> None:
    full = estimate(_spec(trainer="dpo"))
    assert _at(full, "reference, forward").allocated > _at(full, "loss, forward").allocated
    without = estimate(_spec(trainer="dpo", reference_model=False))
    assert [moment for moment in without.moments if moment.name == "reference, forward"] == []
    states = [_at(guess, "optimizer step").components["parameters"] for guess in (full, without)]
    assert states[0] == pytest.approx(2 * states[1], rel=1e-4)


def test_a_reward_model_has_no_head() -> None:
    spec = _spec(trainer="reward", model="meta-llama/Llama-2-7b-hf")
    guess = estimate(spec)
    assert _at(guess, "optimizer step").components["parameters"] == pytest.approx(
        2 * (published("meta-llama/Llama-2-7b-hf") - 32000 * 4096), rel=1e-4
    )
    assert _at(guess, "loss, backward").components.get("logits", 0) < 2**20


def test_a_vllm_that_sleeps_gives_its_share_back() -> None:
    colocated = {"completion_len": 256, "vllm_gpu_memory_utilization": 0.5}
    awake = estimate(_spec(trainer="grpo", generation=colocated))
    asleep = estimate(_spec(trainer="grpo", generation={**colocated, "vllm_sleeps": True}))
    assert awake.peak_moment.components["framework"] > asleep.peak_moment.components["framework"] + 30 * GIB
    assert _at(asleep, "generation").components["temporaries"] == pytest.approx(0.5 * 79.2 * GIB, rel=1e-6)


def test_a_server_that_generates_leaves_no_keys_and_values_on_the_trainer_s_gpus() -> None:
    own = estimate(_spec(trainer="grpo", generation={"completion_len": 256}))
    server = estimate(_spec(trainer="grpo", generation={"completion_len": 256, "vllm_server": True}))
    assert "generation" in {moment.name for moment in own.moments}
    assert "generation" not in {moment.name for moment in server.moments}


def test_all_micro_batches_of_a_step_are_generated_at_once() -> None:
    one = _at(estimate(_spec(trainer="grpo")), "generation").components["activations"]
    four = _at(estimate(_spec(trainer="grpo", gradient_accumulation_steps=4)), "generation").components["activations"]
    assert four == 4 * one == 4 * (16 + 1) * 2 * 8 * 64 * 2 * 2 * 1024
    older = _spec(trainer="grpo", gradient_accumulation_steps=4, versions={"trl": "0.17.0"})
    assert _at(estimate(older), "generation").components["activations"] == one
