"""InternVL by its own code, outside transformers."""

from __future__ import annotations

from typing import Any

import pytest

from lintfit.memory import estimate
from lintfit.memory.engines.model_states import states
from lintfit.memory.reading.parse import spec_from_mapping
from lintfit.memory.recording import record
from lintfit.memory.result import Estimate
from lintfit.memory.spec import Spec

MODEL = "OpenGVLab/InternVL3-2B"
POSITIONS, WIDTH, HEADS, LAYERS = 1025, 1024, 16, 24


def _spec(**more: Any) -> Spec:
    base = {"model": MODEL, "weights_dtype": "bf16", "micro_batch_size": 1, "seq_len": 4096, "images": 1}
    return spec_from_mapping({**base, "image_tiles": 13, "gpu_memory_gib": 80, **more})


def _at_the_loss(guess: Estimate, component: str) -> int:
    return next(moment for moment in guess.moments if moment.name == "loss, backward").components.get(component, 0)


@pytest.mark.parametrize("checkpoints", [False, True])
def test_the_encoder_checkpoints_itself(checkpoints: bool) -> None:
    spec = _spec(gradient_checkpointing=checkpoints)
    step = record(spec, states(spec))
    encoder = step.checkpointed[: step.before]
    assert encoder == (False, *[True] * LAYERS, False)
    assert all(flag is checkpoints for flag in step.checkpointed[step.before :])


def test_a_frozen_encoder_leaves_no_graph_whatever_adapters_it_has() -> None:
    """Reentrant checkpointing of an input that needs no gradient gives a result that has none."""
    adapted = {"method": "lora", "lora_targets": ["qkv", "fc1"], "versions": {"transformers": "4.51.3"}}
    seen, text = (_at_the_loss(estimate(_spec(**adapted, images=images)), "activations") for images in (1, 0))
    assert seen - text == 13 * 3 * 448 * 448 * 4, "the pixels"


def test_attention_that_nobody_states_is_eager_in_the_high_end() -> None:
    guess, eager, flash = (
        estimate(_spec(**more)) for more in ({}, {"attention": "eager"}, {"attention": "flash_attention_2"})
    )
    assert guess.peak.likely == flash.peak.likely < eager.peak.likely
    assert flash.peak.high < guess.peak.high == eager.peak.high
    assert any("FlashAttention" in line for line in guess.assumptions)
    assert not any("FlashAttention 2, which" in line for line in flash.assumptions)


def test_eager_scores_of_one_layer_are_as_many_as_its_forward_makes() -> None:
    """Scores, their softmax, both in 16 bits, and on the way back a gradient of each."""
    eager, flash = (
        estimate(_spec(attention=kernel, seq_len=3584, gradient_checkpointing=True))
        for kernel in ("eager", "flash_attention_2")
    )
    scores = 13 * HEADS * POSITIONS**2 * 2
    worst = [max(m.allocated for m in guess.moments if m.name.startswith("layer ")) for guess in (eager, flash)]
    assert worst[0] - worst[1] > 2 * scores


def test_the_loss_is_that_of_the_logits_dtype() -> None:
    """Logits, shifted logits and their log-softmax in 16 bits; of one sequence the shifted ones are no copy."""
    vocab = _spec().facts.vocab
    two = _at_the_loss(estimate(_spec(micro_batch_size=2)), "logits")
    one = _at_the_loss(estimate(_spec()), "logits")
    assert two == pytest.approx(2 * 4096 * vocab * 6, rel=0.001)
    assert one == pytest.approx(4096 * vocab * 6, rel=0.001), "a gradient in the place of the copy"
    upcast = _at_the_loss(estimate(_spec(micro_batch_size=2, versions={"transformers": "4.44.2"})), "logits")
    assert upcast == pytest.approx(2 * two, rel=0.001)


def test_forward_of_one_sequence_holds_no_copy() -> None:
    vocab = _spec().facts.vocab
    parts = []
    for batch in (1, 2):
        guess = estimate(_spec(micro_batch_size=batch))
        found = next(moment for moment in guess.moments if moment.name == "loss, forward")
        parts.append(found.components["logits"] / batch)
    assert parts[1] - parts[0] == pytest.approx(2 * 4096 * vocab, rel=0.001)
