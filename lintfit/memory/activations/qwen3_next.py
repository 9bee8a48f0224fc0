"""Qwen 3 Next, 3.5 and 3.6: three layers of gated delta rule to one of gated attention, norms like Gemma's.

After ``modeling_qwen3_next.py`` and ``modeling_qwen3_5.py`` of transformers.
"""

from __future__ import annotations

from lintfit.catalog.architectures.qwen3_next import linear_layers
from lintfit.catalog.config import Config
from lintfit.catalog.facts import ModelFacts
from lintfit.memory.activations import packages
from lintfit.memory.activations.attention import attend
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.convolution import convolution
from lintfit.memory.activations.delta_rule import Heads, gated_delta_rule
from lintfit.memory.activations.llama import heads
from lintfit.memory.activations.moe import feed_forward
from lintfit.memory.activations.tape import Var, function
from lintfit.memory.activations.traits import Traits

LINEAR = "linear_attention"


def mixer(facts: ModelFacts, index: int) -> str:
    """What mixes the tokens of a layer in the place of attention."""
    return LINEAR if index in linear_layers(Config(facts.config, {}, facts.name)) else ""


TRAITS = Traits(mixer=mixer, packages=packages.OF_DELTA_RULE)


def layer(t: Layer, x: Var, index: int) -> Var:
    """One decoder layer."""
    y = t.gemma_norm(x)
    t.held = (x, y)
    x = t.add(x, linear_attention(t, y) if mixer(t.facts, index) else attention(t, y, index))
    t.held = (x,)
    y = t.gemma_norm(x)
    t.held = (x, y)
    return feed_forward(t, x, y, index)


@function
def attention(t: Layer, x: Var, index: int) -> Var:
    """Self-attention whose query projection gives a gate for the result as well."""
    facts, held = t.facts, t.held
    shape = heads(facts, index)
    wide, narrow = shape.queries * shape.dim, shape.keys * shape.dim
    bias = bool(facts.config.get("attention_bias"))
    q, gate = t.split(t.linear("q_proj", x, facts.hidden, 2 * wide, bias=bias), (wide, wide))
    gate = t.add(gate)
    t.held = (*held, gate)
    q = t.gemma_norm(q, shape.dim)
    k = t.gemma_norm(t.linear("k_proj", x, facts.hidden, narrow, bias=bias), shape.dim)
    v = t.linear("v_proj", x, facts.hidden, narrow, bias=bias)
    share = (facts.rotary_dim or shape.dim) / shape.dim
    q, k = t.both_turned(q, k, share, concatenated=True)
    out = attend(t, q, k, v, shape, head_major=True)
    t.held = (*t.held, out)
    out = t.mul(out, t.sigmoid(gate))
    t.held = held
    return t.linear("o_proj", out, wide, facts.hidden, bias=bias)


def linear_attention(t: Layer, x: Var) -> Var:
    """``Qwen3NextGatedDeltaNet``: projections, a short convolution, the delta rule, a gated norm."""
    h, shape, before = t.facts.hidden, delta_heads(t.facts), t.held
    if t.recipe.padded:
        x = t.map(x)
        t.held = (*before, x)
    mixed, z, b, a = _apart(t, x, h, shape) if t.facts.model_type != "qwen3_next" else _together(t, x, h, shape)
    t.held = (*before, z, b, a)
    kernel = int(t.facts.config["linear_conv_kernel_dim"])
    mixed = convolution(t, mixed, "conv1d", kernel, activated=True)
    t.held = (*t.held, mixed)
    query, key, value = t.split(mixed, (shape.key_width, shape.key_width, shape.value_width))
    beta = t.sigmoid(b)
    decay = decay_of(t, a, shape.values)
    t.held = (*t.held, beta, decay)
    if packages.DELTA_RULE in t.recipe.kernels:
        out = packages.gated_delta_rule(t, query, key, value, beta, decay, shape)
    else:
        # The gradients lie head by head and are copied.
        query, key, value = (t.copied_back(part) for part in (query, key, value))
        out = gated_delta_rule(t, query, key, value, beta, decay, shape)
    t.held = (*t.held, out)
    out = gated_norm(t, out, z, shape.value_dim)
    t.held = (*t.held, out)
    out = t.linear("out_proj", out, shape.value_width, h)
    t.held = before
    return out


def delta_heads(facts: ModelFacts) -> Heads:
    """The heads of the delta rule."""
    config = facts.config
    return Heads(
        keys=int(config["linear_num_key_heads"]),
        values=int(config["linear_num_value_heads"]),
        key_dim=int(config["linear_key_head_dim"]),
        value_dim=int(config["linear_value_head_dim"]),
    )


def _apart(t: Layer, x: Var, h: int, shape: Heads) -> tuple[Var, Var, Var, Var]:
    """Qwen 3.5: a projection each for what is mixed, the gate, the rate and the decay."""
    mixed = t.linear("in_proj_qkv", x, h, 2 * shape.key_width + shape.value_width)
    if packages.CONVOLUTION not in t.recipe.kernels and t.batched:
        mixed = t.copied_back(mixed)  # from channel by channel; of one sequence that is a view
    held = t.held
    t.held = (*held, mixed)
    z = t.linear("in_proj_z", x, h, shape.value_width)
    b = t.linear("in_proj_b", x, h, shape.values)
    a = t.linear("in_proj_a", x, h, shape.values)
    t.held = held
    return mixed, z, b, a


def _together(t: Layer, x: Var, h: int, shape: Heads) -> tuple[Var, Var, Var, Var]:
    """Qwen 3 Next: two projections, by heads of keys; their parts are copied, and those to be mixed put together."""
    keys, values = shape.key_width, shape.value_width
    held = t.held
    both = t.linear("in_proj_qkvz", x, h, 2 * keys + 2 * values)
    t.held = (*held, both)
    rates = t.linear("in_proj_ba", x, h, 2 * shape.values)
    query, key, value, z = t.split(both, (keys, keys, values, values))
    b, a = t.split(rates, (shape.values, shape.values))
    value, z, b, a = (t.add(part) for part in (value, z, b, a))
    t.held = (*t.held, value, z)
    query, key = t.add(query), t.add(key)
    mixed = t.like(query, 2 * keys + values, query.item, query.grad)
    t.link(mixed, (query, key, value), same=True)
    t.held = held
    return mixed, z, b, a


def decay_of(t: Layer, a: Var, count: int) -> Var:
    """``-A_log.float().exp() * softplus(a.float() + dt_bias)``."""
    trains = t.recipe.trains("A_log")
    biased = t.cast(a, 4)
    made = (count * t.recipe.weights,) if trains else ()
    biased = t.op(t.like(a, count, 4, a.grad or trains), (biased,), (), weights=made)
    soft = t.map(biased, (biased,))
    rate = t.constant(count, 4, trains)
    saved = [var for var, needed in ((soft, trains), (rate, soft.grad)) if needed]
    temp = (soft.scratch(4),) if trains else ()
    return t.op(t.like(soft, count, 4, soft.grad), (soft,), saved, temp=temp, weights=made)


def gated_norm(t: Layer, x: Var, gate: Var, width: int) -> Var:
    """``weight * norm(x) * silu(gate)``, the last product in fp32 (``Qwen3NextRMSNormGated``)."""
    trains, item, held = t.recipe.trains("norm"), x.item, t.held
    normed = t.cast(t.root_mean_square(t.cast(x, 4), width), item)
    weighed = t.scaled(normed, width, trains)
    t.held = (*held, weighed)
    full = t.cast(gate, 4)
    out = t.cast(t.mul(weighed, t.map(full, (full,))), item)
    t.held = held
    return out
