"""Mixture-of-experts layers: Llama's or latent attention, and routed experts."""

from __future__ import annotations

from lintfit.catalog.architectures import ernie4_5_moe
from lintfit.catalog.facts import ModelFacts
from lintfit.memory.activations import llama, mla
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.experts import experts
from lintfit.memory.activations.tape import Var, function


def layer(t: Layer, x: Var, index: int) -> Var:
    """One decoder layer; layers without experts have the dense MLP."""
    facts = t.facts
    norm = t.layernorm if facts.norm == "layernorm" else t.rmsnorm
    y = norm(x)
    t.held = (x, y)
    mixed = mla.attention(t, y) if "kv_lora_rank" in facts.config else llama.attention(t, y, index)
    x = llama.residual(t, x, mixed)
    t.held = (x,)
    y = norm(x)
    t.held = (x, y)
    return feed_forward(t, x, y, index)


def feed_forward(t: Layer, x: Var, y: Var, index: int) -> Var:
    """What a layer adds to its stream ``x`` by ``y``, the same normalised: experts, or the dense MLP."""
    facts = t.facts
    if facts.moe is None or not has_experts(facts, index):
        return llama.residual(t, x, llama.mlp(t, y))
    if facts.model_type in GATED_SHARED:
        shared = llama.mlp(t, y, facts.moe.shared_intermediate)
        t.held = (x, y, shared)
        out = experts(t, y, facts.moe)
        gate = t.activation(t.linear("shared_expert_gate", y, facts.hidden, 1), "sigmoid")
        return t.add(x, t.add(out, t.mul(shared, gate)))
    if facts.model_type in SHARED_FIRST and facts.moe.shared_intermediate:
        shared = llama.mlp(t, y, facts.moe.shared_intermediate)
        t.held = (x, y, shared)
        return t.add(x, t.add(experts(t, y, facts.moe), shared))
    out = experts(t, y, facts.moe)
    if facts.model_type == "hy_v3" and facts.config.get("enable_moe_fp32_combine"):
        return t.add(x, _added_in_full(t, y, out, facts.moe.shared_intermediate))
    if facts.moe.shared_intermediate:
        t.held = (x, y, out)
        out = t.add(out, llama.mlp(t, y, facts.moe.shared_intermediate))
    if facts.model_type in NORMED_BEHIND:
        t.held = (x, y)
        out = t.rmsnorm(out)
    return llama.residual(t, x, out)


@function
def _added_in_full(t: Layer, x: Var, routed: Var, width: int) -> Var:
    """Hy3 adds the shared expert's result in fp32."""
    t.held = (*t.held, routed)
    full = t.cast(routed, 4)
    t.held = (*t.held, full)
    return t.cast(t.add(full, t.cast(llama.mlp(t, x, width), 4)), x.item)


GATED_SHARED = frozenset({"qwen2_moe", "qwen3_next", "qwen3_5_moe", "qwen3_5_moe_text"})
"""Model types whose shared expert runs first and has a gate of its own."""


NORMED_BEHIND = frozenset({"axk1"})
"""Model types with a norm of what the experts give."""

SHARED_FIRST = frozenset({"ernie4_5_moe", "hunyuan_v1_moe"})
"""Model types whose shared expert runs first, without a gate."""


def has_experts(facts: ModelFacts, index: int) -> bool:
    """Whether this layer routes: dense layers come first (DeepSeek), or every n-th one has experts (Qwen).

    ``mlp_layer_types`` names the layers one by one.
    """
    if facts.model_type == "ernie4_5_moe":
        return ernie4_5_moe.routes(facts.config, facts.layers, index)
    config = facts.config
    kinds = config.get("mlp_layer_types")
    if isinstance(kinds, list) and index < len(kinds):
        return bool(kinds[index] == "sparse")
    dense = int(config.get("first_k_dense_replace") or 0)
    step = int(config.get("decoder_sparse_step") or config.get("moe_layer_freq") or 1)
    only = config.get("mlp_only_layers")
    if isinstance(only, list) and index in only:
        return False
    return index >= dense and (index + 1) % step == 0
