"""A loop of the script's own that gives the model's outputs a name.

What torch counts of small ones is in ``tests/recordings/``.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.memory.activations.steps import AMP, BF16, step

SMALL: dict[str, Any] = {
    "model_type": "llama", "hidden_size": 1024, "intermediate_size": 2816, "num_hidden_layers": 4,
    "num_attention_heads": 16, "num_key_value_heads": 16, "vocab_size": 2000,
}  # fmt: skip
GROUPED = {**SMALL, "num_key_value_heads": 4}
WIDE = {**GROUPED, "vocab_size": 64000}
HELD = {"loop_outputs": "held", "use_cache": False, "gradient_checkpointing": False}
THROUGH = {**HELD, "loop_outputs": "backward"}
CACHE = {"use_cache": True}
LOGITS = 2 * 1024 * 64000
"""Entries of the logits of a wide vocabulary."""


def test_whole_logits_stand_beside_the_backward_pass() -> None:
    plain = step(WIDE, 2, 1024, {**AMP, "gradient_checkpointing": False})
    for way, bytes_of in ((HELD, 4), ({**HELD, "upcast_outputs": False}, 2)):
        held = step(WIDE, 2, 1024, {**AMP, **way})
        assert held.allocated_bytes - plain.allocated_bytes == bytes_of * LOGITS


def test_the_last_micro_batchs_stand_beside_the_forward_pass() -> None:
    def forward(way: dict[str, Any]) -> int:
        guess = step(WIDE, 2, 1024, {**AMP, **way})
        return max(moment.allocated for moment in guess.moments if moment.phase == "forward")

    assert forward(HELD) - forward(THROUGH) == 4 * LOGITS


def test_the_training_loops_stay_in_an_evaluation() -> None:
    def evaluation(way: dict[str, Any]) -> int:
        guess = step(WIDE, 2, 1024, {**AMP, **way, "evaluation": {"batch_size": 2}})
        return max(moment.allocated for moment in guess.moments if moment.in_evaluation)

    assert evaluation(HELD) - evaluation(THROUGH) == 4 * LOGITS


@pytest.mark.parametrize("more", [{"loss": "liger"}, {"trainer": "dpo"}])
def test_no_logits_to_hold(more: dict[str, Any]) -> None:
    plain, held = (step(WIDE, 2, 1024, {**AMP, **HELD, **more, "loop_outputs": way}) for way in ("dropped", "held"))
    assert plain.allocated_bytes == held.allocated_bytes


def test_the_models_config_decides_about_its_cache() -> None:
    """No trainer turns it off."""
    silent = {name: value for name, value in HELD.items() if name != "use_cache"}
    by_config, on, off = (
        step(GROUPED, 2, 1024, {**AMP, **way}).allocated_bytes for way in (silent, {**HELD, **CACHE}, HELD)
    )
    assert by_config == on > off
    vetoed = step({**GROUPED, "use_cache": False}, 2, 1024, {**AMP, **silent}).allocated_bytes
    assert vetoed == off


@pytest.mark.parametrize("reentrant", [False, True])
def test_what_checkpointing_leaves_stays_beside_them(reentrant: bool) -> None:
    """RecurrentGemma's layers hold their last states; torch counts 147.7 and 75.7 MiB in the optimizer's step."""
    leaves = {
        "model_type": "recurrent_gemma", "hidden_size": 512, "intermediate_size": 2048, "num_hidden_layers": 3,
        "num_attention_heads": 8, "num_key_value_heads": 1, "vocab_size": 64, "attention_window_size": 64,
    }  # fmt: skip
    more = {**BF16, "optimizer": "adamw_torch", "gradient_checkpointing": True, "use_reentrant": reentrant}

    def at_the_step(way: str) -> int:
        guess = step(leaves, 8, 256, {**more, "loop_outputs": way})
        return next(moment.allocated for moment in guess.moments if moment.name == "optimizer step")

    assert at_the_step("held") - at_the_step("dropped") == 8 * 256 * 64 * 2
