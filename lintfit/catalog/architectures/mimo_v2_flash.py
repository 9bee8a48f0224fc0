"""MiMo V2 Flash: windows with sinks and twice the key heads, values narrower than keys, and DeepSeek V3's experts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures._blocks import Shape, decoder_shape, linear
from lintfit.catalog.architectures._experts import DEEPSEEK, NO_MTP, named
from lintfit.catalog.architectures._layer_kinds import FULL, SLIDING, counted, listed
from lintfit.catalog.architectures._plain import Plain
from lintfit.catalog.config import Config
from lintfit.catalog.facts import NEVER, Code, Tensor
from lintfit.frozen import replace

EVERY = 6
"""One of so many layers attends to everything, and so does the first, where a config does not say."""
SHARE = 0.334
"""The share of a head that is turned where a config does not say."""


def normalised(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """``MiMoV2FlashConfig.__post_init__``: the layers one by one, and the window as the checkpoint's code counts it."""
    layers, window = given.get("num_hidden_layers"), given.get("sliding_window_size")
    if isinstance(window, int) and window > 0:
        given = {**given, "sliding_window": window + 1}
    if not counted(layers):
        return given
    given = listed(given, [SLIDING if index and (index + 1) % EVERY else FULL for index in range(layers)])
    return listed(given, ["dense"] + ["sparse"] * (layers - 1), "mlp_layer_types")


def turned(config: Mapping[str, Any], kind: str, head_dim: int) -> int:
    """Elements of a head that layers of a kind turn."""
    rope = config.get("rope_parameters")
    part = rope.get(kind) if isinstance(rope, Mapping) else None
    share = part.get("partial_rotary_factor", SHARE) if isinstance(part, Mapping) else SHARE
    return int(head_dim * (share if isinstance(share, int | float) and 0 < share <= 1 else SHARE))


def shape(config: Config) -> Shape:
    numbers = decoder_shape(config)
    config.size("v_head_dim", kind="head_dim")
    for key in ("layer_types", "mlp_layer_types"):
        if len(config.strings(key)) != numbers.layers:
            raise config.error(key, f"must have one entry for each of the {numbers.layers} layers")
    if numbers.heads % (2 * numbers.kv_heads):
        raise config.error("num_key_value_heads", f"twice that must divide num_attention_heads ({numbers.heads})")
    return numbers


def attention(config: Config, numbers: Shape) -> list[Tensor]:
    """Attention of all layers, and the sinks of those with windows, which have twice the key heads."""
    bias, name = config.flag("attention_bias"), "model.layers.{}.self_attn"
    hidden, value = numbers.hidden, config.size("v_head_dim", kind="head_dim")
    windows = config.strings("layer_types").count(SLIDING)
    found = [
        *linear(f"{name}.q_proj", numbers.query, hidden, numbers.layers, bias=bias),
        *linear(f"{name}.o_proj", hidden, numbers.heads * value, numbers.layers),
    ]
    for keys, copies in ((numbers.kv_heads, numbers.layers - windows), (2 * numbers.kv_heads, windows)):
        found += linear(f"{name}.k_proj", keys * numbers.head_dim, hidden, copies, bias=bias)
        found += linear(f"{name}.v_proj", keys * value, hidden, copies, bias=bias)
    return [*found, Tensor(f"{name}.sinks", (numbers.heads,), windows, "other")]


ROW = Plain(
    "Windows with sinks, and experts",
    normalised=normalised,
    numbers=shape,
    mlp_bias=False,
    experts=replace(DEEPSEEK, keys=("n_routed_experts", "num_local_experts"), layers=named, shared_count=""),
    mixer=attention,
    notes=NO_MTP,
    code=Code(sdpa=NEVER, flash_attention_2=NEVER, flash_by_another_kernel=True),
)
