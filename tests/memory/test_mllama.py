"""Llama 3.2 Vision: tiles in one sequence, layers that attend to them; ``bench.fake_tensors`` counts whole steps."""

from __future__ import annotations

from typing import Any

import pytest

from lintfit.catalog import models
from lintfit.catalog.language import language
from lintfit.memory import estimate
from lintfit.memory.activations.kinds import kinds
from lintfit.memory.micro_batch.step import Step
from lintfit.memory.reading.parse import spec_from_mapping
from lintfit.memory.result import Estimate, Moment
from lintfit.memory.verdict.bounds import Verdict

MODEL = "meta-llama/Llama-3.2-11B-Vision-Instruct"
TOKENS, WIDTH, HIDDEN, KEYS = 1024, 1280, 4096, 1024
SEEN, POSITIONS = 4 * (1600 + 1), 4 * 1608
"""Positions of an image that the text attends to, and with the padding of its tiles."""
LOCAL, LATE, LAYERS, CROSSING = 32, 8, 40, 8


def _run(**more: Any) -> Estimate:
    base = {"model": MODEL, "weights_dtype": "bf16", "micro_batch_size": 1, "seq_len": TOKENS, "images": 1}
    return estimate(spec_from_mapping({**base, "gpu_memory_gib": 2000, **more}))


def _at(guess: Estimate, name: str) -> Moment:
    return next(moment for moment in guess.moments if moment.name == name)


def _saved(**more: Any) -> int:
    """Bytes of activations when the loss's backward begins."""
    return _at(_run(**more), "loss, backward").components["activations"]


def _encoder_layer(gated: bool) -> int:
    """Two inputs and outputs of norms, q, k, v and the result, twice 4w of the MLP; what a learnt number multiplies."""
    statistics = 2 * 2 * 4 + 4 * 16
    return POSITIONS * (2 * WIDTH * (8 + 2 * 4 + 2 * gated) + statistics)


def test_an_encoder_that_is_trained_keeps_all_of_its_layers_whether_the_model_checkpoints_or_not() -> None:
    layers = LOCAL * _encoder_layer(False) + LATE * _encoder_layer(True)
    mask = 2 * POSITIONS**2
    frozen = {"frozen_modules": ["vision_model", "multi_modal_projector"]}
    for checkpoints in (False, True):
        settings = {"gradient_checkpointing": checkpoints, "versions": {"transformers": "4.57.1"}}
        assert _saved(**settings) - _saved(**settings, **frozen) == pytest.approx(layers + mask, rel=0.03)


def test_older_versions_checkpoint_the_encoder() -> None:
    older, newer = (
        _saved(gradient_checkpointing=True, versions={"transformers": version}) for version in ("4.54.1", "4.55.4")
    )
    inputs = (LOCAL + LATE) * 2 * POSITIONS * WIDTH
    layers = LOCAL * _encoder_layer(False) + LATE * _encoder_layer(True)
    assert newer - older == pytest.approx(layers - inputs, rel=0.001)


def test_patches_that_checkpointing_gives_a_gradient_keep_the_whole_frozen_encoder() -> None:
    lora = {"method": "lora", "lora_targets": ["up_proj"], "gradient_checkpointing": True}
    before, since = (_saved(**lora, versions={"transformers": version}) for version in ("4.57.1", "5.0.0"))
    assert since - before > LOCAL * POSITIONS * 2 * WIDTH * (8 + 4)


def test_layers_that_attend_to_the_images_are_left_out_without_any() -> None:
    facts = models.lookup(MODEL)
    assert facts is not None
    crossing = [index for index, kind in enumerate(kinds(language(facts))) if kind.crosses]
    assert crossing == [3, 8, 13, 18, 23, 28, 33, 38]
    assert [kinds(language(facts))[index].crosses for index in (33, 38)] == ["cross", "last cross"]
    inputs = _saved(images=0, gradient_checkpointing=True)
    assert inputs == pytest.approx((LAYERS - CROSSING) * 2 * TOKENS * HIDDEN, rel=0.15)


@pytest.mark.parametrize("images", [None, 0])
def test_layers_behind_frozen_embeddings_keep_nothing(images: int | None) -> None:
    """Adapters on the head alone: no layer that runs has a gradient."""
    saved = _saved(images=images, method="lora", lora_targets=["lm_head"])
    assert saved < 32 * TOKENS * HIDDEN, "not what one of 32 layers would keep"


