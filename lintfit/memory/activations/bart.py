"""BART's layers and what is built like them: an encoder's, and a decoder's that attend to what it made.

BART and Marian have a norm behind each block, the others in front, and one behind the last layer of each half. After
``modeling_bart.py``, ``modeling_mbart.py``, ``modeling_m2m_100.py``, ``modeling_pegasus.py``, ``modeling_marian.py``
and ``modeling_blenderbot.py`` of transformers 5.
"""

from __future__ import annotations

from collections.abc import Callable

from lintfit.catalog.facts import ModelFacts
from lintfit.memory.activations.attention import Heads, attend
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.frames import frame
from lintfit.memory.activations.halves import alone, crosses, decodes, states
from lintfit.memory.activations.recipe import Beside
from lintfit.memory.activations.tape import Var, function, pairs
from lintfit.memory.activations.traits import Halves, Traits


def layers(facts: ModelFacts) -> tuple[int, int]:
    """Layers of the encoder and of the decoder."""
    return int(facts.config["encoder_layers"]), int(facts.config["decoder_layers"])


def ending(t: Layer, x: Var) -> Var:
    """What follows the last layer of either half: a norm, where layers do not end with one."""
    return x if frame(t.facts).ends else t.layernorm(x)


TRAITS = Traits(crosses=crosses, halves=Halves(layers, ending))


def layer(t: Layer, x: Var, index: int) -> Var:
    """One layer of either half."""
    last = index == t.facts.layers - 1 or alone(t, x)
    x = _block(t, x, lambda y: _attention(t, y, (y, y), None))
    if decodes(t.facts):
        x = _block(t, x, lambda y: _attention(t, y, states(t, last=last), t.recipe.beside))
    return _block(t, x, lambda y: _mlp(t, y))


def _block(t: Layer, x: Var, branch: Callable[[Var], Var]) -> Var:
    """A residual block: ``norm(x + dropout(branch(x)))``, or ``x + dropout(branch(norm(x)))``."""
    behind = frame(t.facts).ends
    t.held = (x,)
    y = x if behind else t.layernorm(x)
    t.held = (x, y)
    made = branch(y)
    t.held = (x, made)
    made = t.dropped(made, t.rate("dropout"))
    t.held = (x, made)
    total = t.add(x, made)
    t.held = (x, total)  # ``residual`` and ``hidden_states``
    found = t.layernorm(total) if behind else total
    t.held = (found,)
    return found


@function
def _attention(t: Layer, x: Var, seen: tuple[Var, Var], beside: Beside | None) -> Var:
    """Queries of ``x``; keys and values of what is ``seen``: of itself, or of what stands ``beside`` it."""
    facts, shape, dropout = t.facts, Heads(t.facts.heads, t.facts.heads, t.facts.head_dim), t.rate("attention_dropout")
    h = facts.hidden
    q = t.linear("q_proj", x, h, h, bias=True)
    k, v = (t.linear(name, each, h, h, bias=True) for name, each in zip(("k_proj", "v_proj"), seen, strict=True))
    mask = None
    if beside is not None and beside.mask_item and t.recipe.attention == "sdpa":
        mask = t.new(1, 2 if t.recipe.autocast else q.item, False, per=beside.pairs)
    per = pairs if beside is None else beside.pairs
    mixed = attend(t, q, k, v, shape, dropout=dropout, half_softmax=True, mask=mask, per=per)
    return t.linear("out_proj", mixed, h, h, bias=True)


@function
def _mlp(t: Layer, x: Var) -> Var:
    facts = t.facts
    width = int(facts.config["decoder_ffn_dim" if decodes(facts) else "encoder_ffn_dim"])
    y = t.activation(t.linear("fc1", x, facts.hidden, width, bias=True), facts.activation)
    t.held = t.held[:1]  # what goes into the block; ``hidden_states`` is the activation's result now
    return t.linear("fc2", t.dropped(y, t.rate("activation_dropout")), width, facts.hidden, bias=True)
