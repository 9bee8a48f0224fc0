"""OLMo Hybrid: layers of gated delta rule with norms before the blocks, OLMo 3's with norms behind them.

After ``modeling_olmo_hybrid.py`` of transformers.
"""

from __future__ import annotations

from lintfit.catalog.architectures._layer_kinds import LINEAR
from lintfit.catalog.facts import ModelFacts
from lintfit.memory.activations import packages, postnorm
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.convolution import convolution
from lintfit.memory.activations.delta_rule import gated_delta_rule
from lintfit.memory.activations.llama import mlp
from lintfit.memory.activations.qwen3_next import decay_of, delta_heads, gated_norm
from lintfit.memory.activations.tape import Var, function
from lintfit.memory.activations.traits import Traits


def mixer(facts: ModelFacts, index: int) -> str:
    """What mixes the tokens of a layer in the place of attention."""
    kinds = facts.config.get("layer_types")
    return LINEAR if isinstance(kinds, list) and index < len(kinds) and kinds[index] == LINEAR else ""


TRAITS = Traits(mixer=mixer, packages=packages.OF_DELTA_RULE)


def layer(t: Layer, x: Var, index: int) -> Var:
    """One decoder layer."""
    if not mixer(t.facts, index):
        return postnorm.layer(t, x, index)
    y = t.full_norm(x)
    t.held = (x, y)
    x = t.add(x, _linear_attention(t, y))
    t.held = (x,)
    y = t.full_norm(x)
    t.held = (x, y)
    return t.add(x, mlp(t, y))


@function
def _linear_attention(t: Layer, x: Var) -> Var:
    """``OlmoHybridGatedDeltaNet``: the gate of the norm behind the rule is projected when that is done."""
    facts, shape, config = t.facts, delta_heads(t.facts), t.facts.config
    h, before = facts.hidden, t.held
    if t.recipe.padded:
        x = t.map(x)
        before = t.held = (*before, x)
    mixed = convolution(t, _mixed(t, x), "conv1d", int(config["linear_conv_kernel_dim"]), activated=True)
    t.held = (*before, mixed)
    query, key, value = t.split(mixed, (shape.key_width, shape.key_width, shape.value_width))
    beta = t.sigmoid(t.linear("b_proj", x, h, shape.values))
    if config.get("linear_allow_neg_eigval"):
        beta = t.map(beta)
    t.held = (*t.held, beta)
    decay = decay_of(t, t.linear("a_proj", x, h, shape.values), shape.values)
    t.held = (*t.held, decay)
    if packages.DELTA_RULE in t.recipe.kernels:
        out = packages.gated_delta_rule(t, query, key, value, beta, decay, shape)
    else:
        # The gradients lie head by head and are copied.
        query, key, value = (t.copied_back(part) for part in (query, key, value))
        out = gated_delta_rule(t, query, key, value, beta, decay, shape)
    t.held = (*t.held, out)
    gate = t.linear("g_proj", x, h, shape.value_width)
    t.held = (*t.held, gate)
    out = gated_norm(t, out, gate, shape.value_dim)
    t.held = (*t.held, out)
    return t.linear("o_proj", out, shape.value_width, h)


@function
def _mixed(t: Layer, x: Var) -> Var:
    """Queries, keys and values, a projection each, put together."""
    h, shape = t.facts.hidden, delta_heads(t.facts)
    widths = {"q_proj": shape.key_width, "k_proj": shape.key_width, "v_proj": shape.value_width}
    parts: list[Var] = []
    for name, width in widths.items():
        parts.append(t.linear(name, x, h, width))
        t.held = (*t.held, parts[-1])
    if packages.CONVOLUTION not in t.recipe.kernels and t.batched:
        parts = [t.copied_back(part) for part in parts]  # from channel by channel; of one sequence that is a view
    first = parts[0]
    mixed = t.like(first, sum(widths.values()), first.item, any(part.grad for part in parts))
    return t.link(mixed, parts, same=True)
