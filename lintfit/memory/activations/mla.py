"""DeepSeek's latent attention: queries, keys and values from low-rank latents (``modeling_deepseek_v3.py``)."""

from __future__ import annotations

from typing import NamedTuple

from lintfit.memory.activations.attention import Heads, attend
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.tape import Var, function, positions


class Found(NamedTuple):
    """Queries, keys and values of all heads, the latent that the queries were made of, where there is one, and what
    else attention has names for."""

    q: Var
    k: Var
    v: Var
    small: Var | None
    named: tuple[Var, ...]


@function
def attention(t: Layer, x: Var) -> Var:
    """Self-attention of one layer, from the normalised input to the output projection."""
    facts = t.facts
    heads, value = facts.heads, int(facts.config["v_head_dim"])
    q, k, v, *_ = latent(t, x)
    out = attend(t, q, k, v, Heads(heads, heads, q.width // heads, None, value), head_major=True)
    return t.linear("o_proj", out, heads * value, facts.hidden)


def latent(t: Layer, x: Var) -> Found:
    """What attention takes; the names that its function has for the parts stay.

    Half of each latent's way is shared: one rotated key of ``qk_rope_head_dim`` stands for all heads. Queries and keys
    are put together in new tensors; values stay a view of ``kv_b_proj``'s whole result, which is kept.
    """
    facts = t.facts
    config, h, heads = facts.config, facts.hidden, facts.heads
    nope, rope = int(config["qk_nope_head_dim"]), int(config["qk_rope_head_dim"])
    value, rank, narrow = int(config["v_head_dim"]), int(config["kv_lora_rank"]), config.get("q_lora_rank")
    small = None
    if narrow:
        small = t.rmsnorm(t.linear("q_a_proj", x, h, int(narrow)), int(narrow))
        q = t.linear("q_b_proj", small, int(narrow), heads * (nope + rope))
    else:
        q = t.linear("q_proj", x, h, heads * (nope + rope))
    q_pass, q_turned = t.split(q, (heads * nope, heads * rope))
    latents = t.linear("kv_a_proj_with_mqa", x, h, rank + rope)
    both, k_turned = t.split(latents, (rank, rope))
    both = t.rmsnorm(both, rank)
    if facts.model_type == "kimi_linear":  # nothing is turned, and queries are what their projection gives
        t.name(q, both, latents)
        joined = t.linear("kv_b_proj", both, rank, heads * (nope + value))
        k_pass, v = t.split(joined, (heads * nope, heads * value))
        k = t.op(t.like(q, q.width, joined.item, joined.grad), (k_pass, k_turned))
        return Found(q, k, v, small, (q, both, latents))
    if facts.model_type == "deepseek_v2":  # as complex numbers, and back to what they were
        q_turned, k_turned = (t.cast(t.map(t.cast(part, 4)), part.item) for part in (q_turned, k_turned))
    else:
        q_turned, k_turned = t.both_turned(q_turned, k_turned)
    named = q, both, latents, q_turned, k_turned
    t.name(*named)
    if t.recipe.returns_states and not t.graph:  # what the cache has of a layer
        t.lasting = (*t.lasting, both, k_turned)
    q = t.op(t.like(q, q.width, q_turned.item, q.grad), (q_pass, q_turned))
    if facts.model_type == "mistral4":  # by the temperature of every position
        q = t.map(q, (t.new(1, q.item, False, per=positions),))
    both = t.linear("kv_b_proj", both, rank, heads * (nope + value))
    k_pass, v = t.split(both, (heads * nope, heads * value))
    k = t.op(t.like(q, q.width, both.item, both.grad), (k_pass, k_turned))
    return Found(q, k, v, small, named)
