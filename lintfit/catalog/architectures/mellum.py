"""Mellum 2: Qwen 3's attention and experts, in windows where ``layer_types`` says so, with a dense MLP where asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures._experts import NO_MTP, QWEN3, named
from lintfit.catalog.architectures._layer_kinds import FULL, counted, listed
from lintfit.catalog.architectures._plain import Plain
from lintfit.catalog.config_defaults import defaults
from lintfit.frozen import replace

DEFAULTS = defaults("mellum")
LEFT_OUT = ("decoder_sparse_step", "mlp_only_layers", "use_sliding_window", "max_window_layers")


def normalised(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """``MellumConfig.__post_init__``: all layers attend in full and have experts, where nothing is said.

    Published configs have ``use_sliding_window`` as well, which the class does not read.
    """
    given = {key: value for key, value in given.items() if key not in LEFT_OUT}
    layers = given.get("num_hidden_layers", DEFAULTS["num_hidden_layers"])
    if not counted(layers):
        return given
    return listed(listed(given, [FULL] * layers), ["sparse"] * layers, "mlp_layer_types")


ROW = Plain(
    "Qwen 3's experts, where the config lists them",
    required=("hidden_size", "num_hidden_layers", "num_attention_heads", "moe_intermediate_size"),
    normalised=normalised,
    qk_norm="head",
    mlp_bias=False,
    experts=replace(QWEN3, layers=named),
    notes=NO_MTP,
)
