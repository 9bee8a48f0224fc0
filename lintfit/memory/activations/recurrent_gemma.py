"""RecurrentGemma: attention in windows, or a linear recurrence token by token (``modeling_recurrent_gemma.py``)."""

from __future__ import annotations

from lintfit.catalog.architectures import recurrent_gemma
from lintfit.catalog.architectures._layer_kinds import LINEAR
from lintfit.catalog.architectures.recurrent_gemma import Recurrence
from lintfit.catalog.config import Config
from lintfit.catalog.facts import ModelFacts
from lintfit.memory.activations.attention import Heads, attend
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.convolution import convolution
from lintfit.memory.activations.mamba1 import Each
from lintfit.memory.activations.tape import Extent, Storage, Var, function, positions, sequences
from lintfit.memory.activations.traits import Traits


def mixer(facts: ModelFacts, index: int) -> str:
    """What mixes the tokens of a layer in the place of attention."""
    return LINEAR if facts.config["layer_types"][index] == LINEAR else ""


def heads(facts: ModelFacts, index: int) -> Heads:
    """Every layer with attention has the window."""
    return Heads(facts.heads, facts.kv_heads, facts.head_dim, facts.sliding_window)


TRAITS = Traits(mixer=mixer, heads=heads)


def layer(t: Layer, x: Var, index: int) -> Var:
    """One decoder layer, whose norms are Gemma's; what they give keeps its name."""
    y = t.gemma_norm(x)
    t.held = (x, y)
    mixed = _recurrent(t, y) if mixer(t.facts, index) else _attention(t, y, index)
    t.held = (x, y, mixed)
    x = t.add(mixed, x)
    t.held = (y, mixed, x)
    z = t.gemma_norm(x)
    t.held = (y, x, z)
    return t.add(_mlp(t, z), x)


@function
def _mlp(t: Layer, x: Var) -> Var:
    h, i = t.facts.hidden, t.facts.intermediate
    gate = t.activation(t.linear("gate_proj", x, h, i, bias=True), t.facts.activation)
    t.held = (*t.held, gate)
    return t.linear("down_proj", t.mul(gate, t.linear("up_proj", x, h, i, bias=True)), i, h, bias=True)


@function
def _attention(t: Layer, x: Var, index: int) -> Var:
    """Each layer makes tables of its own, in the dtype of its values."""
    facts, shape, h = t.facts, heads(t.facts, index), t.facts.hidden
    bias, wide, narrow = bool(facts.config.get("attention_bias")), shape.queries * shape.dim, shape.keys * shape.dim
    q = t.linear("q_proj", x, h, wide, bias=bias)
    k = t.linear("k_proj", x, h, narrow, bias=bias)
    v = t.linear("v_proj", x, h, narrow, bias=bias)
    made = [t.new(facts.rotary_dim, v.item, False, per=positions) for _ in range(2)]
    q, k = _turned(t, q, k, (made[0], made[1]))
    out = attend(t, q, k, v, shape, head_major=True)
    return t.linear("o_proj", out, wide, h, bias=True)


@function
def _turned(t: Layer, q: Var, k: Var, tables: tuple[Var, Var]) -> tuple[Var, Var]:
    share = t.facts.rotary_dim / t.facts.head_dim
    t.name(q, k, *tables)
    turned = [t.turned(part, share, tables, item=part.item) for part in (q, k)]
    return t.joined(q, turned[0]), t.joined(k, turned[1])


@function
def _recurrent(t: Layer, x: Var) -> Var:
    """``RecurrentGemmaRecurrentBlock``."""
    facts = t.facts
    h, lru = facts.hidden, recurrent_gemma.recurrence(Config(facts.config, {}, facts.name))
    before = t.saved()
    gate = t.activation(t.linear("linear_y", x, h, lru.width, bias=True), facts.activation)
    beside = {*t.saved()}.difference(before, (x.storage,))
    t.held = (*t.held, gate)
    values = t.linear("linear_x", x, h, lru.width, bias=True)
    values = convolution(t, values, "conv_1d", lru.kernel, activated=False, bias=True, as_it_is=True)
    out = _unit(t, values, lru)
    _linger(t, x, beside)
    t.held = (*t.held, out)
    return t.linear("linear_out", t.mul(out, gate), lru.width, h, bias=True, strided=True)


def _linger(t: Layer, x: Var, beside: set[Storage]) -> None:
    """What the graph of the last state holds: all that is saved so far but for the branch ``beside``.

    The module has a name for its last state (``self.recurrent_states``) until its next forward, and with it for the
    graph that made it, whose tensors nobody frees where checkpointing made it again."""
    t.lingering = [storage for storage in t.saved() if storage not in beside]
    if x.item == 4:  # the norm keeps the layer's input as it is
        t.lingering.append(t.like(x, t.facts.hidden, 4, False).storage)


