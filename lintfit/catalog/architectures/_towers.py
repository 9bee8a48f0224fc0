"""Encoders of images: their layers, and those that several multimodal models take."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lintfit.catalog.architectures._blocks import gated_mlp, linear, norm, plain_mlp
from lintfit.catalog.architectures._multimodal import Encoder, part
from lintfit.catalog.config import LARGEST, Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor, VisionTower
from lintfit.errors import shown
from lintfit.frozen import frozen

SIGLIP = defaults("siglip.vision_config")
"""transformers ``SiglipVisionConfig``."""
CLIP = defaults("clip.vision_config")
"""transformers ``CLIPVisionConfig``."""
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


@frozen
class Layer:
    """What an encoder calls the parts of a layer, and of which kind they are. As they stand here they are SigLIP's."""

    norms: tuple[str, str] = ("layer_norm1", "layer_norm2")
    rms: bool = False
    """Whether these are RMSNorms, without biases."""
    attention: str = "self_attn"
    inputs: tuple[str, ...] = ("q_proj", "k_proj", "v_proj")
    """The projections to queries, keys and values; one name where they are one."""
    out: str = "out_proj"
    mlp: str = "mlp"
    """Empty where its projections stand among the layer's own parts."""
    up: str = "fc1"
    down: str = "fc2"
    gated: bool = False
    """Whether the MLP has a gate, and Llama's names."""


def layers(
    tower: VisionTower,
    name: str,
    style: Layer,
    *,
    qkv_bias: bool = True,
    out_bias: bool = True,
    mlp_bias: bool = True,
    keys: int | None = None,
    normed: int = 0,
    normed_bias: bool = False,
) -> list[Tensor]:
    """All layers of an encoder, whose module is ``name``.

    ``keys``: width of all keys, where it is not the queries'. ``normed``: elements of the norms on queries and keys,
    where there are such.
    """
    width, inner, copies = tower.hidden, tower.intermediate, tower.layers
    keys = width if keys is None else keys
    attention, mlp = f"{name}.{style.attention}", f"{name}.{style.mlp}" if style.mlp else name
    rows = (width, keys, keys) if len(style.inputs) == 3 else (width + 2 * keys,)
    before, behind = (norm(f"{name}.{which}", width, copies, bias=not style.rms) for which in style.norms)
    found = before
    for projection, out in zip(style.inputs, rows, strict=True):
        found += linear(f"{attention}.{projection}", out, width, copies, bias=qkv_bias)
    found += linear(f"{attention}.{style.out}", width, width, copies, bias=out_bias)
    for which in ("q_norm", "k_norm") if normed else ():
        found += norm(f"{attention}.{which}", normed, copies, bias=normed_bias)
    found += behind
    if style.gated:
        return [*found, *gated_mlp(mlp, width, inner, copies, bias=mlp_bias)]
    return [*found, *plain_mlp(mlp, width, inner, copies, up=style.up, down=style.down, bias=mlp_bias)]


def tower_of(
    config: Config,
    *,
    hidden: str = "hidden_size",
    layers: str = "num_hidden_layers",
    heads: str = "num_attention_heads",
    intermediate: str = "intermediate_size",
    ratio: str = "",
    sized: bool = True,
) -> VisionTower:
    """The numbers of an encoder, by what its config calls them; CLIP's words where nothing is said.

    ``ratio``: what says how many times as wide as the rest the MLPs are, where no key says how wide. ``sized``: whether
    its images have a size.
    """
    width = config.size(hidden, kind="hidden")
    return VisionTower(
        hidden=width,
        layers=config.size(layers, kind="layers"),
        heads=config.size(heads, kind="heads"),
        intermediate=_times(config, ratio, width) if ratio else config.size(intermediate, kind="intermediate"),
        patch=config.size("patch_size"),
        image_size=config.size("image_size") if sized else None,
    )


def _times(config: Config, ratio: str, width: int) -> int:
    """So many times the width, by a key of the config. Raises for what is no such number."""
    times = config.number(ratio)
    if times is None or not 1 / width <= times <= LARGEST["intermediate"] / width:
        raise config.error(ratio, "must be a number of widths above 0")
    return int(width * times)


