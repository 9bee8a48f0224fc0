"""Gemma 3n: four streams of which one goes through the layer, low-rank residuals, a sparse MLP in the first layers.

``modeling_gemma3n.py``; norms, shared keys and values and the layers' own inputs are Gemma 4's (:mod:`.gemma4`). The
layer's forward has a name for nearly everything that it makes.
"""

from __future__ import annotations

from lintfit.catalog.architectures.gemma3n_text import layer_slides
from lintfit.catalog.facts import ModelFacts
from lintfit.memory.activations import gemma4
from lintfit.memory.activations.attention import Heads
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.gemma4 import norm
from lintfit.memory.activations.tape import Var, saved_factors
from lintfit.memory.activations.traits import Traits

SPARSE_LAYERS = 10
"""Layers whose MLP is sparse where a config does not say, of models with more than so many."""


def streams(facts: ModelFacts) -> int:
    """How many streams there are; the first is the one that layers work on."""
    return int(facts.config["altup_num_inputs"])


def heads(facts: ModelFacts, index: int) -> Heads:
    """The heads of one layer, and its window where it slides."""
    window = facts.sliding_window if layer_slides(facts.config, facts.layers, index) else None
    return Heads(facts.heads, facts.kv_heads, facts.head_dim, window)


def mlp_of(facts: ModelFacts, index: int) -> tuple[int, bool]:
    """The width of a layer's MLP, and whether it keeps the largest of the gate's results only."""
    width, pattern = facts.config["intermediate_size"], facts.config.get("activation_sparsity_pattern")
    if isinstance(pattern, list) and index < len(pattern):
        sparse = float(pattern[index]) > 0
    else:
        sparse = index < SPARSE_LAYERS < facts.layers
    return int(width[index] if isinstance(width, list) else width), sparse


TRAITS = Traits(heads=heads, shares=gemma4.shares, mlp=mlp_of, streams=streams)


def layer(t: Layer, x: Var, index: int) -> Var:
    """One decoder layer."""
    predictions = _predict(t, x)
    active = stream(t, predictions)
    held: tuple[Var, ...] = (x, predictions)
    t.held = held
    y = norm(t, active)
    held = t.held = (*held, y)
    low = t.linear("linear_left", y, t.facts.hidden, int(t.facts.config["laurel_rank"]))
    low = t.linear("linear_right", low, int(t.facts.config["laurel_rank"]), t.facts.hidden)
    laurel = t.add(y, norm(t, low))
    held = t.held = (*held, laurel)
    branch = norm(t, gemma4.attention(t, y, heads(t.facts, index), index))
    held = t.held = (*held, branch)
    gated = t.add(active, branch)
    held = t.held = (*held, gated)
    joined = t.map(t.add(gated, laurel))
    held = t.held = (*held, joined)
    z = norm(t, joined)
    held = t.held = (*held, z)
    passed = _mlp(t, z, index)
    held = t.held = (*held, passed)
    normed = norm(t, passed)
    held = t.held = (*held, normed)
    activated = t.add(joined, normed)
    t.held = (*held, activated)
    return _with_own_input(t, _correct(t, predictions, activated), checkpointed=x.storage.external)


def stream(t: Layer, x: Var) -> Var:
    """One of the streams as a view, whose gradient is one of all streams, filled up with zeros."""
    return t.copied_back(x, t.facts.hidden)


def foreseen(t: Layer, x: Var) -> Var:
    """The active stream as it is foreseen, which the layer takes."""
    return stream(t, _predict(t, x))


def _modalities(t: Layer, x: Var) -> Var:
    """A number for each stream, from the active one."""
    count = streams(t.facts)
    routed = t.cast(t.linear("modality_router", t.map(norm(t, x)), t.facts.hidden, count), 4)
    return t.cast(t.tanh(routed), x.item)


def _predict(t: Layer, x: Var) -> Var:
    """All streams mixed by coefficients for each token, and added to themselves; then laid out stream by stream."""
    count = streams(t.facts)
    coefs = t.linear("prediction_coefs", _modalities(t, stream(t, x)), count, count**2)
    mixed = t.bmm(x, coefs, x.width)
    return t.cast(t.map(t.add_(mixed, x)), x.item)


