"""Nemotron-H, Nemotron Nano 2 and Nemotron 3: layers of Mamba 2, attention, MLPs and experts in a written pattern.

``NemotronHForCausalLM._tied_weights_keys`` is empty: the head is never tied, whatever ``tie_word_embeddings`` says.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures import _mamba2
from lintfit.catalog.architectures._blocks import Shape, attention, decoder_shape, linear, router
from lintfit.catalog.architectures._decoder import Names
from lintfit.catalog.architectures._mamba2 import Mamba2
from lintfit.catalog.architectures._plain import Plain
from lintfit.catalog.config import CatalogError, Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Code, MoE, Tensor
from lintfit.frozen import replace

DEFAULTS = defaults("nemotron_h")
LETTERS = {"M": "linear_attention", "*": "full_attention", "-": "mlp", "E": "moe"}
OLD_NAMES = {"mamba": "linear_attention", "attention": "full_attention"}
OLD_KEYS = {
    "mamba_n_groups": "n_groups",
    "mamba_d_conv": "conv_kernel",
    "mamba_conv_bias": "use_conv_bias",
    "mamba_chunk_size": "chunk_size",
}
COUNTED = frozenset({"linear_attention", "full_attention", "mlp", "moe"})


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
    activation = config.text("mlp_hidden_act", default=DEFAULTS["mlp_hidden_act"])
    numbers = replace(decoder_shape(config, gated=False), activation=activation, rotary_dim=0, tied=False)
    routed = config.strings("layer_types").count("moe")
    return replace(numbers, moe=_moe(config, routed)) if routed else numbers


def _moe(config: Config, layers: int) -> MoE:
    return MoE(
        experts=config.size("n_routed_experts", kind="experts"),
        top_k=config.size("num_experts_per_tok", kind="experts"),
        intermediate=config.size("moe_intermediate_size", kind="intermediate"),
        layers=layers,
        shared_intermediate=config.size("moe_shared_expert_intermediate_size", kind="intermediate"),
    )


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


def mixers(config: Config, numbers: Shape) -> list[Tensor]:
    """Each layer is one of attention, an MLP, Mamba 2 and experts."""
    name, bias, kinds = "model.layers.{}.mixer", config.flag("mlp_bias"), config.strings("layer_types")
    return [
        *attention(name, numbers, kinds.count("full_attention")),
        *linear(f"{name}.up_proj", numbers.intermediate, numbers.hidden, kinds.count("mlp"), bias=bias),
        *linear(f"{name}.down_proj", numbers.hidden, numbers.intermediate, kinds.count("mlp"), bias=bias),
        *_mamba2.tensors(mixer(config), name, numbers.hidden, kinds.count("linear_attention")),
        *(_experts(config, numbers.moe, name, numbers.hidden) if numbers.moe is not None else []),
    ]


def _experts(config: Config, moe: MoE, name: str, hidden: int) -> list[Tensor]:
    """Experts without a gate, of the model's width or a narrower one, and the shared MLP."""
    bias, copies, shared = config.flag("mlp_bias"), moe.layers, moe.shared_intermediate
    latent = config.count("moe_latent_size", kind="hidden")
    width = latent or hidden
    found = [
        Tensor(f"{name}.experts.up_proj", (moe.experts, moe.intermediate, width), copies, "expert"),
        Tensor(f"{name}.experts.down_proj", (moe.experts, width, moe.intermediate), copies, "expert"),
        *router(f"{name}.gate", moe.experts, hidden, copies),
        *linear(f"{name}.shared_experts.up_proj", shared, hidden, copies, bias=bias),
        *linear(f"{name}.shared_experts.down_proj", hidden, shared, copies, bias=bias),
    ]
    if latent:
        found += linear(f"{name}.fc1_latent_proj", latent, hidden, copies, bias=bias)
        found += linear(f"{name}.fc2_latent_proj", hidden, latent, copies, bias=bias)
    return found


ROW = Plain(
    "A pattern of Mamba 2, attention, MLPs and experts",
    required=("hidden_size", "num_attention_heads", "layer_types"),
    normalised=normalised,
    numbers=shape,
    names=Names(embedding="model.embeddings", down="", norms=("norm",), final="model.norm_f"),
    mixer=mixers,
    # NVIDIA's own modeling_nemotron_h.py: NEMOTRONH_ATTENTION_CLASSES has a class that calls SDPA as "eager".
    code=Code(chooses_kernel=False, lora_refused_since="0.20"),
)
