"""What a model makes once for all of its layers: tables of positions, masks, and biases."""

from __future__ import annotations

from importlib import import_module
from typing import NamedTuple

from lintfit.catalog.facts import ModelFacts
from lintfit.memo import Memo
from lintfit.memory.activations.attention import always_masked, mask_bytes
from lintfit.memory.activations.frames import Frame, biased_heads, frame
from lintfit.memory.activations.kinds import first_of_windows
from lintfit.memory.activations.recipe import Recipe
from lintfit.memory.activations.tape import rounded
from lintfit.memory.micro_batch.model import Model
from lintfit.memory.micro_batch.stream import Shape

TABLELESS = frozenset({"conv", "linear_attention"})
"""Kinds of layers that turn nothing."""


def tables(facts: ModelFacts, recipe: Recipe, batch: int, seq: int, item: int, *, samples: bool = False) -> int:
    """Bytes of the rotary tables, cosine and sine, of a sequence or of each; LitGPT keeps them in fp32.

    ``item``: bytes of an element of the residual stream. ``samples``: whether every sequence has its own.
    """
    if recipe.litgpt:
        return 2 * rounded(seq * (facts.rotary_dim or facts.head_dim) * 4)
    how = frame(facts)
    if how.positions != "rotary":
        return 0
    if how.tables == "complex":
        return rounded(seq * _turned(facts) * 4)
    positions = batch * seq if samples or how.tables_each else seq
    item = 4 if how.tables == "fp32" else item
    widths = _WIDTHS.get(facts, "", lambda: _widths(facts))
    return sum([2 * rounded(positions * width * item) for width in widths])


_WIDTHS: Memo[list[int]] = Memo()


def _widths(facts: ModelFacts) -> list[int]:
    """Elements that each table has for a position."""
    how = frame(facts)
    if how.partly_by_kind:
        kinds = {*(facts.config.get("layer_types") or ("full_attention",))}
        turned = import_module(f"lintfit.catalog.architectures.{facts.model_type}").turned
        return [turned(facts.config, kind, facts.head_dim) for kind in kinds]
    if how.tables_by == "windows":
        return [facts.head_dim, int(facts.config.get("global_head_dim") or facts.head_dim)]
    return [_turned(facts)] * (len(_firsts(facts)) if _keyed(how) else 1)


def _keyed(how: Frame) -> bool:
    """Whether a key of the config says which of several tables a layer takes."""
    return how.tables_by not in ("", "windows")


def _firsts(facts: ModelFacts) -> list[int]:
    """The first layer of each of what ``tables_by`` tells; one where a config does not say."""
    told = facts.config.get(frame(facts).tables_by)
    if not isinstance(told, list):
        return [0]
    first = {one: number for number, one in reversed(list(enumerate(told))) if one and one not in TABLELESS}
    return sorted(first.values())


def _later_tables(facts: ModelFacts, recipe: Recipe, seq: int, item: int) -> tuple[tuple[int, int], ...]:
    """Tables that the first layers do not take: the first one that does, and bytes."""
    how = frame(facts)
    if how.tables_by == "windows":
        wide = int(facts.config.get("global_head_dim") or facts.head_dim)
        starts = first_of_windows(facts).items()
        widths = [(start, wide if window is None else facts.head_dim) for window, start in starts if start]
        return tuple([(start, 2 * rounded(seq * width * item)) for start, width in widths])
    firsts = _firsts(facts) if _keyed(how) else []
    if not any(firsts):
        return ()
    size = tables(facts, recipe, 1, seq, item) // len(firsts)
    return tuple([(first, size) for first in firsts if first])


def _turned(facts: ModelFacts) -> int:
    """Elements of a head that the tables have."""
    partly = frame(facts).partly or "kv_lora_rank" in facts.config
    return facts.rotary_dim if partly else facts.head_dim


def masks(facts: ModelFacts, recipe: Recipe, batch: int, seq: int, item: int) -> int:
    """Bytes of the masks that the model makes; ``item``: of an element of the residual stream."""
    how = frame(facts)
    if how.positions == "relative":
        from lintfit.memory.micro_batch.relative import masks_and_positions

        return masks_and_positions(facts, recipe, batch, seq)
    if how.masks_padding:
        return rounded(batch * seq * item) if recipe.padded else 0
    if how.positions == "bucketed":
        from lintfit.memory.micro_batch.relative import bucketed_biases

        mask = rounded(batch * seq * seq * item) if recipe.padded else 0
        return bucketed_biases(facts, recipe, batch, seq) + mask
    if how.positions == "none":
        return 0
    if how.encoder and not recipe.padded:  # attention in both directions needs none, but for windows
        return _of_windows(facts, recipe, batch, seq, item)
    if biased_heads(facts):
        return rounded(batch * facts.heads * seq * seq * item)
    windows = first_of_windows(facts)
    bites = any(window is not None and seq >= window for window in windows)
    item = 1 if how.boolean_masks else item
    found = mask_bytes(recipe, len(windows), bites or always_masked(facts, recipe), batch, seq, item)
    apart = how.masks_each and recipe.attention == "sdpa" and not recipe.padded
    return found * batch if apart else found


