"""MiniCPM-V, whose code is read but not measured: slices, eager scores, and a resampler."""

from __future__ import annotations

from typing import Any

import pytest

from lintfit.catalog import models
from lintfit.catalog.config import CatalogError
from lintfit.memory import estimate
from lintfit.memory.activations.form import live
from lintfit.memory.activations.recipe import Recipe
from lintfit.memory.activations.towers import form
from lintfit.memory.micro_batch.vision.images import pictures
from lintfit.memory.reading.parse import spec_from_mapping
from lintfit.memory.spec import Spec

MODEL = "openbmb/MiniCPM-V-2_6"
WIDTH, HIDDEN, QUERIES, PATCHES = 1152, 3584, 64, 1024


def _spec(**more: Any) -> Spec:
    return spec_from_mapping({"model": MODEL, "micro_batch_size": 1, "seq_len": 2048, "images": 1, **more})


def test_an_image_becomes_nine_slices_and_the_whole() -> None:
    assert pictures(_spec())[:2] == (10, PATCHES)
    assert pictures(_spec(seq_len=256)).number == 4, "the sequence has room for no more"
    assert pictures(_spec(image_tiles=2)).number == 2


@pytest.mark.parametrize(("slices", "tiles"), [({"max_slice_nums": 4}, 5), ({}, 10)])
def test_slices_of_the_config(slices: dict[str, int], tiles: int) -> None:
    facts = models.lookup(MODEL)
    assert facts is not None
    other = models.from_config({**facts.config, "slice_config": slices})
    assert other.vision is not None and other.vision.tiles == tiles
    assert other.parameters == facts.parameters


def test_slices_of_nothing_are_refused() -> None:
    facts = models.lookup(MODEL)
    assert facts is not None
    with pytest.raises(CatalogError, match="scale_resolution"):
        models.from_config({**facts.config, "slice_config": {"scale_resolution": -1}})


def test_the_encoder_has_no_sdpa() -> None:
    plain, eager, flash = (
        estimate(_spec(**more)).allocated_bytes
        for more in ({}, {"attention": "eager"}, {"attention": "flash_attention_2"})
    )
    scores = 10 * 16 * PATCHES**2
    assert plain - flash > 27 * scores * 6 * 0.9, "softmax in fp32 and its copy in 16 bits, of every layer"
    assert eager > plain, "the language model's own scores"


def test_the_resampler_keeps_what_its_products_take() -> None:
    """Of a patch: both norms' inputs, their results, keys, values and the sum with positions; of a query far less."""
    facts = models.lookup(MODEL)
    assert facts is not None
    made = form(facts, Recipe(2, False), "merge", stream=2, flows=True, watched=False, batched=False)
    saved = live(made.passed.saved, made.table.sizes(1, PATCHES)).activations
    patches = PATCHES * (2 * 2 * WIDTH + 5 * 2 * HIDDEN + 2 * 8)
    scores = 2 * HIDDEN // 128 * QUERIES * PATCHES
    assert patches + scores < saved < patches + scores + QUERIES * 8 * 2 * HIDDEN


def test_what_is_read_only_is_bounded_widely() -> None:
    guess, text = estimate(_spec()), estimate(_spec(images=0))
    assert guess.peak.low <= text.peak.low < guess.peak.likely < guess.peak.high
    assert any("measured by nobody" in line for line in guess.assumptions)
