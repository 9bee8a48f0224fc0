"""OLMo Hybrid: three layers of gated delta rule to one of OLMo 3's attention, with rotary positions or without."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures._blocks import Shape, around, attention, decoder_shape, gated_mlp, linear, norm
from lintfit.catalog.architectures._decoder import KEYS
from lintfit.catalog.architectures._layer_kinds import LINEAR
from lintfit.catalog.config import LARGEST, Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor
from lintfit.frozen import replace

REQUIRED = KEYS
DEFAULTS = defaults("olmo_hybrid")


def normalised(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """``OlmoHybridConfig.__post_init__``: the layers one by one, and the heads of the delta rule."""
    sizes = {key: given.get(key, DEFAULTS[key]) for key in ("num_hidden_layers", "hidden_size", "num_attention_heads")}
    if not all(isinstance(size, int) and size > 0 for size in sizes.values()):
        return given
    layers, hidden, heads = sizes.values()
    found = dict(given)
    if found.get("layer_types") is None and layers <= LARGEST["layers"]:
        kinds = ["full_attention" if index % 4 == 3 else LINEAR for index in range(layers)]
        found["layer_types"] = kinds if "full_attention" in kinds else [*kinds[:-1], "full_attention"]
    for key in ("linear_num_key_heads", "linear_num_value_heads"):
        if found.get(key) is None:
            found[key] = heads
    count, width = found["linear_num_key_heads"], found.get("linear_key_head_dim")
    if width is None and isinstance(count, int) and count > 0:
        width = found["linear_key_head_dim"] = int(0.75 * hidden / count)
    if found.get("linear_value_head_dim") is None and isinstance(width, int):
        found["linear_value_head_dim"] = 2 * width
    return found


def turns(config: Config) -> bool:
    """Whether attention has rotary positions: a base frequency of null says that it has none."""
    rope = config.get("rope_parameters")
    values = rope if isinstance(rope, Mapping) else config
    return "rope_theta" not in values or values["rope_theta"] is not None


def shape(config: Config) -> Shape:
    numbers = decoder_shape(config, qk_norm=True)
    return numbers if turns(config) else replace(numbers, rotary_dim=0)


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers, bias, layer = shape(config), config.flag("attention_bias"), "model.layers.{}"
    mixed = config.strings("layer_types").count(LINEAR)
    attended, hidden = numbers.layers - mixed, numbers.hidden
    found = [
        *attention(f"{layer}.self_attn", numbers, attended, bias=bias, out_bias=bias),
        *norm(f"{layer}.self_attn.q_norm", numbers.query, attended),
        *norm(f"{layer}.self_attn.k_norm", numbers.key_value, attended),
        *_delta_rule(config, hidden, mixed),
        *gated_mlp(f"{layer}.mlp", hidden, numbers.intermediate, numbers.layers),
        *norm(f"{layer}.input_layernorm", hidden, mixed),
        *norm(f"{layer}.post_attention_layernorm", hidden, numbers.layers),
        *norm(f"{layer}.post_feedforward_layernorm", hidden, attended),
    ]
    return around(numbers, found)


def _delta_rule(config: Config, hidden: int, copies: int) -> list[Tensor]:
    """``OlmoHybridGatedDeltaNet``: every part has a projection of its own."""
    name, heads = "model.layers.{}.linear_attn", config.size("linear_num_value_heads", kind="heads")
    width = config.size("linear_value_head_dim", kind="head_dim")
    keys = config.size("linear_num_key_heads", kind="heads") * config.size("linear_key_head_dim", kind="head_dim")
    values = heads * width
    projections = {"q_proj": keys, "k_proj": keys, "v_proj": values, "a_proj": heads, "b_proj": heads, "g_proj": values}
    kernel = config.size("linear_conv_kernel_dim")
    return [
        *(tensor for part, out in projections.items() for tensor in linear(f"{name}.{part}", out, hidden, copies)),
        *linear(f"{name}.o_proj", hidden, values, copies),
        Tensor(f"{name}.conv1d.weight", (2 * keys + values, 1, kernel), copies, "conv"),
        Tensor(f"{name}.dt_bias", (heads,), copies, "bias"),
        Tensor(f"{name}.A_log", (heads,), copies, "other"),
        *norm(f"{name}.o_norm", width, copies),
    ]
