"""Gemma 4: heads of two widths, values normalised too, experts beside the MLP (``modeling_gemma4.py``).

E2B and E4B: the last layers take keys and values of an earlier one, and every layer has an input of its own, a part of
one tensor that :mod:`lintfit.memory.micro_batch.own_inputs` counts.
"""

from __future__ import annotations

from lintfit.catalog.architectures.gemma4_text import layer_slides
from lintfit.catalog.facts import ModelFacts, MoE
from lintfit.memory.activations.attention import Heads, attend
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.experts import experts
from lintfit.memory.activations.llama import mlp
from lintfit.memory.activations.recipe import Recipe
from lintfit.memory.activations.tape import INDEX, Var, function, saved_factors
from lintfit.memory.activations.traits import Traits


def heads(facts: ModelFacts, index: int) -> Heads:
    """Those of a layer that slides, or the wider ones of a layer that attends to everything."""
    config = facts.config
    if layer_slides(config, facts.layers, index):
        return Heads(facts.heads, facts.kv_heads, facts.head_dim, facts.sliding_window)
    keys = config.get("num_global_key_value_heads") if config.get("attention_k_eq_v") else None
    return Heads(facts.heads, int(keys or facts.kv_heads), int(config["global_head_dim"]))


def layer(t: Layer, x: Var, index: int) -> Var:
    """One decoder layer; its result is scaled in place."""
    first = x
    y = norm(t, x)
    t.held = (x, y)
    x = t.add(x, norm(t, attention(t, y, heads(t.facts, index), index)))
    t.held = (x,)
    y = norm(t, x)
    t.held = (x, y)
    double = bool(t.facts.config.get("use_double_wide_mlp")) and shares(t.facts, index)
    branch = mlp(t, y, t.facts.intermediate * 2 if double else None)
    if t.facts.moe is not None:
        branch = _beside(t, x, branch, t.facts.moe)
    t.held = (x, branch)
    out = t.add(x, norm(t, branch))
    if narrow(t.facts):
        t.held = (out,)
        out = t.add(out, from_own_input(t, out, checkpointed=first.storage.external))
    return t.copied_back(out)


def narrow(facts: ModelFacts) -> int:
    """Elements of the input that every layer has of its own."""
    return int(facts.config.get("hidden_size_per_layer_input") or 0)


def shares(facts: ModelFacts, index: int) -> bool:
    """Whether a layer takes keys and values of an earlier one."""
    return index >= facts.layers - int(facts.config.get("num_kv_shared_layers") or 0)


TRAITS = Traits(heads=heads, shares=shares)


def own_inputs_flow(recipe: Recipe, *, checkpointed: bool) -> bool:
    """Whether a gradient flows into the layers' own inputs.

    Over a frozen base it does where their projection has an adapter, or where checkpointing has the embeddings' output
    need one.
    """
    lora = recipe.lora
    return not recipe.frozen or checkpointed or (lora is not None and lora.on(OWN_PROJECTION))


OWN_PROJECTION = "per_layer_model_projection"


def from_own_input(t: Layer, x: Var, *, checkpointed: bool) -> Var:
    """What the layer's own input, opened by the stream x, adds to it."""
    h, width = t.facts.hidden, narrow(t.facts)
    opened = t.activation(t.linear("per_layer_input_gate", x, h, width), t.facts.activation)
    product = _by_own_input(t, opened, checkpointed=checkpointed)
    return norm(t, t.linear("per_layer_projection", product, width, h))


def _by_own_input(t: Layer, opened: Var, *, checkpointed: bool) -> Var:
    """A product with the layer's own input.

    That is a slice, whose gradient is one of the whole, of all layers' inputs, added to that of the layers above.
    """
    own = t.new(opened.width, t.recipe.weights, own_inputs_flow(t.recipe, checkpointed=checkpointed))
    own.storage.external = True
    product = t.like(opened, opened.width, max(opened.item, own.item), opened.grad or own.grad)
    whole = [own.scratch(t.facts.layers * own.item)] if own.grad else []
    return t.op(product, (opened, own), saved_factors(opened, own), temp=whole)