def _of_windows(facts: ModelFacts, recipe: Recipe, batch: int, seq: int, item: int) -> int:
    """Bytes of ModernBERT's mask for windows, which it makes in any case: for all sequences, or additive for each."""
    if recipe.attention == "flash_attention_2" or not frame(facts).opens:
        return 0
    return rounded(batch * seq * seq * item) if recipe.attention == "eager" else rounded(seq * seq)


def untaken_mask(facts: ModelFacts, recipe: Recipe, batch: int, seq: int, item: int) -> int:
    """Bytes of a mask that the model makes and none of its layers takes, so that it is gone with the forward."""
    if not frame(facts).makes_both_masks or len(first_of_windows(facts)) > 1:
        return 0
    if recipe.attention == "sdpa" and not recipe.padded:
        sliding = None in first_of_windows(facts) and seq >= int(facts.config.get("sliding_window") or 0)
        return seq * seq if sliding else 0  # full attention has none
    return mask_bytes(recipe, 1, False, batch, seq, item)


def let_go(facts: ModelFacts, recipe: Recipe, batch: int, seq: int, item: int) -> tuple[tuple[int, int], ...]:
    """Masks and tables that the first layers do not take: the first one that does, and bytes.

    In the backward each goes with the last non-reentrant checkpoint that holds it.
    """
    first = first_of_windows(facts)
    later = [(window, start) for window, start in first.items() if start]
    size = masks(facts, recipe, batch, seq, item) if later else 0
    tables_too = _later_tables(facts, recipe, seq, item)
    if recipe.attention == "sdpa" and not recipe.padded:  # full attention has none
        return (*[(start, size) for window, start in later if window is not None], *tables_too)
    return (*[(start, size // len(first)) for _, start in later], *tables_too)


class SharedTables(NamedTuple):
    """Tables and masks that a model makes once for all of its layers, in bytes: what these keep (``lasting``), what is
    gone with the forward where no checkpoint holds it (``passing``), a mask that no layer takes (``untaken``), and what
    goes before the first layers run backward (``let_go``)."""

    lasting: int
    passing: int
    untaken: int
    let_go: tuple[tuple[int, int], ...]


def shared_tables(model: Model, shape: Shape) -> SharedTables:
    """What a model of a run makes for a micro-batch."""
    facts, recipe = model.facts, model.recipe
    samples = frame(model.whole).tables_each
    lasting, passing = given(facts, recipe, *shape, checkpoints=model.checkpoints, samples=samples)
    untaken = untaken_mask(facts, recipe, *shape)
    gone = let_go(facts, recipe, *shape) if model.checkpoints and not model.reentrant else ()
    return SharedTables(lasting, passing, untaken, gone)


def given(
    facts: ModelFacts, recipe: Recipe, batch: int, seq: int, item: int, *, checkpoints: bool, samples: bool = False
) -> tuple[int, int]:
    """Bytes of the tables and masks that the model makes and hands to all layers: of those that layers keep, and of
    those that are gone with the forward, where no checkpoint holds them.

    Checkpoints hold tables as they hold masks; some go before the backward has come to the first layers
    (:func:`let_go`). ``samples``: see :func:`tables`.
    """
    table, mask = tables(facts, recipe, batch, seq, item, samples=samples), masks(facts, recipe, batch, seq, item)
    how = frame(facts)
    biased = biased_heads(facts)
    # SDPA saves biased masks as they are, autocast of fp32 ones a copy in every layer.
    saved = how.boolean_masks or (biased and recipe.attention == "sdpa" and (item == 2 or not recipe.autocast))
    kept = (table if how.keeps_tables and not biased else 0) + (mask if saved else 0)
    if checkpoints:
        kept -= sum([size for _, size in _later_tables(facts, recipe, seq, item)])
    return kept, table + mask - kept + biases(facts, batch, seq, item)


def biases(facts: ModelFacts, batch: int, seq: int, item: int) -> int:
    """Bytes of the biases by position that are added to the scores: those of all positions are in fp32."""
    how = frame(facts)
    if how.positions == "biases":
        return rounded(facts.heads * (facts.max_positions or seq) * 4)
    return rounded(batch * facts.heads * seq * item) if how.positions == "biases each" else 0
