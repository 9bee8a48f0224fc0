"""Kimi Linear: delta attention or latent attention without positions, and DeepSeek's experts.

After ``modeling_kimi_linear.py`` of transformers.
"""

from __future__ import annotations

from lintfit.catalog.architectures._layer_kinds import LINEAR
from lintfit.catalog.facts import ModelFacts
from lintfit.memory.activations import mla, packages
from lintfit.memory.activations.attention import Heads as Attending
from lintfit.memory.activations.attention import attend
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.convolution import convolution
from lintfit.memory.activations.delta_rule import Heads
from lintfit.memory.activations.kda import kimi_delta_rule
from lintfit.memory.activations.moe import feed_forward
from lintfit.memory.activations.tape import Var, function
from lintfit.memory.activations.traits import Traits


def mixer(facts: ModelFacts, index: int) -> str:
    """What mixes the tokens of a layer in the place of attention."""
    return LINEAR if facts.config["layer_types"][index] == LINEAR else ""


TRAITS = Traits(mixer=mixer, packages=packages.OF_DELTA_RULE)


def layer(t: Layer, x: Var, index: int) -> Var:
    """One decoder layer."""
    y = t.rmsnorm(x)
    t.held = (x, y)
    x = t.add(x, _delta_attention(t, y) if mixer(t.facts, index) else _attention(t, y))
    t.held = (x,)
    y = t.rmsnorm(x)
    t.held = (x, y)
    return feed_forward(t, x, y, index)


@function
def _attention(t: Layer, x: Var) -> Var:
    """Latent attention, of which no part is turned."""
    facts, heads = t.facts, t.facts.heads
    value = int(facts.config["v_head_dim"])
    q, k, v, *_ = mla.latent(t, x)
    out = attend(t, q, k, v, Attending(heads, heads, q.width // heads, None, value))
    return t.linear("o_proj", out, heads * value, facts.hidden)


@function
def _delta_attention(t: Layer, x: Var) -> Var:
    """``KimiLinearDeltaAttention``."""
    config, h = t.facts.config, t.facts.hidden
    count, width = int(config["linear_num_heads"]), int(config["linear_head_dim"])
    shape = Heads(count, count, width, width)
    wide, before = shape.key_width, t.held
    if t.recipe.padded:
        x = t.map(x)
        before = t.held = (*before, x)
    mixed = convolution(t, _mixed(t, x, wide), "conv1d", int(config["linear_conv_kernel_dim"]), activated=True)
    t.held = (*before, mixed)
    query, key, value = t.split(mixed, (wide, wide, wide))
    decay = _decay(t, x, shape)
    t.held = (*t.held, decay)
    beta = t.sigmoid(t.linear("b_proj", x, h, count))
    t.held = (*t.held, beta)
    if packages.DELTA_RULE in t.recipe.kernels:
        out = packages.gated_delta_rule(t, query, key, value, beta, decay, shape)
    else:
        out = kimi_delta_rule(t, query, key, value, decay, beta, shape)
    t.held = (*t.held, out)
    gate = t.linear("g_b_proj", t.linear("g_a_proj", x, h, width), width, wide)
    t.held = (*t.held, gate)
    out = _gated_norm(t, out, gate, width)
    t.held = (*t.held, out)
    return t.linear("o_proj", out, wide, h)


@function
def _mixed(t: Layer, x: Var, wide: int) -> Var:
    """Queries, keys and values, a projection each, put together."""
    parts: list[Var] = []
    for name in ("q_proj", "k_proj", "v_proj"):
        parts.append(t.linear(name, x, t.facts.hidden, wide))
        t.held = (*t.held, parts[-1])
    if packages.CONVOLUTION not in t.recipe.kernels and t.batched:
        parts = [t.copied_back(part) for part in parts]  # from channel by channel; of one sequence that is a view
    mixed = t.like(parts[0], 3 * wide, parts[0].item, any(part.grad for part in parts))
    return t.link(mixed, parts, same=True)


@function
def _decay(t: Layer, x: Var, shape: Heads) -> Var:
    """``KimiLinearForgetGate``: ``-A_log.exp() * softplus(g + dt_bias)`` in fp32, the softplus put together from
    its parts."""
    wide, recipe = shape.key_width, t.recipe
    trains = recipe.trains("A_log")
    gate = t.linear("f_b_proj", t.linear("f_a_proj", x, t.facts.hidden, shape.key_dim), shape.key_dim, wide)
    t.held = (*t.held, gate)
    full = t.cast(gate, 4)
    made = (wide * recipe.weights,) if trains else ()
    biased = t.op(t.like(full, wide, 4, full.grad or trains), (full,), (), weights=made)
    t.held = (*t.held, biased)
    one_more = t.add(t.exp(biased))
    low = t.map(one_more, (one_more,))
    soft = t.op(t.like(low, wide, 4, low.grad), (biased, low), (t.like(low, wide, 1, False),))
    t.held = (*t.held, soft)
    rate = t.constant(shape.keys, 4, trains)
    saved = [var for var, needed in ((soft, trains), (rate, soft.grad)) if needed]
    made = (shape.keys * recipe.weights,) if trains else ()
    temp = (soft.scratch(4),) if trains else ()
    return t.op(t.like(soft, wide, 4, soft.grad), (soft,), saved, temp=temp, weights=made)


@function
def _gated_norm(t: Layer, x: Var, gate: Var, width: int) -> Var:
    """``KimiLinearRMSNormGated``: all of it in fp32, the gate's sigmoid too."""
    trains, item = t.recipe.trains("norm"), x.item
    t.name(x, gate)
    normed = t.root_mean_square(t.cast(x, 4), width)
    t.name(normed)
    made = (width * t.recipe.weights,) if trains else ()
    saved = [normed] if trains else []
    if normed.grad and t.recipe.weights < 4:
        saved.append(t.constant(width, 4))
    weighed = t.like(normed, normed.width, 4, normed.grad or trains)
    weighed = t.op(weighed, (normed,), saved, temp=(normed.scratch(4),) if trains else (), weights=made)
    t.held = (*t.held, weighed)
    return t.cast(t.mul(weighed, t.sigmoid(t.cast(gate, 4))), item)