@function
def norm(t: Layer, x: Var, width: int | None = None, *, scaled: bool = True) -> Var:
    """RMSNorm in fp32 with a power in the place of a root, which keeps its input as well; the weight is not 1 + weight.

    ``scaled``: whether there is a weight, whose product is taken before the cast back.
    """
    width = width or t.facts.hidden
    t.name(x)
    full = t.cast(x, 4)
    rows = full.width // width
    squares = t.op(t.like(full, full.width, 4, full.grad), (full,), (full,), temp=(full.scratch(2 * 4),))
    mean = t.op(t.like(full, rows, 4, full.grad), (squares,))
    root = t.op(t.like(full, rows, 4, full.grad), (mean,), (mean,))
    normed = t.op(t.like(full, full.width, 4, full.grad), (full, root), (full, root), temp=(full.scratch(4),))
    if not scaled:
        return t.cast(normed, x.item)
    trains = t.recipe.trains("norm")
    out = t.like(x, x.width, 4, x.grad or trains)
    saved = [normed] if trains else []
    if t.recipe.weights < 4:
        saved.append(t.constant(width, 4, trains))
    weights = (width * t.recipe.weights,) if trains else ()
    t.op(out, (normed,), saved, temp=(x.scratch(4),) if trains else (), weights=weights)
    return t.cast(out, x.item)


@function
def _turned(t: Layer, x: Var) -> Var:
    """Queries or keys with their rotary, a function of its own for each."""
    t.name(x)
    return t.rotary(x)


@function
def attention(t: Layer, x: Var, shape: Heads, index: int) -> Var:
    """Self-attention with norms on its heads, over keys and values of the layer's own or an earlier layer's."""
    hidden, wide = t.facts.hidden, shape.queries * shape.dim
    q = _turned(t, norm(t, t.linear("q_proj", x, hidden, wide), shape.dim))
    k, v = lent(t, q, shape) if shares(t.facts, index) else keys_and_values(t, x, shape)
    return t.linear("o_proj", attend(t, q, k, v, shape), wide, hidden)


def lent(t: Layer, q: Var, shape: Heads) -> tuple[Var, Var]:
    """Keys and values of an earlier layer, which that layer counts."""
    k, v = (t.new(shape.keys * shape.dim, q.item, True) for _ in range(2))
    k.storage.external = v.storage.external = True
    return k, v


def keys_and_values(t: Layer, x: Var, shape: Heads) -> tuple[Var, Var]:
    """Those that a layer makes of its normalised input; values are the keys' product where the config says so."""
    hidden, width = t.facts.hidden, shape.keys * shape.dim
    k = t.linear("k_proj", x, hidden, width)
    same = bool(t.facts.config.get("attention_k_eq_v")) and shape.window is None
    v = k if same else t.linear("v_proj", x, hidden, width)
    return _turned(t, norm(t, k, shape.dim)), norm(t, v, shape.dim, scaled=False)


def _beside(t: Layer, x: Var, branch: Var, moe: MoE) -> Var:
    """The MLP's result and that of the experts, which take what the MLP's norm took; both are normalised, and added."""
    t.held = (x, branch)
    first = norm(t, branch)
    t.held = (x, branch, first)
    weights = _route(t, x, moe)
    second = norm(t, x)
    t.held = (x, branch, first, second, weights)
    second = norm(t, experts(t, second, moe, weights=weights))
    t.held = (x, first, second, weights)
    return t.add(first, second)


def _route(t: Layer, x: Var, moe: MoE) -> Var:
    """The weights of every token's experts: the best shares, made to sum up to 1, by a learnt factor of each expert."""
    trains = t.recipe.trains("scale")
    item, k = t.recipe.weights, moe.top_k
    y = t.map(t.scaled(norm(t, x, scaled=False), t.facts.hidden, trains))
    scores = t.linear("proj", y, t.facts.hidden, moe.experts)
    shares = t.new(moe.experts, 4, scores.grad)
    t.op(shares, (scores,), (shares,))
    best = t.op(t.new(k, 4, shares.grad), (shares,), (t.new(k, INDEX, False),))
    total = t.op(t.new(1, 4, best.grad), (best,))
    part = t.op(t.new(k, 4, best.grad), (best, total), (t.new(k, 4, False), total))
    factors = t.new(k, item, trains)
    t.op(factors, (), (), weights=(moe.experts * item,) if trains else ())
    return t.mul(part, factors)
