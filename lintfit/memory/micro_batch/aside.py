"""What some layers attend to beside the text (Llama 3.2 Vision's images), and what it takes outside these layers."""

from __future__ import annotations

from typing import NamedTuple

from lintfit.catalog.facts import ModelFacts
from lintfit.memory.activations.kinds import kinds
from lintfit.memory.activations.recipe import Recipe
from lintfit.memory.activations.tape import rounded


class Aside(NamedTuple):
    """What belongs to what stands beside the text, in bytes.

    ``named``: the states themselves and their mask, which the model's forward has names for. ``cache``: keys and values
    as they are handed in, which no layer saves (:mod:`.kv_cache`). ``lasting``: of ``named`` what is kept until the
    first layer that attends to it has run backward.
    """

    named: int = 0
    cache: int = 0
    lasting: int = 0


_NONE = Aside()


def aside(facts: ModelFacts, recipe: Recipe, batch: int, seq: int, checkpoints: bool) -> Aside:
    """What belongs to :attr:`.Recipe.beside` of ``batch`` sequences of ``seq`` tokens; nothing where that is None."""
    beside = recipe.beside
    if beside is None:
        return _NONE
    positions = batch * beside.count
    mask = rounded(batch * seq * beside.count * beside.mask_item) + rounded(batch * seq * beside.mask_item)
    each = positions * facts.kv_heads * facts.head_dim
    crossing = sum(bool(kind.crosses) for kind in kinds(facts)) if beside.hands_in else 0
    cache = 2 * crossing * rounded(each * max(beside.item, recipe.weights))
    shared = recipe.attention != "eager" and beside.shares(2 if recipe.autocast else recipe.weights)
    states = rounded(positions * facts.hidden * beside.item)
    kept = checkpoints or keeps_input(recipe, beside.item, "k_proj", "v_proj", "k", "v")
    lasting = (states if kept else 0) + (mask if shared or checkpoints else 0)
    return Aside(states + mask, cache, lasting)


def keeps_input(recipe: Recipe, item: int, *modules: str) -> bool:
    """Whether one of these linear modules keeps its input of ``item`` bytes an element as it is, not a copy of it."""
    if recipe.autocast and item == 4:
        return False
    if any(recipe.trains(module) for module in modules):
        return True
    lora = recipe.lora
    return lora is not None and not lora.dropout and lora.item == item and any(map(lora.on, modules))


def gradient_beside(recipe: Recipe, batch: int, hidden: int) -> int:
    """Bytes of the gradient of what stands beside the text, which grows from the last layer that attends to it on."""
    beside = recipe.beside
    return rounded(batch * beside.count * hidden * beside.item) if beside is not None and beside.flows else 0
