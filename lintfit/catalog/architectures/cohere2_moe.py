"""Command A+ and North Mini Code: Cohere 2 with experts beside attention, behind dense layers of another width."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures._blocks import Norm, Shape, decoder_shape
from lintfit.catalog.architectures._decoder import LAYER_NORMS, Names
from lintfit.catalog.architectures._experts import EXAONE
from lintfit.catalog.architectures._plain import Plain
from lintfit.catalog.config import LARGEST, Config
from lintfit.catalog.config_defaults import defaults
from lintfit.frozen import replace

DEFAULTS = defaults("cohere2_moe", first_k_dense_replace=0)
WINDOWS = ("prefix_dense_sliding_window_pattern", "sliding_window_pattern")


def normalised(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """``Cohere2MoeConfig.__post_init__``: the layers' attention one by one, dense layers in a pattern of their own."""
    first, every = (given.get(key, DEFAULTS[key]) for key in WINDOWS)
    layers, dense = (given.get(key, DEFAULTS.get(key)) for key in ("num_hidden_layers", "first_k_dense_replace"))
    counted = all(isinstance(count, int) and 0 <= count <= LARGEST["layers"] for count in (layers, dense, first, every))
    if given.get("layer_types") is not None or not counted or not first or not every:
        return given
    rest = [index + 1 for index in range(layers - dense)]
    slides = [*((index + 1) % first for index in range(dense)), *(number % every for number in rest)]
    return {**given, "layer_types": ["sliding_attention" if step else "full_attention" for step in slides]}


def shape(config: Config) -> Shape:
    """The numbers; ``intermediate`` is the dense layers', an expert is as wide as ``intermediate_size``."""
    norm: Norm = "rmsnorm" if config.number("rms_norm_eps") is not None else "layernorm"
    numbers = replace(decoder_shape(config, norm=norm), parallel_residual=True)
    dense = config.size("prefix_dense_intermediate_size", kind="intermediate", default=numbers.intermediate)
    return replace(numbers, intermediate=dense)


ROW = Plain(
    "Cohere 2 with DeepSeek's experts",
    own={"first_k_dense_replace": 0},
    normalised=normalised,
    numbers=shape,
    names=Names(norms=LAYER_NORMS[:1]),
    mlp_bias=False,
    experts=replace(EXAONE, keys=("num_experts",), width="intermediate_size"),
)
