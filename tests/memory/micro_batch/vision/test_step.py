"""What an image encoder adds; real ones are counted by ``bench/saved_towers.py`` and ``bench.fake_tensors``."""

from __future__ import annotations

from typing import Any

import pytest

from lintfit.memory import estimate
from lintfit.memory.micro_batch.vision.images import largest
from lintfit.memory.reading.contradictions import SpecError
from lintfit.memory.reading.parse import spec_from_mapping
from lintfit.memory.result import Estimate, Moment, Verdict
from lintfit.memory.spec import Spec

LLAVA = "llava-hf/llava-1.5-7b-hf"
QWEN = "Qwen/Qwen2.5-VL-3B-Instruct"
PATCHES, WIDTH, LAYERS = 24 * 24 + 1, 1024, 24
"""CLIP ViT-L/14 at 336 pixels, with the class's position."""


def _spec(model: str = LLAVA, **more: Any) -> Spec:
    base = {"model": model, "weights_dtype": "bf16", "micro_batch_size": 2, "gradient_checkpointing": False}
    return spec_from_mapping({**base, **more})


def _at(guess: Estimate, name: str) -> Moment:
    return next(moment for moment in guess.moments if moment.name == name)


def _added(**more: Any) -> int:
    """Bytes of activations that images add at the loss's backward."""
    text, seen = (estimate(_spec(images=images, **more)) for images in (0, 1))
    parts = [_at(guess, "loss, backward").components["activations"] for guess in (text, seen)]
    return parts[1] - parts[0]


def test_a_clip_layer_saves_28_bytes_a_position_and_width() -> None:
    """Per position in bf16: four inputs of h, q, k, v and the result, twice 4h of the MLP, quick_gelu's gate."""
    layer = 2 * PATCHES * WIDTH * (2 * 8 + 3 * 2 * 4)
    statistics = 2 * PATCHES * (4 * 4 + 4 * 16)
    counted = (LAYERS - 1) * (layer + statistics)
    assert counted < _added() < 1.03 * counted


def test_checkpointing_keeps_a_layer_s_input() -> None:
    saved, kept = _added(), _added(gradient_checkpointing=True)
    assert kept < saved / 4
    assert kept >= (LAYERS - 1) * 2 * PATCHES * WIDTH * 2


def test_a_frozen_encoder_leaves_no_graph() -> None:
    lora = {"method": "lora", "lora_targets": ["up_proj"]}
    assert _added(**lora) == 2 * 24 * 24 * 3 * 14 * 14 * 4, "the pixels"
    for reentrant in (False, True):
        hooked = _added(**lora, gradient_checkpointing=True, use_reentrant=reentrant)
        assert hooked >= (LAYERS - 1) * 2 * PATCHES * WIDTH * 2, "since transformers 5 their patches need a gradient"
    older = {"gradient_checkpointing": True, "versions": {"transformers": "4.49.0"}}
    assert _added(**lora, **older, use_reentrant=False) == _added(**lora)
    leaf = 2 * 2048 * 4096 * 2
    added = _added(**lora, **older, use_reentrant=True)
    assert added == _added(**lora) + leaf, "the embeddings beside the copy that features go into"


def test_a_projector_alone_saves_its_inputs() -> None:
    frozen = {"method": "lora", "lora_targets": ["up_proj"]}
    trained = _added(**frozen, lora_modules_to_save=["multi_modal_projector"])
    assert trained - _added(**frozen) >= 2 * 24 * 24 * WIDTH * 2


def test_adapters_reach_into_the_encoder() -> None:
    """``q_proj`` is a module of CLIP, too; what lies above the first adapter needs gradients."""
    assert _added(method="lora", lora_targets=["q_proj"]) > _added(method="lora", lora_targets=["up_proj"]) * 10


def test_patches_of_an_image_where_sizes_vary() -> None:
    one, four = (_added(model=QWEN, seq_len=2048, image_patches=patches) for patches in (1024, 4096))
    assert four == pytest.approx(4 * one, rel=0.01)


def test_eager_windows_hold_scores_of_their_own_patches_only() -> None:
    eager = _added(model=QWEN, seq_len=2048, image_patches=4096, attention="eager")
    sdpa = _added(model=QWEN, seq_len=2048, image_patches=4096)
    scores = 2 * 16 * 4096 * (4 * 4096 + 28 * 64)
    assert eager - sdpa == pytest.approx(6 * scores, rel=0.05)