def test_a_cross_attention_layer_keeps_repeated_keys_and_values_and_a_padded_mask() -> None:
    """Against a layer of Llama's own: keys before their norm and repeated, values repeated, for every position seen.

    Of the text there are the queries' norm and what the two gates multiply, and no keys and values.
    """
    rows = -(-SEEN // 8) * 8
    frozen = {"frozen_modules": ["vision_model", "multi_modal_projector"]}
    beside = 2 * SEEN * HIDDEN * 2 + SEEN * (2 * KEYS + 4 * KEYS + 4 * 8) + 2 * TOKENS * rows
    more = TOKENS * (2 * 2 * HIDDEN + 6 * HIDDEN + 4 * 32 - 2 * 2 * KEYS)
    shared = 2 * SEEN * HIDDEN + 4 * 3 * 4 * 560**2
    text, seen = _saved(images=0), _saved(**frozen)
    own = text / (LAYERS - CROSSING)
    assert seen - text == pytest.approx(CROSSING * (own + beside + more) + shared, rel=0.01)


def test_masks_of_whole_rows_are_one_for_all_layers() -> None:
    """Two images are 12,808 positions, a multiple of eight; one is not."""
    frozen = {"frozen_modules": ["vision_model", "multi_modal_projector"], "seq_len": 4096}
    one, two = (_saved(**frozen, images=images) for images in (1, 2))
    mask = 2 * 4096
    keys = CROSSING * (2 * HIDDEN * 2 + 2 * KEYS + 4 * KEYS + 4 * 8) + 2 * HIDDEN
    assert two - one == pytest.approx(
        SEEN * keys + mask * (2 * SEEN - CROSSING * (SEEN + 4)) + 4 * 3 * 4 * 560**2, rel=0.01
    )


def test_the_gradient_of_what_they_attend_to_waits_for_the_encoder() -> None:
    from lintfit.memory.engines.model_states import states
    from lintfit.memory.recording import record

    spec = spec_from_mapping({"model": MODEL, "weights_dtype": "bf16", "seq_len": TOKENS, "images": 1})
    step: Step = record(spec, states(spec))
    text = [stretch.waiting for stretch in step.stretches[step.before :] for _ in range(stretch.length)]
    size = spec.micro_batch_size * 2 * SEEN * HIDDEN
    assert len(text) == LAYERS and text == [size if index < 38 else 0 for index in range(LAYERS)]
    inner = 5 * 2 * spec.micro_batch_size * POSITIONS * WIDTH
    encoder = [stretch.waiting for stretch in step.stretches[: step.before]]
    assert encoder == [0] * (1 + 4) + [inner] * (LOCAL - 4 + 1 + LATE) + [0, 0]


def test_the_embedding_is_run_back_before_the_encoder() -> None:
    guess = _run(seq_len=128, gradient_checkpointing=True)
    assert guess.peak_moment.name.startswith("layer ")
    facts = models.lookup(MODEL)
    assert facts is not None
    text = 2 * sum(tensor.total for tensor in facts.tensors if tensor.where != "vision")
    assert guess.peak_moment.components["gradients"] > text * 0.999


def test_the_tiles_are_always_four() -> None:
    assert _saved() == _saved(image_tiles=1) == _saved(image_patches=400)


def test_evaluation_holds_every_layer_of_the_encoder_and_the_cache() -> None:
    chosen = {"batch_size": 1}
    guess = _run(method="lora", lora_targets=["up_proj"], seq_len=128, images=4, evaluation=chosen)
    encoded = _at(guess, "evaluation, images encoded").components["activations"]
    assert encoded > (LOCAL + LATE) * 4 * POSITIONS * WIDTH * 2
    cache = 2 * 2 * KEYS * ((LAYERS - CROSSING) * 128 + CROSSING * 4 * SEEN)
    assert _at(guess, "evaluation").components["activations"] > cache


def test_reentrant_checkpointing_over_a_graph_of_the_encoder_is_refused() -> None:
    reentrant = {"gradient_checkpointing": True, "use_reentrant": True}
    guess = _run(**reentrant)
    assert guess.verdict is Verdict.UNKNOWN
    frozen = {"frozen_modules": ["vision_model", "multi_modal_projector"], "versions": {"transformers": "4.57.1"}}
    assert _run(**reentrant, **frozen).verdict is Verdict.FITS
    assert _run(**reentrant, versions={"transformers": "4.51.3"}).verdict is Verdict.FITS
    assert _run(gradient_checkpointing=True).verdict is Verdict.FITS


@pytest.mark.parametrize("trainer", ["dpo", "grpo", "ppo", "reward"])
def test_every_trainer_leaves_them_out_without_images(trainer: str) -> None:
    more = {"generation": {"completion_len": 256}} if trainer in ("grpo", "ppo") else {}
    guess = _run(trainer=trainer, images=0, gradient_checkpointing=True, **more)
    assert guess.peak.low <= guess.peak.likely <= guess.peak.high
