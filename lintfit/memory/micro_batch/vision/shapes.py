"""What the encoder runs on: its recipe, the sequences that it makes of pictures, and its tables and masks."""

from __future__ import annotations

from lintfit.frozen import replace
from lintfit.memory.activations.recipe import Recipe, of
from lintfit.memory.activations.tape import rounded
from lintfit.memory.activations.towers import (
    CHANNELS,
    Style,
    mask_item,
    mllama,
    style,
    tower_of,
)
from lintfit.memory.micro_batch.vision.images import pictures
from lintfit.memory.spec import Spec

WITHOUT_SDPA = frozenset({"minicpmv"})
"""Model types whose encoder runs FlashAttention 2 where the model is told to, and eager scores else."""

OWN_SCORES = frozenset({"qwenvl"})
"""Model types whose encoder computes eager scores whatever kernel is asked for (Qwen-VL's ``visual.py``)."""


PIXEL = 4
"""Bytes of a pixel's channel as the processors make it (fp32)."""


def recipe_of(spec: Spec) -> Recipe:
    """How the encoder is run: by the attention kernel that was asked for, also where the language model has it not."""
    kind = spec.facts.model_type
    eager = kind in OWN_SCORES or (kind in WITHOUT_SDPA and spec.attention == "sdpa")
    return replace(of(spec), attention="eager" if eager else spec.attention)


def stream_of(recipe: Recipe, how: Style) -> int:
    """Bytes of an element of the encoder's stream.

    Autocast runs the convolution in half precision, and a LayerNorm in front of the layers in fp32. Where neither norm
    nor fp32 positions follow (Qwen casts its own), the stream stays half.
    """
    if not recipe.autocast:
        return recipe.weights
    if how.first_norm and not how.rms:
        return 4
    return 2 if how.apart and not how.first_norm else recipe.weights


def sequences_of(spec: Spec, recipe: Recipe, how: Style) -> tuple[int, int]:
    """Sequences of the encoder and positions in each: all pictures are one where a mask keeps them apart."""
    seen = pictures(spec)
    if how.joins:
        tower = tower_of(spec.facts)
        return seen.number // tower.tiles, mllama.positions(tower)
    if how.masked and recipe.attention != "flash_attention_2":
        return 1, seen.number * seen.positions
    return seen.number, seen.positions


def pixel_bytes(spec: Spec) -> int:
    """Bytes of the batch's pixels, which stay through the step."""
    seen, tower = pictures(spec), tower_of(spec.facts)
    return rounded(seen.number * seen.patches * CHANNELS * tower.patch**2 * style(spec.facts).frames * PIXEL)


def turns(spec: Spec, recipe: Recipe) -> int:
    """Bytes of the encoder's cos and sin."""
    how, seen, tower = style(spec.facts), pictures(spec), tower_of(spec.facts)
    size = seen.number * seen.positions * (tower.hidden // tower.heads) * (4 if how.apart else recipe.weights)
    return 2 * rounded(size) if how.rotary else 0


def image_mask(spec: Spec, recipe: Recipe) -> int:
    """Bytes of the mask that the encoder makes once for all of its layers."""
    how, seen = style(spec.facts), pictures(spec)
    if recipe.attention == "flash_attention_2" and not how.joins:
        return 0
    number, positions = sequences_of(spec, recipe, how)
    if how.padded:
        return rounded(seen.number * seen.positions**2 * (recipe.weights if recipe.attention == "eager" else 1))
    return rounded(number * positions**2 * mask_item(recipe, how))


def kept_tables(spec: Spec, recipe: Recipe, *, graph: bool) -> int:
    """Bytes of what the encoder makes once for all of its layers and its graph keeps: cos and sin, and a mask that
    keeps images apart, as far as SDPA's kernel takes it as it is.

    ``graph``: whether the encoder leaves one, without which nobody has them any longer. A mask stays where layers are
    run again with it, and where SDPA saves it, not a copy or eager scores.
    """
    how = style(spec.facts)
    if not graph:
        return 0
    if how.padded and spec.gradient_checkpointing is False:
        return turns(spec, recipe)
    checkpoints = spec.gradient_checkpointing is not False
    taken = mask_item(recipe, how) == (2 if recipe.autocast else recipe.weights)
    kept = checkpoints or (recipe.attention == "sdpa" and taken)
    return turns(spec, recipe) + (image_mask(spec, recipe) if kept else 0)
