"""Falcon H1: Mamba 2's mixer and attention side by side in every layer, with multipliers all along."""

from __future__ import annotations

from lintfit.catalog.facts import ModelFacts
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.llama import attended, heads, projected
from lintfit.memory.activations.mamba2 import Heads, Style, mixer
from lintfit.memory.activations.packages import OF_MAMBA
from lintfit.memory.activations.tape import Var
from lintfit.memory.activations.traits import Traits


def layer(t: Layer, x: Var, index: int) -> Var:
    """One decoder layer."""
    y = t.rmsnorm(x)
    t.held = (x, y)
    kernel = int(t.facts.config.get("mamba_d_conv") or 4)
    mixed = t.map(mixer(t, y, mamba_heads(t.facts), kernel, style(t.facts)))
    t.held = (x, y, mixed)
    attended = t.map(_attention(t, t.map(y), index))
    x = t.add(x, t.add(mixed, attended))
    t.held = (x,)
    y = t.rmsnorm(x)
    t.held = (x, y)
    return t.add(x, _mlp(t, y))


def mamba_heads(facts: ModelFacts) -> Heads:
    """The mixer's heads, by the config's keys and ``FalconH1Config``'s defaults."""
    config = facts.config
    count = int(config.get("mamba_n_heads") or 128)
    width = int(config.get("mamba_d_ssm") or int(config.get("mamba_expand") or 2) * facts.hidden)
    return Heads(
        count=count,
        dim=width // count,
        groups=int(config.get("mamba_n_groups") or 1),
        state=int(config.get("mamba_d_state") or 256),
        chunk=int(config.get("mamba_chunk_size") or 256),
    )


def style(facts: ModelFacts) -> Style:
    """How the mixer is written."""
    config = facts.config
    before = not config.get("mamba_norm_before_gate", True)
    return Style(
        conv_bias=bool(config.get("mamba_conv_bias", True)),
        in_bias=bool(config.get("mamba_proj_bias")),
        out_bias=bool(config.get("projectors_bias")),
        multiplied=True,
        gate=("before norm" if before else "behind norm") if config.get("mamba_rms_norm") else "alone",
    )


def _attention(t: Layer, x: Var, index: int) -> Var:
    facts, held = t.facts, t.held
    t.held = (*held, x)
    shape = heads(facts, index)
    bias = bool(facts.config.get("attention_bias"))
    q, k, v = projected(t, x, shape, bias=bias)
    q, k = t.rotary(q), t.rotary(t.map(k))
    out = attended(t, q, k, v, shape, bias=bias)
    t.held = held
    return out


def _mlp(t: Layer, x: Var) -> Var:
    h, i, held = t.facts.hidden, t.facts.intermediate, t.held
    bias = bool(t.facts.config.get("mlp_bias"))
    up = t.linear("up_proj", x, h, i, bias=bias)
    t.held = (*held, up)
    gate = t.activation(t.map(t.linear("gate_proj", x, h, i, bias=bias)), t.facts.activation)
    product = t.mul(up, gate)
    t.held = held
    return t.map(t.linear("down_proj", product, i, h, bias=bias))


TRAITS = Traits(packages=OF_MAMBA)