def test_unknown_images_count_in_the_high_end_only() -> None:
    unsaid, none = estimate(_spec()), estimate(_spec(images=0))
    assert unsaid.allocated_bytes == none.allocated_bytes
    assert unsaid.peak.high > none.peak.high
    assert any("vision tower" in note for note in unsaid.not_modelled)
    assert not none.not_modelled


def test_the_sequence_length_does_not_bound_images_that_keep_their_size() -> None:
    """Of unstated images the largest is planned for; of a stated one as much as the sequence has room for."""
    spread = []
    for length in (1024, 2048):
        unsaid, none, one = (
            estimate(_spec(QWEN, seq_len=length, **more)) for more in ({}, {"images": 0}, {"images": 1})
        )
        largest = estimate(_spec(QWEN, seq_len=length + 16_384, images=1, image_patches=65_536))
        assert unsaid.peak.high == largest.peak.high
        spread.append(one.peak.high - none.peak.high)
    assert 0 < spread[0] < spread[1]


def test_an_adapter_run_on_images_of_any_size_is_not_said_to_fit() -> None:
    """ms-swift issues 2010 and 2753: ``max_length`` 1024 and 2048, out of memory until ``MAX_PIXELS`` was set."""
    lora = {"method": "lora", "lora_rank": 16, "lora_targets": "all-linear", "gradient_checkpointing": True}
    one = {"gpu": "A100-80GB", "seq_len": 1024, **lora}
    four = {"gpu": "A6000", "gpus": 4, "engine": "deepspeed", "zero_stage": 2, "seq_len": 2048, **lora}
    for run in (one, four):
        told = {"mixed_precision": "bf16", "micro_batch_size": 1, **run}
        assert estimate(_spec("Qwen/Qwen2-VL-7B-Instruct", **told)).verdict is Verdict.TIGHT
        assert estimate(_spec("Qwen/Qwen2-VL-7B-Instruct", images=0, **told)).verdict is Verdict.FITS


def test_what_the_processor_is_told_bounds_images_that_keep_their_size() -> None:
    """1280 tokens of 28 x 28 pixels are 5120 patches, which stand beside the text as 1280 positions."""
    told, published = (estimate(_spec(QWEN, seq_len=1024, **more)) for more in ({"image_max_pixels": 1_003_520}, {}))
    largest = estimate(_spec(QWEN, seq_len=1024 + 1280, images=1, image_patches=5120))
    assert told.peak.low == published.peak.low
    assert told.peak.high == largest.peak.high < published.peak.high
    more = {"images": 1, "image_max_pixels": 2 * 16_384 * 28**2}
    assert (
        estimate(_spec(QWEN, seq_len=32_768, **more)).peak.high
        > estimate(_spec(QWEN, seq_len=32_768, images=1)).peak.high
    )


def test_an_image_of_great_length_has_more_pixels_than_it_is_told() -> None:
    """Of 1 : 200 the shorter side would be 4 pixels, and becomes the 28 of a token (``smart_resize``)."""
    tower = _spec(QWEN).facts.vision
    assert tower is not None
    assert largest(tower, 3136) == 28 * 792 // 14**2
    assert largest(tower, 200_704) == 1024


def test_a_bound_needs_a_model_that_sees() -> None:
    with pytest.raises(SpecError, match="image_max_pixels: 1000 needs a vision-language model"):
        spec_from_mapping({"model": "Qwen/Qwen2.5-7B", "image_max_pixels": 1000})


def test_how_large_images_are_counts_from_none_to_the_largest() -> None:
    guess, told = estimate(_spec(QWEN, images=1)), estimate(_spec(QWEN, images=1, image_patches=1024))
    text = estimate(_spec(QWEN, images=0))
    assert guess.peak.low == text.peak.low < told.peak.low
    assert guess.peak.high > told.peak.high
    assert any("image_patches" in note for note in guess.assumptions)
    assert not any("image_patches" in note for note in told.assumptions)


def test_tiles_of_an_image_where_a_model_cuts_them() -> None:
    next_ = "llava-hf/llava-v1.6-mistral-7b-hf"
    five, told, one = (
        _added(model=next_, seq_len=4096, **more) for more in ({}, {"image_tiles": 5}, {"image_tiles": 1})
    )
    assert five == told == pytest.approx(5 * one, rel=0.01)
    assert _added(model=next_, seq_len=1200) == pytest.approx(2 * one, rel=0.01), "the sequence has room for two"


def test_a_model_without_a_tower_adds_nothing() -> None:
    with pytest.raises(SpecError, match=r"^images: 1 needs a vision-language model; 'Qwen/Qwen2.5-7B' is none"):
        _spec("Qwen/Qwen2.5-7B", images=1)
