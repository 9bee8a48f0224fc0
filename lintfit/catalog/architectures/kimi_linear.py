"""Kimi Linear: Kimi's delta attention in three layers of four, latent attention without positions, routed experts."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from lintfit.catalog.architectures import _latent
from lintfit.catalog.architectures._blocks import Shape, linear, norm
from lintfit.catalog.architectures._decoder import KEYS, Names
from lintfit.catalog.architectures._experts import DEEPSEEK, named
from lintfit.catalog.architectures._layer_kinds import FULL, LINEAR, counted, listed
from lintfit.catalog.architectures._plain import Plain
from lintfit.catalog.config import Config
from lintfit.catalog.facts import Tensor
from lintfit.frozen import replace

EVERY = 4
"""One layer of so many attends to everything where the config names none, the first one apart."""
_SPELLINGS = {
    "n_routed_experts": ("num_local_experts", "num_experts"),
    "num_experts_per_tok": ("num_experts_per_token",),
    "n_shared_experts": ("num_shared_experts",),
    "max_position_embeddings": ("model_max_length",),
    "norm_topk_prob": ("moe_renormalize",),
    "n_group": ("num_expert_group",),
}
_NESTED = {
    "linear_head_dim": "head_dim",
    "linear_num_heads": "num_heads",
    "linear_conv_kernel_dim": "short_conv_kernel_size",
}
"""What checkpoints call the numbers of the delta attention in their ``linear_attn_config``."""


def normalised(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """``KimiLinearConfig``: its spellings, the numbers of ``linear_attn_config``, and the layers one by one."""
    values = dict(given)
    for name, others in _SPELLINGS.items():
        found = next((values[other] for other in others if values.get(other) is not None), None)
        if values.get(name) is None and found is not None:
            values[name] = found
    nested = values.get("linear_attn_config")
    nested = nested if isinstance(nested, Mapping) else {}
    values.update({name: nested[key] for name, key in _NESTED.items() if nested.get(key) is not None})
    layers, dense = values.get("num_hidden_layers"), values.get("first_k_dense_replace", 1)
    if not counted(layers):
        return values
    full = _attending(nested, layers)
    known = listed(values, [FULL if index in full else LINEAR for index in range(layers)])
    sparse = ["dense" if index < dense else "sparse" for index in range(layers)] if isinstance(dense, int) else None
    return listed(known, sparse, "mlp_layer_types")


def _attending(nested: Mapping[str, Any], layers: int) -> Collection[int]:
    """Layers that attend to everything: as listed, from one on, where the others are, too; else one of EVERY."""
    listed = nested.get("full_attn_layers")
    if not isinstance(listed, list) or "kda_layers" not in nested:
        return range(EVERY, layers, EVERY)
    return [number - 1 for number in listed if isinstance(number, int)]


def mixers(config: Config, numbers: Shape) -> list[Tensor]:
    """Latent attention in some layers, Kimi's delta attention in the others."""
    name, hidden, linears = "model.layers.{}.self_attn", numbers.hidden, config.strings("layer_types").count(LINEAR)
    heads, width = config.size("linear_num_heads", kind="heads"), config.size("linear_head_dim", kind="head_dim")
    wide = heads * width
    return [
        *_latent.latent_attention(config, replace(numbers, layers=numbers.layers - linears)),
        *(part for key in "qkv" for part in linear(f"{name}.{key}_proj", wide, hidden, linears)),
        Tensor(f"{name}.conv1d.weight", (3 * wide, 1, config.size("linear_conv_kernel_dim")), linears, "conv"),
        *linear(f"{name}.forget_gate.f_a_proj", width, hidden, linears),
        *linear(f"{name}.forget_gate.f_b_proj", wide, width, linears),
        Tensor(f"{name}.forget_gate.dt_bias", (wide,), linears, "other"),
        Tensor(f"{name}.forget_gate.A_log", (1, 1, heads, 1), linears, "other"),
        *linear(f"{name}.b_proj", heads, hidden, linears),
        *linear(f"{name}.g_a_proj", width, hidden, linears),
        *linear(f"{name}.g_b_proj", wide, width, linears),
        *norm(f"{name}.o_norm", width, linears),
        *linear(f"{name}.o_proj", hidden, wide, linears),
    ]


ROW = Plain(
    "Delta attention, latent attention and experts",
    own={"n_routed_experts": 256, "first_k_dense_replace": 1},
    required=(*KEYS, "kv_lora_rank"),
    normalised=normalised,
    numbers=_latent.latent_shape,
    names=Names(order="mixer norms mlp"),
    mlp_bias=False,
    experts=replace(DEEPSEEK, layers=named, optional=True),
    mixer=mixers,
)
