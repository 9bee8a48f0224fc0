"""ALBERT's layers: BERT's, whose parameters all of a block share (``modeling_albert.py``)."""

from __future__ import annotations

from collections import Counter

from lintfit.catalog.architectures import albert
from lintfit.catalog.config import Config
from lintfit.catalog.facts import ModelFacts
from lintfit.memo import Memo
from lintfit.memory.activations.attention import Heads, attend
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.shared import Sharing
from lintfit.memory.activations.tape import Var, function
from lintfit.memory.activations.traits import Traits, Turn

_TURNS: Memo[list[Turn]] = Memo()


def turn(facts: ModelFacts, index: int) -> Turn:
    """Which of the layers that run with its block a layer is."""
    return _TURNS.get(facts, "", lambda: _turns(facts))[index]


def _turns(facts: ModelFacts) -> list[Turn]:
    """The same of every layer."""
    config = Config(facts.config, {}, facts.name)
    blocks = [albert.block(config, index) for index in range(facts.layers)]
    behind, seen, found = Counter(blocks), set[int](), list[Turn]()
    for block in blocks:
        behind[block] -= 1
        found.append(Turn(block not in seen, min(2, behind[block])))
        seen.add(block)
    return found


def unread(facts: ModelFacts) -> bool:
    """Whether groups have several layers, whose loop has a name for what the group took; no published model's do."""
    return int(facts.config.get("inner_group_num") or 1) > 1


TRAITS = Traits(turn=turn, unread=unread)


def layer(t: Layer, x: Var, index: int) -> Var:
    """One layer of the encoder."""
    own = Sharing(t, turn(t.facts, index), within=True)
    t.held = (x,)
    middle = _attention(t, x, own)
    t.held = (x, middle)
    y = _feed_forward(t, middle, own)
    t.held = (x, middle, y)
    return own.of(lambda: t.layernorm(t.add(y, middle)))


@function
def _attention(t: Layer, x: Var, own: Sharing) -> Var:
    """Attention with what follows it up to the norm, in one function."""
    h, shape = t.facts.hidden, Heads(t.facts.heads, t.facts.heads, t.facts.head_dim)
    q, k, v = (_linear(t, own, name, x, h, h) for name in ("query", "key", "value"))
    t.name(q, k, v)
    y = attend(t, q, k, v, shape, dropout=t.rate("attention_probs_dropout_prob"), half_softmax=True)
    held = t.held
    t.held = (*held, y)
    y = _linear(t, own, "dense", y, h, h)
    t.held = (*held, y)
    y = t.dropped(y, t.rate("hidden_dropout_prob"))
    t.held = (*held, y)
    return own.of(lambda: t.layernorm(t.add(x, y)))


@function
def _feed_forward(t: Layer, x: Var, own: Sharing) -> Var:
    held = t.held
    y = _linear(t, own, "ffn", x, t.facts.hidden, t.facts.intermediate)
    t.held = (*held, y)
    y = t.activation(y, t.facts.activation)
    t.held = (*held, y)
    return _linear(t, own, "ffn_output", y, t.facts.intermediate, t.facts.hidden)


def _linear(t: Layer, own: Sharing, name: str, x: Var, rows: int, columns: int) -> Var:
    return own.of(lambda: t.linear(name, x, rows, columns, bias=True))