def patches_of(tower: VisionTower) -> int:
    """Patches of an image of its size."""
    return ((tower.image_size or 0) // tower.patch) ** 2


def convolution(name: str, shape: tuple[int, ...], copies: int = 1, *, bias: bool = True) -> list[Tensor]:
    """A convolution's weight (out, in, sides) and its bias."""
    weight = Tensor(f"{name}.weight", shape, copies, "conv")
    return [weight, Tensor(f"{name}.bias", shape[:1], copies, "bias")] if bias else [weight]


def patches(name: str, config: Config, *, bias: bool = True) -> list[Tensor]:
    """The convolution that turns patches into embeddings."""
    width, patch = config.size("hidden_size", kind="hidden"), config.size("patch_size")
    return convolution(name, (width, config.size("num_channels"), patch, patch), bias=bias)


def siglip_without_head(config: Config, tower: VisionTower, name: str) -> list[Tensor]:
    """A SigLIP encoder whose patches are taken as they are."""
    width = tower.hidden
    return [
        *patches(f"{name}.embeddings.patch_embedding", config),
        Tensor(f"{name}.embeddings.position_embedding.weight", (patches_of(tower), width), 1, "embedding"),
        *layers(tower, f"{name}.encoder.layers.{{}}", Layer()),
        *norm(f"{name}.post_layernorm", width, bias=True),
    ]


def siglip(config: Config, tower: VisionTower, name: str) -> list[Tensor]:
    """A SigLIP encoder, with its attention-pooling head where the model keeps it."""
    pooled = pooling_head(tower, f"{name}.head") if config.flag("vision_use_head", True) else []
    return [*siglip_without_head(config, tower, name), *pooled]


def pooling_head(tower: VisionTower, name: str) -> list[Tensor]:
    """SigLIP's head: one learnt query that attends to all patches."""
    width = tower.hidden
    return [
        Tensor(f"{name}.probe", (1, 1, width), 1, "other"),
        Tensor(f"{name}.attention.in_proj_weight", (3 * width, width), 1, "other"),
        Tensor(f"{name}.attention.in_proj_bias", (3 * width,), 1, "bias"),
        *linear(f"{name}.attention.out_proj", width, width, bias=True),
        *norm(f"{name}.layernorm", width, bias=True),
        *plain_mlp(f"{name}.mlp", width, tower.intermediate, 1, up="fc1", down="fc2"),
    ]


def clip(config: Config, tower: VisionTower, name: str) -> list[Tensor]:
    """A CLIP vision encoder."""
    width = tower.hidden
    return [
        Tensor(f"{name}.embeddings.class_embedding", (width,), 1, "other"),
        *patches(f"{name}.embeddings.patch_embedding", config, bias=False),
        Tensor(f"{name}.embeddings.position_embedding.weight", (patches_of(tower) + 1, width), 1, "embedding"),
        *norm(f"{name}.pre_layrnorm", width, bias=True),
        *layers(tower, f"{name}.encoder.layers.{{}}", Layer()),
        *norm(f"{name}.post_layernorm", width, bias=True),
    ]


PIXTRAL_LAYER = Layer(
    norms=("attention_norm", "ffn_norm"), rms=True, attention="attention", out="o_proj", mlp="feed_forward", gated=True
)


def pixtral(config: Config, tower: VisionTower, name: str) -> list[Tensor]:
    """Pixtral's encoder: RMSNorm, a gated MLP, no biases, rotary instead of learnt positions."""
    layer = f"{name}.transformer.layers.{{}}"
    return [
        *patches(f"{name}.patch_conv", config, bias=False),
        *norm(f"{name}.ln_pre", tower.hidden),
        *layers(tower, layer, PIXTRAL_LAYER, qkv_bias=False, out_bias=False, mlp_bias=False),
    ]


def intern(config: Config, tower: VisionTower, name: str) -> list[Tensor]:
    """InternViT as transformers writes it: learnt factors on what the blocks give back."""
    width, copies, layer = tower.hidden, tower.layers, f"{name}.encoder.layer.{{}}"
    place = f"{name}.embeddings"
    style = Layer(
        norms=("layernorm_before", "layernorm_after"),
        rms=config.text("norm_type") == "rms_norm",
        attention="attention",
        out="projection_layer",
    )
    found = [
        Tensor(f"{place}.cls_token", (1, 1, width), 1, "other"),
        *convolution(f"{place}.patch_embeddings.projection", (width, 3, tower.patch, tower.patch)),
        *(Tensor(f"{layer}.lambda_{which}", (width,), copies, "other") for which in (1, 2)),
        *layers(tower, layer, style, qkv_bias=config.flag("attention_bias"), normed=width * config.flag("use_qk_norm")),
    ]
    if config.flag("use_absolute_position_embeddings", True):
        found.append(Tensor(f"{place}.position_embeddings", (1, patches_of(tower) + 1, width), 1, "embedding"))
    if config.flag("use_mask_token"):
        found.append(Tensor(f"{place}.mask_token", (1, 1, width), 1, "other"))
    return found if config.flag("use_mean_pooling", True) else [*found, *norm(f"{name}.layernorm", width, bias=True)]


Write = Callable[[Config, VisionTower, str], list[Tensor]]

ENCODERS: Mapping[str, tuple[Mapping[str, Any], Write]] = {
    "clip_vision_model": (CLIP, clip),
    "internvl_vision": (INTERN, intern),
    "pixtral": (PIXTRAL, pixtral),
    "siglip_vision_model": (SIGLIP, siglip),
}


@frozen
class Own:
    """The encoder of a type that has a class for it."""

    defaults: Mapping[str, Any]
    write: Write
    read: Callable[[Config], VisionTower] = tower_of

    def __call__(self, config: Config) -> Encoder:
        """The encoder in ``vision_config``."""
        return Encoder(part(config, "vision_config", self.defaults), self.read, self.write)


@frozen
class Named:
    """The encoder that a config names by its ``model_type``; this one where it names none."""

    default: str

    def __call__(self, config: Config) -> Encoder:
        """The encoder in ``vision_config``. Raises for one that lintfit does not know."""
        given = {key: square(value) for key, value in config.section("vision_config").items()}
        model_type = str(given.get("model_type") or self.default)
        if model_type not in ENCODERS:
            raise config.error("vision_config", f"model_type {shown(model_type)} must be one of {', '.join(ENCODERS)}")
        defaults, write = ENCODERS[model_type]
        return Encoder(Config(given, defaults, f"{config.origin}: vision_config"), tower_of, write)


def square(value: Any) -> Any:
    """The side of a size that is stated as height and width."""
    if isinstance(value, list | tuple) and len(value) == 2 and value[0] == value[1]:
        return value[0]
    return value
