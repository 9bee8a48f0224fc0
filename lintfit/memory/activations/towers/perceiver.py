"""Idefics 2's connector on a tape: a gated projection, and learnt latents that attend to an image's patches.

Source: transformers ``modeling_idefics2.py`` (``Idefics2Connector``, ``Idefics2PerceiverResampler``).
"""

from __future__ import annotations

from collections.abc import Mapping

from lintfit.frozen import frozen
from lintfit.memory.activations.attention import Heads, attend
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.tape import Var, function
from lintfit.memory.activations.towers.encoder import last_norm
from lintfit.memory.activations.towers.style import tower_of

DEFAULTS: Mapping[str, int] = {
    "resampler_n_latents": 64,
    "resampler_depth": 3,
    "resampler_n_heads": 16,
    "resampler_head_dim": 96,
    "num_key_value_heads": 4,
}
"""``Idefics2PerceiverConfig``."""


@frozen
class Latents:
    """So many of every picture, and its patches where ``beside``."""

    count: int
    beside: bool = False

    def __call__(self, batch: int, seq: int) -> int:
        return batch * (self.count + (seq if self.beside else 0))


@frozen
class Pairs:
    """Pairs of a latent and what it attends to: the patches of its picture, and all latents."""

    count: int

    def __call__(self, batch: int, seq: int) -> int:
        return batch * self.count * (seq + self.count)


def connector(t: Layer, x: Var) -> Var:
    """From the encoder's last states to the latents of every picture."""
    facts, width = t.facts, tower_of(t.facts).hidden
    context = _gated(t, last_norm(t, x), width, facts.intermediate, facts.hidden, facts.activation)
    stated = facts.config.get("perceiver_config")
    numbers = {**DEFAULTS, **(stated if isinstance(stated, Mapping) else {})}
    count = int(numbers["resampler_n_latents"])
    latents = t.new(facts.hidden, context.item, t.recipe.trains("latents"), per=Latents(count))
    for _ in range(int(numbers["resampler_depth"])):
        latents = _layer(t, latents, context, count, numbers)
    return t.rmsnorm(latents, facts.hidden)


def _layer(t: Layer, latents: Var, context: Var, count: int, numbers: Mapping[str, int]) -> Var:
    hidden = t.facts.hidden
    latents = t.add(latents, _attention(t, latents, context, count, numbers))
    return t.add(latents, _gated(t, t.rmsnorm(latents, hidden), hidden, 4 * hidden, hidden, "silu"))


@function
def _attention(t: Layer, latents: Var, context: Var, count: int, numbers: Mapping[str, int]) -> Var:
    hidden, dim = t.facts.hidden, int(numbers["resampler_head_dim"])
    heads = Heads(int(numbers["resampler_n_heads"]), int(numbers["num_key_value_heads"]), dim)
    wide, narrow = heads.queries * dim, heads.keys * dim
    y, c = t.rmsnorm(latents, hidden), t.rmsnorm(context, hidden)
    t.name(context, y, c)
    both = t.op(t.new(hidden, c.item, c.grad or y.grad, per=Latents(count, beside=True)), (c, y))
    t.name(both)
    q = t.linear("q_proj", y, hidden, wide)
    k, v = (t.linear(name, both, hidden, narrow) for name in ("k_proj", "v_proj"))
    return t.linear("o_proj", attend(t, q, k, v, heads, dropout=0.0, per=Pairs(count)), wide, hidden)


def _gated(t: Layer, x: Var, rows: int, between: int, columns: int, activation: str) -> Var:
    gate = t.activation(t.linear("gate_proj", x, rows, between), activation)
    return t.linear("down_proj", t.mul(gate, t.linear("up_proj", x, rows, between)), between, columns)
