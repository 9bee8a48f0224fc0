"""What stands behind Ovis 2's image encoder, on a tape (``modeling_ovis2.py``)."""

from __future__ import annotations

from lintfit.catalog.architectures.ovis2 import VISION
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.tape import Var
from lintfit.memory.activations.towers.merged import Merged
from lintfit.memory.activations.towers.style import tower_of, vision_config


def connector(t: Layer, x: Var) -> Var:
    """Patches are normed and put together; their shares of the visual words, with zeros for the marks, take a product
    with the words' table."""
    config, width, hidden = {**VISION, **vision_config(t.facts)}, tower_of(t.facts).hidden, t.facts.hidden
    each, every = int(config["hidden_stride"]) ** 2, int(config["vocab_size"])
    own = every - int(config["num_visual_indicator_tokens"])
    if x.grad or t.recipe.lora is not None or not t.graph:
        y = t.rmsnorm(x, width)
        if each > 1:
            y = t.map(t.view(y, width * each, Merged(each)))  # put into another order
        t.name(y)
        named = t.held
        y = t.layernorm(t.linear("head_linear", y, y.width, own), own)
        t.name(y)
        shares = t.softmax(y)
        t.held = named
        t.name(shares)
        both = t.op(t.like(shares, every, shares.item, shares.grad), (shares,))
    else:  # all but the table is the encoder's, and frozen
        both = t.new(every, 4 if t.recipe.autocast else x.item, False, per=Merged(each))
    trains = t.recipe.trains("visual_embeddings_table")
    return t.matmul(both, every, hidden, item=t.recipe.weights, trains=trains)
