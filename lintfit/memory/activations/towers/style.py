"""How the image encoders of vision-language models are written, by the class that transformers takes for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from lintfit.catalog.facts import ModelFacts, VisionTower


class Style(NamedTuple):
    """How an encoder is written.

    ``names``: its linear modules: query, key, value (or all in one), output, and those of the MLP. ``rotary``:
    queries and keys are turned; ``packed``: images stand one after the other in one sequence. ``padded``: squares
    that an image does not fill have a mask, of which SDPA makes an additive one in every layer. ``gated``: a gated
    MLP. ``rms``: RMSNorm. ``head_norms``: RMSNorm on queries and keys of all heads together; ``each_head``: of
    each. ``groups``: heads of keys and values where they are fewer. ``scaled``: learnt factors on what the blocks
    give back. ``bias``: of the linear modules. ``frames``: frames of a patch. ``classes``: positions beside the
    patches. ``positions``: learnt positions added to the patches, or another copy of them. ``embeds_whole``: what
    counts as the encoder's input embeddings adds the positions itself. ``taps``: places in the grid of learnt
    positions that a patch's own is summed of, by one function that keeps them. ``blended``: as many that it is
    blended of by products. ``norms_patches``: a norm in front of the positions. ``first_norm``: a norm behind the
    patches' embedding. ``opening``: what goes into Qwen's kind of layers has a name while they run. ``sampled``:
    positions are taken from their grid for every patch, behind that norm (:mod:`.glm4v`). ``hooked``:
    ``enable_input_require_grads`` finds its embeddings. ``joins``: the tiles of an image are one sequence of their
    own (:mod:`.mllama`). ``checkpointed_before``: the transformers version from which on the layers no longer
    follow the model's gradient checkpointing; None where they do. ``unused``: layers at the end whose result nobody
    takes. ``half_softmax``: eager scores stay in the layer's dtype. ``scaled_queries``: eager attention scales the
    queries, not the scores. ``names_attention``: a layer has a name for what its attention gave. ``places``: the
    encoder has one for the fp32 positions that patches' own are summed of. ``checkpoints_itself``: in training
    every layer is checkpointed, reentrantly, whatever the model does. ``activation``: by default.
    """

    names: tuple[str, ...] = ("q_proj", "k_proj", "v_proj", "out_proj", "fc1", "fc2")
    rotary: bool = False
    packed: bool = False
    masked: bool = False
    padded: bool = False
    gated: bool = False
    rms: bool = False
    head_norms: bool = False
    each_head: bool = False
    groups: int | None = None
    scaled: bool = False
    bias: bool = True
    frames: int = 1
    classes: int = 0
    positions: bool = True
    embeds_whole: bool = False
    taps: int = 0
    blended: int = 0
    norms_patches: bool = False
    first_norm: bool = False
    opening: bool = False
    sampled: bool = False
    hooked: bool = True
    joins: bool = False
    checkpointed_before: tuple[int, int] | None = None
    unused: int = 0
    half_softmax: bool = False
    scaled_queries: bool = False
    names_attention: bool = False
    places: bool = False
    checkpoints_itself: bool = False
    activation: str = "gelu_pytorch_tanh"

    @property
    def fused(self) -> bool:
        """Whether query, key and value are one projection."""
        return len(self.names) == (5 if self.gated else 4)

    @property
    def apart(self) -> bool:
        """Whether every image attends by a call of its own, by tables in fp32 (Qwen's way)."""
        return self.packed and not self.masked


CLIP = Style(classes=1, first_norm=True, activation="quick_gelu")
SIGLIP = Style()
QWEN = Style(
    names=("qkv", "proj", "fc1", "fc2"), rotary=True, packed=True, frames=2, positions=False, activation="quick_gelu"
)
QWEN3 = QWEN._replace(
    names=("qkv", "proj", "linear_fc1", "linear_fc2"),
    positions=True,
    places=True,
    hooked=False,
    activation="gelu_pytorch_tanh",
)
GLM = QWEN._replace(
    names=("qkv", "proj", "gate_proj", "up_proj", "down_proj"),
    gated=True,
    rms=True,
    bias=False,
    first_norm=True,
    sampled=True,
    hooked=False,
    activation="silu",
)
QWEN2_5 = QWEN._replace(
    names=("qkv", "proj", "gate_proj", "up_proj", "down_proj"),
    gated=True,
    rms=True,
    positions=True,  # no positions, but the order of the windows: a copy as well
    activation="silu",
)
KINDS: Mapping[str, Style] = {
    **dict.fromkeys(
        ("blip-2", "instructblip"),
        Style(
            names=("qkv", "projection", "fc1", "fc2"),
            classes=1,
            embeds_whole=True,
            half_softmax=True,
            activation="gelu",
        ),
    ),
    "clip_vision_model": CLIP,
    "siglip_vision_model": SIGLIP,
    "phi4_vision": SIGLIP._replace(padded=True),
    "siglip2_vision_model": SIGLIP._replace(padded=True),
    "idefics_vision": SIGLIP._replace(embeds_whole=True),
    "qwen2_vl": QWEN,
    "qwen2_5_omni_vision_encoder": QWEN2_5._replace(names=("q", "k", "v", *QWEN2_5.names[1:])),
    "qwen2_5_vl": QWEN2_5,
    "exaone4_5": QWEN2_5._replace(groups=8),
    **dict.fromkeys(("glm46v", "glm4v", "glm4v_moe"), GLM),
    "glm_ocr": GLM._replace(bias=True, first_norm=False, sampled=False, each_head=True),
    "qwen3_vl": QWEN3,
    "qwen3_vl_moe": QWEN3,
    **dict.fromkeys(("qwen3_omni_moe", "qwen3_omni_moe_thinker"), QWEN3),
    "qwen3_5": QWEN3,
    "qwen3_5_moe": QWEN3,
    "internvl_vision": Style(
        names=("q_proj", "k_proj", "v_proj", "projection_layer", "fc1", "fc2"),
        scaled=True,
        classes=1,
        half_softmax=True,
        names_attention=True,
        activation="gelu",
    ),
    "internvl_chat": Style(
        names=("qkv", "proj", "fc1", "fc2"),
        scaled=True,
        classes=1,
        half_softmax=True,
        scaled_queries=True,
        checkpoints_itself=True,
        activation="gelu",
    ),
    "janus": SIGLIP._replace(
        names=("q_proj", "k_proj", "v_proj", "projection_layer", "fc1", "fc2"),
        embeds_whole=True,
        activation="gelu",
    ),
    "kimi_k25": QWEN._replace(
        names=("q_proj", "k_proj", "v_proj", "proj", "fc1", "fc2"),
        frames=1,
        positions=True,
        taps=16,
        hooked=False,
        activation="gelu_pytorch_tanh",
    ),
    "ovis2": Style(
        names=("q_proj", "k_proj", "v_proj", "out_proj", "gate_proj", "up_proj", "down_proj"),
        gated=True,
        rms=True,
        bias=False,
        norms_patches=True,
        hooked=False,
        names_attention=True,
        activation="silu",
    ),
    "paddleocr_vl": QWEN._replace(
        names=SIGLIP.names,
        frames=1,
        positions=True,
        blended=4,
        opening=True,
        activation="gelu_pytorch_tanh",
        hooked=False,
    ),
    "qwenvl": Style(
        names=("in_proj", "out_proj", "c_fc", "c_proj"), first_norm=True, scaled_queries=True, activation="gelu"
    ),
    "pixtral": Style(
        names=("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"),
        rotary=True,
        packed=True,
        masked=True,
        gated=True,
        rms=True,
        bias=False,
        first_norm=True,
        activation="gelu",
    ),
    "mllama": Style(
        names=("q_proj", "k_proj", "v_proj", "o_proj", "fc1", "fc2"),
        masked=True,
        joins=True,
        bias=False,
        classes=1,
        first_norm=True,
        checkpointed_before=(4, 55),
        activation="gelu",
    ),
}
"""The encoders that are read, by the ``model_type`` of the encoder, or of a model whose encoder has no other."""

TOWERS: Mapping[str, str] = {
    "aya_vision": "siglip_vision_model",
    "cohere2_vision": "siglip_vision_model",
    "deepseek_vl": "siglip_vision_model",
    "gemma3": "siglip_vision_model",
    "idefics2": "idefics_vision",
    "idefics3": "idefics_vision",
    "internvl": "internvl_vision",
    "lfm2_vl": "siglip2_vision_model",
    "lighton_ocr": "pixtral",
    "llava": "clip_vision_model",
    "llava_next": "clip_vision_model",
    "llava_next_video": "clip_vision_model",
    "llava_onevision": "siglip_vision_model",
    "minicpmv": "siglip_vision_model",
    "mistral3": "pixtral",
    "paligemma": "siglip_vision_model",
    "phi4_multimodal": "phi4_vision",
    "phi4mm": "phi4_vision",
    "qwen2_5_omni": "qwen2_5_omni_vision_encoder",
    "qwen2_5_omni_thinker": "qwen2_5_omni_vision_encoder",
    "smolvlm": "idefics_vision",
    "video_llava": "clip_vision_model",
    "vipllava": "clip_vision_model",
}
"""Model types that take an encoder of another name: which, where their config does not say."""


FEATURES: Mapping[str, int | tuple[int, ...]] = {
    "aya_vision": -1,
    "llava": -2,
    "llava_next": -2,
    "llava_next_video": -2,
    "llava_onevision": -1,
    "mistral3": -1,
    "internvl": -1,
    "phi4_multimodal": -2,
    "phi4mm": -2,
    "video_llava": -2,
    "vipllava": (-2, -5, -8, -11, 6),
}
"""Model types that take results of layers by ``vision_feature_layer``, and its default."""


def tower_of(facts: ModelFacts) -> VisionTower:
    """The encoder's numbers, of a model that has one."""
    assert facts.vision is not None
    return facts.vision


def vision_config(facts: ModelFacts) -> Mapping[str, Any]:
    """The encoder's part of the config."""
    found = facts.config.get("vision_config")
    return found if isinstance(found, Mapping) else {}


def kind(facts: ModelFacts) -> str:
    """The encoder's key in :data:`KINDS`."""
    if facts.model_type not in TOWERS:
        return facts.model_type
    stated = vision_config(facts).get("model_type")
    return str(stated) if stated in KINDS else TOWERS[facts.model_type]


def style(facts: ModelFacts) -> Style:
    """How the model's encoder is written; CLIP's way where nobody has read it."""
    config = vision_config(facts)
    found = KINDS.get(kind(facts), CLIP)
    if facts.model_type in FEATURES:
        found = found._replace(unused=tower_of(facts).layers - max(taken(facts)))
    if found.scaled:
        found = found._replace(
            rms=config.get("norm_type") == "rms_norm",
            head_norms=bool(config.get("use_qk_norm") or config.get("qk_normalization")),
        )
    if found.groups is not None:
        found = found._replace(groups=int(config.get("num_key_value_heads") or found.groups))
    return found._replace(activation=str(config.get("hidden_act") or found.activation))


def taken(facts: ModelFacts) -> tuple[int, ...]:
    """The layers whose results the projector takes side by side, by number from one; zero is what goes into the first.

    One layer's alone of most models.
    """
    layers = tower_of(facts).layers
    given = facts.config.get("vision_feature_layer")
    if given is None:
        given = FEATURES.get(facts.model_type, -1)
    chosen = [one for one in given if isinstance(one, int)] if isinstance(given, list | tuple) else [given]
    chosen = [one for one in chosen if isinstance(one, int)] or [-1]
    numbers = [min(one, layers) if one >= 0 else max(0, layers + 1 + one) for one in chosen]
    return tuple(sorted(numbers))


def known(facts: ModelFacts) -> bool:
    """Whether the encoder's code has been read."""
    return kind(facts) in KINDS
