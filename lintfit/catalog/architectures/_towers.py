"""Image encoders that several vision-language models take, by the ``model_type`` in their ``vision_config``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lintfit.catalog.architectures._blocks import gated_mlp, linear, norm, plain_mlp
from lintfit.catalog.architectures._multimodal import CLIP, SIGLIP, clip, siglip, tower_of
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor, VisionTower
from lintfit.errors import shown
from lintfit.frozen import frozen, replace

PIXTRAL: Mapping[str, Any] = {
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "num_hidden_layers": 24,
    "num_attention_heads": 16,
    "num_channels": 3,
    "image_size": 1024,
    "patch_size": 16,
    "hidden_act": "gelu",
}
"""transformers ``PixtralVisionConfig``."""
INTERN = defaults("internvl.vision_config", image_size=448, patch_size=14)  # two sides each in the class
"""transformers ``InternVLVisionConfig``."""


def pixtral(config: Config, name: str) -> list[Tensor]:
    """Pixtral's encoder: RMSNorm, a gated MLP, no biases, rotary instead of learnt positions."""
    tower = tower_of(config)
    width, layers, layer = tower.hidden, tower.layers, f"{name}.transformer.layers.{{}}"
    channels = config.size("num_channels")
    found = [
        Tensor(f"{name}.patch_conv.weight", (width, channels, tower.patch, tower.patch), 1, "conv"),
        *norm(f"{name}.ln_pre", width),
        *norm(f"{layer}.attention_norm", width, layers),
        *norm(f"{layer}.ffn_norm", width, layers),
        *gated_mlp(f"{layer}.feed_forward", width, tower.intermediate, layers),
    ]
    for projection in ("q_proj", "k_proj", "v_proj", "o_proj"):
        found += linear(f"{layer}.attention.{projection}", width, width, layers)
    return [replace(tensor, where="vision") for tensor in found]


def intern(config: Config, name: str) -> list[Tensor]:
    """InternViT as transformers writes it: learnt factors on what the blocks give back."""
    tower = tower_of(config)
    width, layers, layer = tower.hidden, tower.layers, f"{name}.encoder.layer.{{}}"
    patches = ((tower.image_size or 0) // tower.patch) ** 2
    attention, place = f"{layer}.attention", f"{name}.embeddings"
    plain_norm, bias = config.text("norm_type") != "rms_norm", config.flag("attention_bias")
    found = [
        Tensor(f"{place}.cls_token", (1, 1, width), 1, "other"),
        Tensor(f"{place}.patch_embeddings.projection.weight", (width, 3, tower.patch, tower.patch), 1, "conv"),
        Tensor(f"{place}.patch_embeddings.projection.bias", (width,), 1, "bias"),
        *(Tensor(f"{layer}.lambda_{which}", (width,), layers, "other") for which in (1, 2)),
        *norm(f"{layer}.layernorm_before", width, layers, bias=plain_norm),
        *norm(f"{layer}.layernorm_after", width, layers, bias=plain_norm),
        *linear(f"{attention}.projection_layer", width, width, layers, bias=True),
        *plain_mlp(f"{layer}.mlp", width, tower.intermediate, layers, up="fc1", down="fc2"),
    ]
    if config.flag("use_absolute_position_embeddings", True):
        found.append(Tensor(f"{place}.position_embeddings", (1, patches + 1, width), 1, "embedding"))
    if config.flag("use_mask_token"):
        found.append(Tensor(f"{place}.mask_token", (1, 1, width), 1, "other"))
    for projection in ("q_proj", "k_proj", "v_proj"):
        found += linear(f"{attention}.{projection}", width, width, layers, bias=bias)
    if config.flag("use_qk_norm"):
        found += [*norm(f"{attention}.q_norm", width, layers), *norm(f"{attention}.k_norm", width, layers)]
    if not config.flag("use_mean_pooling", True):
        found += norm(f"{name}.layernorm", width, bias=True)
    return [replace(tensor, where="vision") for tensor in found]


def _siglip(config: Config, name: str) -> list[Tensor]:
    return siglip(config, name, pooling=config.flag("vision_use_head", True))


ENCODERS: Mapping[str, tuple[Mapping[str, Any], Callable[[Config, str], list[Tensor]]]] = {
    "clip_vision_model": (CLIP, clip),
    "internvl_vision": (INTERN, intern),
    "pixtral": (PIXTRAL, pixtral),
    "siglip_vision_model": (SIGLIP, _siglip),
}


@frozen
class Encoder:
    """An encoder of a config: its numbers, and its tensors under a name."""

    config: Config
    write: Callable[[Config, str], list[Tensor]]

    @property
    def numbers(self) -> VisionTower:
        return tower_of(self.config)

    def tensors(self, name: str) -> list[Tensor]:
        return self.write(self.config, name)


def encoder(config: Config, default: str) -> Encoder:
    """The encoder in ``vision_config``; ``default``: the ``model_type`` where it states none."""
    given = {key: square(value) for key, value in config.section("vision_config").items()}
    model_type = str(given.get("model_type") or default)
    if model_type not in ENCODERS:
        raise config.error("vision_config", f"model_type {shown(model_type)} must be one of {', '.join(ENCODERS)}")
    defaults, write = ENCODERS[model_type]
    return Encoder(Config(given, defaults, f"{config.origin}: vision_config"), write)


def square(value: Any) -> Any:
    """The side of a size that is stated as height and width."""
    if isinstance(value, list | tuple) and len(value) == 2 and value[0] == value[1]:
        return value[0]
    return value
