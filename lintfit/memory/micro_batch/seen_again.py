"""What layers have together: parameters (Zamba, ALBERT), and the embeddings, seen once more beside the stream."""

from __future__ import annotations

from lintfit.memory.activations.kinds import kinds
from lintfit.memory.activations.tape import rounded
from lintfit.memory.micro_batch.around import NOTHING, Around
from lintfit.memory.micro_batch.model import Model
from lintfit.memory.micro_batch.stream import Shape


def unfinished(model: Model, kept: float) -> tuple[int, ...]:
    """Bytes of the sums of shared parameters' gradients that wait beside each layer, where these are no gradients of
    the parameters yet, because there are others of earlier micro-batches (``kept``: the share of gradients that stays).

    All of the blocks that layers share are alike. Reentrant checkpointing has a gradient of each layer's own.
    """
    facts, recipe = model.facts, model.recipe
    if model.own.turn is None or recipe.frozen or kept == 1.0 or (model.checkpoints and model.reentrant):
        return ()
    turns = {index: kind.turn for index, kind in enumerate(kinds(facts)) if kind.turn is not None}
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


def seen_again(model: Model, shape: Shape) -> Around:
    """What the embeddings beside the stream take outside of the layers: a copy that the model's forward has a name for.

    Nobody saves it but checkpointing, as an argument. The last layer that sees them leaves a view of a gradient twice
    as wide, which the next one's is added to in a new tensor; reentrant checkpointing makes that a tensor at once.
    """
    facts, checkpoints = model.facts, model.checkpoints
    layers = [index for index, kind in enumerate(kinds(facts)) if kind.turn is not None]
    if not layers:
        return NOTHING
    size = rounded(shape.batch * shape.seq * facts.hidden * model.stream)
    kept = size if checkpoints else 0
    if model.recipe.frozen and not checkpoints:
        return Around(named=size)
    first = size if checkpoints and model.reentrant else 2 * size
    below = layers[-2] if len(layers) > 1 else 0
    waiting = [first if index >= below else size for index in range(layers[-1])]
    waiting += [0] * (facts.layers - layers[-1])
    return Around(graphed=kept, named=size, named_kept=kept, waiting=tuple(waiting))