def _correct(t: Layer, predictions: Var, activated: Var) -> Var:
    """What the layer made of its stream and not foreseen, added to every stream by a coefficient for each token."""
    count = streams(t.facts)
    modalities = _modalities(t, activated)
    new = t.op(t.like(activated, activated.width, activated.item, activated.grad), (activated, stream(t, predictions)))
    repeated = t.op(t.like(new, new.width * count, new.item, new.grad), (new,))
    coefs = t.map(t.linear("correction_coefs", modalities, count, count))
    item = max(repeated.item, coefs.item)
    product = t.like(repeated, repeated.width, item, repeated.grad or coefs.grad)
    temp = [product.scratch(item)] if coefs.grad else []
    t.op(product, (repeated, coefs), saved_factors(repeated, coefs), temp=temp)
    return t.cast(t.add_(product, predictions), activated.item)


def _mlp(t: Layer, x: Var, index: int) -> Var:
    """A gated MLP; a sparse one takes off mean and so many deviations of the gate's results, and keeps what is left."""
    h = t.facts.hidden
    width, sparse = mlp_of(t.facts, index)
    held = t.held
    gate = t.linear("gate_proj", x, h, width)
    if sparse:
        t.held = (*held, gate)
        deviation = t.like(gate, 1, gate.item, gate.grad)
        t.op(deviation, (gate,), (gate, deviation), temp=(gate.scratch(2 * gate.item),))
        gate = t.relu(t.add(gate, deviation))
    t.held = (*held, gate)
    opened = t.activation(gate, t.facts.activation)
    t.held = (*held, gate, opened)
    product = t.mul(opened, t.linear("up_proj", x, h, width))
    out = t.linear("down_proj", product, width, h)
    t.held = held
    return out


def _with_own_input(t: Layer, corrected: Var, *, checkpointed: bool) -> Var:
    """The active stream, scaled, opens the layer's own input, which is added to all other streams in place."""
    h = t.facts.hidden
    held = t.held = (*t.held, corrected)
    first = t.scaled(t.map(stream(t, corrected)), h, t.recipe.trains("correct_output_scale"))
    added = gemma4.from_own_input(t, first, checkpointed=checkpointed)
    t.held = held
    others = (streams(t.facts) - 1) * h
    out = Var(corrected.width, corrected.item, corrected.per, corrected.storage, corrected.grad or added.grad)
    temp = ((others * corrected.item, corrected.per),)
    return t.op(out, (corrected, added), temp=temp)


def together(t: Layer, x: Var) -> Var:
    """The model's last step but the norm: the mean of all streams, others through products as large as the first."""
    size = _size(t, stream(t, x))
    parts = [stream(t, x), *(_alike(t, stream(t, x), size, "altup_unembed_projections") for _ in _others(t))]
    stacked = t.op(t.like(x, x.width, x.item, x.grad), parts)
    return t.op(t.like(x, t.facts.hidden, x.item, x.grad), (stacked,))


def apart(t: Layer, x: Var) -> Var:
    """The model's first step: the embeddings, and products of them as large as they are, as streams of their own."""
    size = _size(t, x)
    parts = [x, *(_alike(t, x, size, "altup_projections") for _ in _others(t))]
    return t.op(t.like(x, x.width * streams(t.facts), x.item, x.grad), parts)


def _others(t: Layer) -> range:
    return range(streams(t.facts) - 1)


def _size(t: Layer, x: Var) -> Var:
    """The root of the mean of a row's squares; autocast takes powers in fp32."""
    full = t.cast(x, 4) if t.recipe.autocast else x
    squares = t.op(
        t.like(full, full.width, full.item, full.grad), (full,), (full,), temp=(full.scratch(2 * full.item),)
    )
    mean = t.op(t.like(full, 1, full.item, full.grad), (squares,))
    return t.op(t.like(full, 1, full.item, full.grad), (mean,), (mean,))


def _alike(t: Layer, x: Var, size: Var, module: str) -> Var:
    """A product of a stream, brought to the size of another."""
    made = t.cast(t.linear(module, x, t.facts.hidden, t.facts.hidden), x.item)
    own = _size(t, made)
    item = max(made.item, size.item)
    scaled = t.op(t.like(made, made.width, item, made.grad), (made, size), (made, size))
    return t.op(t.like(made, made.width, item, made.grad), (scaled, own), (scaled, own))