@function
def _unit(t: Layer, x: Var, lru: Recurrence) -> Var:
    """``RecurrentGemmaRglru``."""
    t.held = (*t.held, x)
    rows = t.add(x) if t.batched else x
    t.held = (*t.held, rows)
    entrance, _ = _gate(t, "input_gate_weight", rows, lru)
    t.held = (*t.held, entrance)
    recurrent, res = _gate(t, "recurrent_gate_weight", rows, lru)
    t.held = (*t.held, recurrent, res)
    logs = _logs(t, recurrent, lru)
    t.held = (*t.held[:-2], res, logs)
    decay = t.exp(logs)
    t.held = (*t.held, decay)
    square = t.exp(t.map(logs))
    t.held = (*t.held, square)
    gated = t.mul(x, entrance)
    t.held = (*t.held, gated)
    named, rest = t.held, t.map(square)
    root = t.op(t.like(rest, rest.width, rest.item, rest.grad), (rest,), (rest,), temp=(rest.scratch(2 * rest.item),))
    t.held = (*named, root)
    root = t.add(t.map(root))  # but where a sequence begins
    t.held = (*named, root)
    entering = t.mul(gated, t.cast(root, gated.item))
    t.held = (*t.held, entering)
    return _scanned(t, entering, t.map(decay))


def _gate(t: Layer, module: str, x: Var, lru: Recurrence) -> tuple[Var, Var]:
    """A sigmoid of a product block by block, and the product, which lies block by block as well."""
    block, recipe = lru.width // lru.blocks, t.recipe
    trains = recipe.trains(module)
    made = t.matmul(x, block, block, item=recipe.weights, trains=trains, copies=lru.blocks)
    biased = made
    if trains:
        biased = t.link(
            Var(made.width, made.item, made.per, made.storage, made.grad),
            (made,),
            same=True,
            weights=(lru.width * recipe.weights,),
        )
    t.held, held = (*t.held, made), t.held
    gate = t.sigmoid(t.add(biased))
    t.held = held
    return gate, made


def _logs(t: Layer, gate: Var, lru: Recurrence) -> Var:
    """``-8 * gate * softplus(param)``, which autocast makes fp32."""
    trains = t.recipe.trains("recurrent_param")
    item = 4 if t.recipe.autocast else max(gate.item, t.recipe.weights)
    scaled, soft = t.map(gate), t.constant(lru.width, item)
    out = t.like(gate, gate.width, item, gate.grad or trains)
    temp = [scaled.scratch(item)] if trains else []
    if scaled.grad and scaled.item < item:
        temp.append(t.uncast(scaled, item))
    saved = [var for var, needed in ((scaled, trains), (soft, scaled.grad)) if needed]
    made = (lru.width * t.recipe.weights,) if trains else ()
    return t.op(out, (scaled,), saved, temp=temp, weights=made)


def _last_but_one(batch: int, seq: int) -> int:
    return batch if seq > 1 else 0


def _last_but_two(batch: int, seq: int) -> int:
    return batch if seq > 2 else 0


def _scanned(t: Layer, x: Var, decay: Var) -> Var:
    """The states of one token after the other, in fp32: what of them goes on is written into one tensor in place.

    On the way back that tensor's gradient is copied for each token, and a token's part of the others' comes as one of
    the whole. Most is alive at the last token but one; the earlier ones need no more and are written as one.
    """
    results = t.like(x, x.width, x.item, x.grad)
    t.held = (*t.held, decay, results)
    state, out = _earlier(t, x, decay), t.link(results, ())
    state, out = _token(t, x, decay, out, state, _last_but_one)
    _, out = _token(t, x, decay, out, state, sequences)
    return out


def _token(t: Layer, x: Var, decay: Var, out: Var, state: Var, per: Extent) -> tuple[Var, Var]:
    """One token: its state, and the results with it."""
    kept = t.mul(t.cast(t.copied_back(decay, per=per), 4), state)
    state = t.add(kept, t.cast(t.copied_back(x, per=per), 4))
    found = t.cast(state, out.item)
    joined = Var(out.width, out.item, out.per, out.storage, out.grad)
    if found.grad:
        t.nodes.append(((joined,), (out, found), False, (), (), False, (), ()))
    return state, joined


def _earlier(t: Layer, x: Var, decay: Var) -> Var:
    """All tokens but the last two, as one operation: the state that they leave."""
    parts = [t.copied_back(part, per=_last_but_two) for part in (x, decay)]
    width = x.width * 4
    kept = [t.new(1, 1, False, per=Each(width, 2)), t.new(width, 1, False, per=sequences)]
    kept.append(decay if decay.item == 4 else t.new(1, 1, False, per=Each(width, 3)))
    return t.op(t.new(x.width, 4, decay.grad or x.grad, per=_last_but_one), parts, kept)
