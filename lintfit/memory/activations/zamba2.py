"""Zamba2: Mamba 2's mixer in every layer, in front of some of them a block that they share (``modeling_zamba2.py``)."""

from __future__ import annotations

from collections.abc import Callable

from lintfit.catalog.architectures import zamba2
from lintfit.catalog.config import Config
from lintfit.catalog.facts import ModelFacts
from lintfit.memory.activations.attention import Heads, attend
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.mamba2 import mixer as mamba
from lintfit.memory.activations.packages import OF_MAMBA
from lintfit.memory.activations.shared import Sharing, embeddings
from lintfit.memory.activations.tape import Var, function
from lintfit.memory.activations.traits import Traits, Turn

MAMBA = "mamba"


def mixer(facts: ModelFacts, index: int) -> str:
    """What mixes the tokens of a layer in the place of attention; a layer with a block has both."""
    return "" if facts.config["layer_types"][index] == zamba2.HYBRID else MAMBA


def turn(facts: ModelFacts, index: int) -> Turn | None:
    """Which of the layers that share its block a layer is."""
    if mixer(facts, index):
        return None
    layers = zamba2.hybrids(Config(facts.config, {}, facts.name))
    place, every = layers.index(index), int(facts.config["num_mem_blocks"])
    return Turn(place < every, min(2, len(layers[place + every :: every])))


TRAITS = Traits(mixer=mixer, turn=turn, sees_embeddings=True, packages=OF_MAMBA)


def layer(t: Layer, x: Var, index: int) -> Var:
    """One decoder layer."""
    numbers = zamba2.mixer(Config(t.facts.config, {}, t.facts.name))
    return hybrid(t, x, turn(t.facts, index), _shared, lambda y: mamba(t, y, numbers))


def hybrid(
    t: Layer, x: Var, turned: Turn | None, block: Callable[[Layer, Var, Sharing], Var], scan: Callable[[Var], Var]
) -> Var:
    """A mixer, in front of it a ``block`` that others share where ``turned`` says which of them the layer is.

    The mixer is checkpointed by itself where a block stands in front of it, within the checkpoint of the whole layer:
    it holds what the block gave, and reentrantly its own result.
    """
    facts, given = t.facts, x
    checkpointed = x.storage.external and t.graph
    if turned is not None:
        t.held = (x,)
        branch = block(t, x, Sharing(t, turned, alone=checkpointed and not t.early))
        t.held = (x, branch)
        branch = t.linear("linear", branch, facts.hidden, facts.hidden)
        t.held = (x, branch)
        given = t.add(x, branch)
        if checkpointed and t.early:
            t.arguments.append(branch.storage)
        elif checkpointed:
            t.keep(0, branch, t.like(x, x.width, x.item, False))
    y = t.rmsnorm(given)
    t.held = (x, y)
    if given is not x and not (checkpointed and t.early):  # which runs the mixer again with what its checkpoint holds
        t.held = (x, branch, y)
    return t.add(x, scan(y))


def _shared(t: Layer, x: Var, own: Sharing) -> Var:
    return block(t, x, own, _attention, _mlp)


Part = Callable[[Layer, Var, Sharing], Var]
"""Attention or the MLP of the shared block."""


def block(t: Layer, x: Var, own: Sharing, attention: Part, mlp: Part) -> Var:
    """The shared block, whose attention sees the embeddings beside the stream."""
    held = t.held
    wide = t.cat(x, embeddings(t, x))
    y = own.of(lambda: t.rmsnorm(wide, wide.width))
    t.held = (*held, y)
    y = attention(t, y, own)
    y = own.of(lambda: t.rmsnorm(y))
    t.held = (*held, y)
    y = mlp(t, y, own)
    t.held = held
    t.lasting = tuple([var for var in t.lasting if var is not t.scores])  # the block's own variable
    return y


def projected(t: Layer, x: Var, own: Sharing, shape: Heads) -> tuple[Var, Var, Var]:
    """The block's queries, keys and values."""
    wide, narrow = shape.queries * shape.dim, shape.keys * shape.dim
    q = own.of(lambda: t.linear("q_proj", x, x.width, wide))
    k = own.of(lambda: t.linear("k_proj", x, x.width, narrow))
    v = own.of(lambda: t.linear("v_proj", x, x.width, narrow))
    return q, k, v


@function
def _attention(t: Layer, x: Var, own: Sharing) -> Var:
    facts = t.facts
    shape = Heads(facts.heads, facts.kv_heads, facts.head_dim)
    wide = shape.queries * shape.dim
    q, k, v = projected(t, x, own, shape)
    if facts.config.get("use_shared_attention_adapter"):
        q, k, v = (t.add(part, _low_rank(t, x, part.width)) for part in (q, k, v))
    if facts.rotary_dim:
        q, k = t.both_turned(q, k)
    result = attend(t, q, k, v, shape)
    return own.of(lambda: t.linear("o_proj", result, wide, facts.hidden))


def _low_rank(t: Layer, x: Var, width: int) -> Var:
    """What a layer's own low-rank matrices give."""
    rank = int(t.facts.config["adapter_rank"])
    return t.linear("1", t.linear("0", x, x.width, rank), rank, width)


def _mlp(t: Layer, x: Var, own: Sharing) -> Var:
    facts, held = t.facts, t.held
    bias, width = bool(facts.config.get("add_bias_linear")), facts.intermediate
    both = own.of(lambda: t.linear("gate_up_proj", x, facts.hidden, 2 * width, bias=bias))
    t.held = (*held, both)
    both = t.add(both, _low_rank(t, x, 2 * width))
    t.held = (*held, both)
    gate, up = t.split(both, (width, width))
    product = t.mul(t.activation(gate, facts.activation), up)
    t.held = held
    return own.of(lambda: t.linear("down_proj", product, width, facts.hidden, bias=bias))
