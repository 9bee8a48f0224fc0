"""What layers have together: parameters (Zamba, ALBERT), and the embeddings, seen once more beside the stream."""

from __future__ import annotations

from typing import NamedTuple

from lintfit.catalog.facts import ModelFacts
from lintfit.memory.activations.families import traits
from lintfit.memory.activations.kinds import kinds
from lintfit.memory.activations.recipe import Recipe
from lintfit.memory.activations.tape import rounded


def unfinished(facts: ModelFacts, recipe: Recipe, kept: float) -> tuple[int, ...]:
    """Bytes of the sums of shared parameters' gradients that wait beside each layer, where these are no gradients of
    the parameters yet, because there are others of earlier micro-batches (``kept``: the share of gradients that stays).

    All of the blocks that layers share are alike.
    """
    turns = {index: kind.turn for index, kind in enumerate(kinds(facts)) if kind.turn is not None}
    if recipe.frozen or kept == 1.0 or not turns:
        return ()
    item, layers = 2 if recipe.autocast else recipe.weights, list(turns)
    blocks = sum(turn.first for turn in turns.values())
    every = len(turns) == facts.layers  # so that a layer's parameter is always shared, even where one module holds it
    tensors = [each for each in facts.tensors if each.holders > 1 or (every and each.where == "layer")]
    shared = sum(rounded(tensor.numel * item) for tensor in tensors if not tensor.idle)
    waiting = [0] * facts.layers
    for block in range(blocks):
        own = layers[block::blocks]
        for index in range(own[0], own[-1]):
            waiting[index] += int((1.0 - kept) * shared) // blocks
    return tuple(waiting)


class SeenAgain(NamedTuple):
    """In bytes: the copy that the model's forward has a name for, and what of it the graph keeps; what waits of its
    gradient beside each layer while that runs backward."""

    named: int = 0
    kept: int = 0
    waiting: tuple[int, ...] = ()


def seen_again(
    facts: ModelFacts, recipe: Recipe, batch: int, seq: int, stream: int, *, checkpoints: bool, reentrant: bool
) -> SeenAgain:
    """What the embeddings beside the stream take outside of the layers; nothing where no layer sees them.

    Nobody saves them but checkpointing, as an argument. The last layer that sees them leaves a view of a gradient twice
    as wide, which the next one's is added to in a new tensor; reentrant checkpointing makes that a tensor at once.
    """
    if not traits(facts).sees_embeddings:
        return SeenAgain()
    layers = [index for index, kind in enumerate(kinds(facts)) if kind.turn is not None]
    size = rounded(batch * seq * facts.hidden * stream)
    kept = size if checkpoints else 0
    if recipe.frozen and not checkpoints:
        return SeenAgain(size)
    first = size if checkpoints and reentrant else 2 * size
    below = layers[-2] if len(layers) > 1 else 0
    waiting = [first if index >= below else size for index in range(layers[-1])]
    return SeenAgain(size, kept, (*waiting, *[0] * (facts.layers - layers[-1])))
