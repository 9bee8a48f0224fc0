"""Zamba: Mamba 1's mixer by heads, in front of some a block that these layers share (``modeling_zamba.py``)."""

from __future__ import annotations

from lintfit.catalog.architectures import zamba
from lintfit.catalog.architectures._mamba1 import Mamba1
from lintfit.catalog.architectures.zamba2 import hybrids
from lintfit.catalog.config import Config
from lintfit.catalog.facts import ModelFacts
from lintfit.frozen import replace
from lintfit.memory.activations import packages, zamba2
from lintfit.memory.activations.attention import Heads, attend
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.convolution import convolution
from lintfit.memory.activations.mamba1 import entered, rate_of, scan
from lintfit.memory.activations.packages import OF_MAMBA
from lintfit.memory.activations.shared import Sharing
from lintfit.memory.activations.tape import CAST, Var, function, once, sequences
from lintfit.memory.activations.traits import Traits, Turn


def turn(facts: ModelFacts, index: int) -> Turn | None:
    """Which of the layers that share the block a layer is."""
    if zamba2.mixer(facts, index):
        return None
    layers = hybrids(Config(facts.config, {}, facts.name))
    place = layers.index(index)
    return Turn(place == 0, min(2, len(layers) - place - 1))


TRAITS = Traits(mixer=zamba2.mixer, turn=turn, sees_embeddings=True, packages=OF_MAMBA)


def layer(t: Layer, x: Var, index: int) -> Var:
    """One decoder layer."""
    config = Config(t.facts.config, {}, t.facts.name)
    heads = config.size("n_mamba_heads", kind="heads")
    return zamba2.hybrid(t, x, turn(t.facts, index), _block, lambda y: _mixer(t, y, zamba.mixer(config), heads))


def _block(t: Layer, x: Var, own: Sharing) -> Var:
    return zamba2.block(t, x, own, _attention, _mlp)


@function
def _attention(t: Layer, x: Var, own: Sharing) -> Var:
    facts = t.facts
    shape = Heads(facts.heads, facts.kv_heads, facts.head_dim)
    wide = shape.queries * shape.dim
    q, k, v = zamba2.projected(t, x, own, shape)
    result = attend(t, q, k, v, shape)
    return own.of(lambda: t.linear("o_proj", result, wide, facts.hidden))


def _mlp(t: Layer, x: Var, own: Sharing) -> Var:
    facts, held, width = t.facts, t.held, t.facts.intermediate
    gate = t.activation(own.of(lambda: t.linear("gate_proj", x, facts.hidden, width)), facts.activation)
    t.held = (*held, gate)
    product = t.mul(gate, own.of(lambda: t.linear("up_proj", x, facts.hidden, width)))
    t.held = held
    return own.of(lambda: t.linear("down_proj", product, width, facts.hidden))


def _mixer(t: Layer, x: Var, shape: Mamba1, heads: int) -> Var:
    """``ZambaMambaMixer``: one projection in and out, and between them a scan for each head."""
    h, before, dtype = t.facts.hidden, t.held, x.item
    projected = entered(t, x, shape)
    named = t.held
    values, gate = t.split(projected, (shape.width, shape.width))
    values = t.add(values)
    t.held = (*named, values)
    values = convolution(t, values, "conv1d", shape.kernel, activated=True, bias=shape.conv_bias, lies=True)
    if t.recipe.padded:
        values = t.map(values)
    t.held = named = (*named, values)
    selected = _by_head(t, values, shape.width, heads * shape.selected, heads)
    t.held = named = (*named, selected)
    step, into, out_of = t.split(selected, (heads * shape.rank, heads * shape.state, heads * shape.state))
    step = _by_head(t, step, heads * shape.rank, shape.width, heads, lies=True)
    t.held = named = (*named, step)
    rate = rate_of(t, shape)
    t.held = named = (*named, rate)
    one = replace(shape, width=shape.width // heads)
    found: list[Var] = []
    for _ in range(heads):
        parts = (values, step, rate, into, out_of, gate)
        x, dt, decay, b, c, z = (t.copied_back(part, part.width // heads) for part in parts)
        if packages.MAMBA in t.recipe.kernels:
            out = packages.selective_scan(t, x, dt, b, c, z, one.states)
        else:
            out = scan(t, x, dt, decay, b, c, z, one)
        found.append(out)
        t.held = (*named, *found)
    out = t.cat(*found)
    t.held = (*t.held, out)
    out = t.linear("out_proj", t.cast(out, dtype), shape.width, h, bias=shape.bias, strided=True)
    t.held = before
    return out


def _by_head(t: Layer, x: Var, rows: int, columns: int, heads: int, *, lies: bool = False) -> Var:
    """A product of every head's own: with several sequences ``matmul`` copies the weight for each of them, and x unless
    it ``lies`` head by head."""
    recipe, size = t.recipe, rows * columns // heads
    trains = not recipe.frozen
    if recipe.autocast:
        x = t.cast(x, 2)
    if t.batched and not lies:
        x = t.add(x)
    made = (size * recipe.weights,) if trains else ()
    saved = [x] if trains else []
    inputs = [x]
    if t.batched or (recipe.autocast and recipe.weights == 4):
        item = 2 if recipe.autocast else recipe.weights
        weight = t.new(size, item, trains, CAST, sequences if t.batched else once)
        t.op(weight, (), (), weights=made)
        made = ()
        inputs.append(weight)
        if x.grad:
            saved.append(weight)
    out = t.like(x, columns, x.item, x.grad or trains)
    return t.op(out, inputs, saved, weights=made)
