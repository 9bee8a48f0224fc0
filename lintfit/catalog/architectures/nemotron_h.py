"""Nemotron-H and Nemotron Nano 2: layers of Mamba 2, of attention and of MLPs in a written pattern.

``NemotronHForCausalLM._tied_weights_keys`` is empty: the head is never tied, whatever ``tie_word_embeddings`` says.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures import _mamba2
from lintfit.catalog.architectures._blocks import Shape, attention, decoder_shape, embedding, head, linear, norm
from lintfit.catalog.architectures._mamba2 import Mamba2
from lintfit.catalog.config import CatalogError, Config
from lintfit.catalog.facts import Tensor
from lintfit.frozen import replace

REQUIRED = ("hidden_size", "num_attention_heads", "layer_types")
DEFAULTS: Mapping[str, Any] = {
    "vocab_size": 131072,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "max_position_embeddings": 4096,
    "tie_word_embeddings": False,
    "attention_dropout": 0.0,
    "intermediate_size": 21504,
    "mlp_hidden_act": "relu2",
    "mlp_bias": False,
    "ssm_state_size": 128,
    "mamba_num_heads": 128,
    "mamba_head_dim": 64,
    "n_groups": 8,
    "conv_kernel": 4,
    "use_conv_bias": True,
    "use_bias": False,
    "chunk_size": 128,
}
LETTERS = {"M": "linear_attention", "*": "full_attention", "-": "mlp", "E": "moe"}
OLD_NAMES = {"mamba": "linear_attention", "attention": "full_attention"}
OLD_KEYS = {
    "mamba_n_groups": "n_groups",
    "mamba_d_conv": "conv_kernel",
    "mamba_conv_bias": "use_conv_bias",
    "mamba_chunk_size": "chunk_size",
}
COUNTED = frozenset({"linear_attention", "full_attention", "mlp"})


def normalised(given: Mapping[str, Any]) -> dict[str, Any]:
    """``NemotronHConfig.__post_init__``: the pattern as a list, which also says how many layers there are."""
    values = dict(given)
    for old, new in OLD_KEYS.items():
        if old in values:
            values[new] = values[old]
    kinds, pattern = values.get("layers_block_type") or values.get("layer_types"), values.get("hybrid_override_pattern")
    if kinds is None and isinstance(pattern, str):
        kinds = [LETTERS.get(letter, letter) for letter in pattern]
    if isinstance(kinds, list):
        values["layer_types"] = [OLD_NAMES.get(kind, kind) if isinstance(kind, str) else kind for kind in kinds]
        values["num_hidden_layers"] = len(kinds)
    return values


def shape(config: Config) -> Shape:
    unknown = next((kind for kind in config.strings("layer_types") if kind not in COUNTED), None)
    if unknown is not None:
        what = f"layers of kind {unknown!r} are not counted yet, only {', '.join(sorted(COUNTED))}"
        raise CatalogError(f"{config.origin}: {what}")
    activation = config.text("mlp_hidden_act", default="relu2")
    return replace(decoder_shape(config, gated=False), activation=activation, rotary_dim=0, tied=False)


def mixer(config: Config) -> Mamba2:
    """The numbers of the layers of Mamba 2."""
    bias = config.flag("use_bias")
    return Mamba2(
        heads=config.size("mamba_num_heads", kind="heads"),
        dim=config.size("mamba_head_dim", kind="head_dim"),
        groups=config.size("n_groups"),
        state=config.size("ssm_state_size"),
        kernel=config.size("conv_kernel"),
        chunk=config.size("chunk_size"),
        conv_bias=config.flag("use_conv_bias"),
        in_bias=bias,
        out_bias=bias,
    )


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers, name, bias = shape(config), "model.layers.{}.mixer", config.flag("mlp_bias")
    kinds = config.strings("layer_types")
    attended, mlps = kinds.count("full_attention"), kinds.count("mlp")
    found = [
        *attention(name, numbers, attended),
        *linear(f"{name}.up_proj", numbers.intermediate, numbers.hidden, mlps, bias=bias),
        *linear(f"{name}.down_proj", numbers.hidden, numbers.intermediate, mlps, bias=bias),
        *_mamba2.tensors(mixer(config), name, numbers.hidden, kinds.count("linear_attention")),
        *norm("model.layers.{}.norm", numbers.hidden, numbers.layers),
    ]
    return (
        *embedding("model.embeddings", numbers.vocab, numbers.hidden),
        *found,
        *norm("model.norm_f", numbers.hidden, where="final"),
        *head(numbers),
    )
