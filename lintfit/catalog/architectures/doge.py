"""Doge: Llama's layers with norms of each head, a mask that the values decide, and learnt weights of the residuals.

With ``is_moe`` the MLP stands beside experts of one row each, which are looked up in two tables.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures._blocks import Shape, decoder_shape, linear
from lintfit.catalog.architectures._plain import Plain
from lintfit.catalog.config import Config
from lintfit.catalog.facts import NEVER, Code, Tensor
from lintfit.frozen import replace


def shape(config: Config) -> Shape:
    """The window of ``keep_window_size`` bites in longer sequences alone."""
    window = config.size("keep_window_size", kind="positions") + 1
    return replace(decoder_shape(config, qk_norm=True), sliding_window=window, sliding_layers=0)


def keys_of(config: Mapping[str, Any]) -> int:
    """Keys of either of two tables, whose pairs are the experts."""
    return math.isqrt(int(config["num_experts"]))


def more(config: Config, numbers: Shape) -> list[Tensor]:
    """The mask's projection, the weights of the residuals, and experts where the config asks for them."""
    bias, name = config.flag("attention_bias"), "model.layers.{}"
    hidden, layers = numbers.hidden, numbers.layers
    found = [
        *linear(f"{name}.self_attn.dt_proj", numbers.kv_heads, numbers.key_value, layers, bias=bias),
        Tensor(f"{name}.self_attn.A", (numbers.kv_heads,), layers, "other"),
        Tensor(f"{name}.input_residual", (hidden,), layers, "other"),
        Tensor(f"{name}.post_attention_residual", (hidden,), layers, "other"),
    ]
    if config.flag("is_moe"):
        experts = config.size("num_experts", kind="experts")
        found += linear(f"{name}.mlp.router_gate", 2 * keys_of(config), hidden, layers)
        for table in ("down_embed", "up_embed"):
            found.append(Tensor(f"{name}.mlp.{table}.weight", (experts, hidden), layers, "other"))
    return found


ROW = Plain("Llama and more", numbers=shape, qk_norm="head", more=(more,), code=Code(flash_attention_2=NEVER))
