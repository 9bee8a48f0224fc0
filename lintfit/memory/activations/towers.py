"""The image encoders of vision-language models on tapes: what their layers save for a patch.

Sources: transformers ``modeling_clip.py``, ``modeling_siglip.py``, ``modeling_qwen2_vl.py``,
``modeling_qwen2_5_vl.py``, ``modeling_qwen3_vl.py``, ``modeling_mllama.py``, ``modeling_llava.py``. A tape's sequences
are images and its tokens positions in them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from lintfit.catalog.facts import ModelFacts, VisionTower
from lintfit.frozen import frozen
from lintfit.memory.activations.attention import Heads, attend
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.profile import Form, recorded
from lintfit.memory.activations.recipe import Recipe
from lintfit.memory.activations.tape import Var, tokens

CHANNELS = 3


class Style(NamedTuple):
    """How a family's encoder is written.

    ``fused``: one projection for query, key and value, rotary in fp32, images one after the other in one sequence.
    ``gated``: a gated MLP. ``rms``: RMSNorm. ``frames``: frames of a patch. ``classes``: positions beside the patches.
    ``first_norm``: a norm behind the patches' embedding. ``checkpoints``: whether the layers follow the model's
    gradient checkpointing. ``unused``: layers at the end whose result nobody takes. ``activation``: by default.
    """

    fused: bool = False
    gated: bool = False
    rms: bool = False
    frames: int = 1
    classes: int = 0
    first_norm: bool = False
    checkpoints: bool = True
    unused: int = 0
    activation: str = "gelu_pytorch_tanh"


CLIP = Style(classes=1, first_norm=True, activation="quick_gelu")
SIGLIP = Style()
STYLES: Mapping[str, Style] = {
    "llava": CLIP,
    "llava_next": CLIP,
    "gemma3": SIGLIP,
    "minicpmv": SIGLIP,
    "qwen2_vl": Style(fused=True, frames=2, activation="quick_gelu"),
    "qwen2_5_vl": Style(fused=True, gated=True, rms=True, frames=2, activation="silu"),
    "qwen3_vl": Style(fused=True, frames=2),
    "mllama": Style(classes=1, first_norm=True, checkpoints=False, activation="gelu"),
}
"""Model types whose encoder is read; :func:`style` says which features are taken."""


def vision_config(facts: ModelFacts) -> Mapping[str, Any]:
    """The encoder's part of the config."""
    found = facts.config.get("vision_config")
    return found if isinstance(found, Mapping) else {}


def style(facts: ModelFacts) -> Style:
    """How the model's encoder is written; CLIP's way where nobody has read it."""
    config = vision_config(facts)
    found = STYLES.get(facts.model_type, CLIP)
    if facts.model_type in ("llava", "llava_next"):
        if config.get("model_type") == "siglip_vision_model":
            found = SIGLIP
        layer = facts.config.get("vision_feature_layer", -2)
        found = found._replace(unused=-1 - layer if isinstance(layer, int) and layer < 0 else 0)
    if facts.model_type == "mllama":
        found = found._replace(unused=0)
    return found._replace(activation=str(config.get("hidden_act") or found.activation))


def known(facts: ModelFacts) -> bool:
    """Whether the encoder's code has been read."""
    return facts.model_type in STYLES


def window(facts: ModelFacts, index: int) -> int | None:
    """Patches of the windows that a layer attends in; None for whole images (Qwen 2.5 VL)."""
    config = vision_config(facts)
    if facts.model_type != "qwen2_5_vl" or index in (config.get("fullatt_block_indexes") or FULL_ATTENTION):
        return None
    size = int(config.get("window_size") or WINDOW) // int(config.get("patch_size") or 14)
    return size * size


FULL_ATTENTION, WINDOW = (7, 15, 23, 31), 112
"""Layers that attend to whole images, and the pixels of a window's side (``Qwen2_5_VLVisionConfig``)."""


@frozen
class _Merged:
    """Merged patches: one of ``each`` positions."""

    each: int

    def __call__(self, batch: int, seq: int) -> int:
        return batch * seq // self.each


def block(t: Layer, x: Var) -> Var:
    """One layer of the encoder."""
    tower, how = _tower(t), style(t.facts)
    h = tower.hidden
    y = _norm(t, x, how)
    t.held = (x, y)
    x = t.add(x, _attention(t, y, tower, how))
    t.held = (x,)
    y = _norm(t, x, how)
    t.held = (x, y)
    if how.gated:
        gate = t.activation(t.linear("gate_proj", y, h, tower.intermediate, bias=True), how.activation)
        up = t.linear("up_proj", y, h, tower.intermediate, bias=True)
        return t.add(x, t.linear("down_proj", t.mul(gate, up), tower.intermediate, h, bias=True))
    up = t.activation(t.linear("fc1", y, h, tower.intermediate, bias=True), how.activation)
    return t.add(x, t.linear("fc2", up, tower.intermediate, h, bias=True))


def _tower(t: Layer) -> VisionTower:
    assert t.facts.vision is not None
    return t.facts.vision


def _norm(t: Layer, x: Var, how: Style, width: int | None = None) -> Var:
    width = width or _tower(t).hidden
    return t.rmsnorm(x, width) if how.rms else t.layernorm(x, width)


def _attention(t: Layer, y: Var, tower: VisionTower, how: Style) -> Var:
    h = tower.hidden
    heads = Heads(tower.heads, tower.heads, h // tower.heads)
    if not how.fused:
        q, k, v = (t.linear(name, y, h, h, bias=True) for name in ("q_proj", "k_proj", "v_proj"))
        return t.linear("out_proj", attend(t, q, k, v, heads), h, h, bias=True)
    q, k, v = t.split(t.linear("qkv", y, h, 3 * h, bias=True), (h, h, h))
    q, k = (t.cast(t.rotary(t.cast(part, 4)), part.item) for part in (q, k))
    out = attend(t, q, k, v, heads)
    if t.recipe.attention != "flash_attention_2":
        out = t.map(out)  # the images' (or windows') results are put together by a ``torch.cat``
    return t.linear("proj", out, h, h, bias=True)


def stem(t: Layer, x: Var, flows: bool) -> Var:
    """The convolution over patches of pixels, and the norm behind it."""
    tower, how = _tower(t), style(t.facts)
    x = t.cast(x, t.recipe.weights)
    trains = t.recipe.trains("patch_embedding")
    y = t.matmul(x, x.width, tower.hidden, item=t.recipe.weights, trains=trains)
    y.grad = y.grad or flows
    y = t.add(y) if not how.classes else t.map(y)
    return t.layernorm(y, tower.hidden) if how.first_norm else y


def merge(t: Layer, x: Var) -> Var:
    """From the encoder's last states to what stands in the sequence: a projector, or a merger of patches."""
    tower, how, facts = _tower(t), style(t.facts), t.facts
    if how.fused:
        return _merger(t, x, how, after=False)
    if facts.model_type in ("llava", "llava_next"):
        if how.classes:
            x = t.map(x)  # without the class's position: a copy, which the projector takes
        elif not how.unused:
            x = t.layernorm(x, tower.hidden)
        y = t.linear("linear_1", x, tower.hidden, facts.hidden, bias=True)
        return t.linear("linear_2", t.activation(y, "gelu"), facts.hidden, facts.hidden, bias=True)
    if facts.model_type == "gemma3" and tower.tokens:
        each = max(1, ((tower.image_size or 0) // tower.patch) ** 2 // tower.tokens)
        y = t.layernorm(x, tower.hidden)
        y = t.map(y)
        pooled = t.new(tower.hidden, y.item, y.grad, per=_Merged(each))
        y = t.gemma_norm(t.op(pooled, (y,), (y,)), tower.hidden)
        return t.matmul(
            y, tower.hidden, facts.hidden, item=t.recipe.weights, trains=t.recipe.trains("multi_modal_projector")
        )
    return t.layernorm(x, tower.hidden)


def _merger(t: Layer, x: Var, how: Style, *, after: bool) -> Var:
    """Qwen's merger of two by two patches; ``after``: the norm stands behind the merging (Qwen 3's inner mergers)."""
    config, h = vision_config(t.facts), _tower(t).hidden
    each = int(config.get("spatial_merge_size") or 2) ** 2
    names = ("linear_fc1", "linear_fc2") if t.facts.model_type == "qwen3_vl" else ("0", "2")
    wide = each * h
    merged = _Merged(each)
    y = _norm(t, t.view(x, wide, merged), how, wide) if after else t.view(_norm(t, x, how), wide, merged)
    y = t.activation(t.linear(names[0], y, wide, wide, bias=True), "gelu")
    out = t.linear(names[1], y, wide, t.facts.hidden, bias=True)
    return t.map(out) if how.rms else out  # Qwen 2.5 puts its windows back in order


def inner_merge(t: Layer, x: Var) -> Var:
    """One of Qwen 3's mergers inside the encoder, whose result the language model's first layers add."""
    return _merger(t, x, style(t.facts), after=True)


Writer = Callable[[Layer, Var], Var]

_FORMS: dict[tuple[object, ...], tuple[ModelFacts, Form]] = {}
_LARGEST = 512


def form(
    facts: ModelFacts, recipe: Recipe, part: str, *, stream: int, flows: bool, watched: bool, batched: bool
) -> Form:
    """The form of one part of the encoder: ``stem``, ``block``, ``merge`` or ``inner_merge``.

    ``flows``: whether its input needs a gradient. ``watched``: whether the forward pass is followed, too.
    """
    key = id(facts), recipe, part, stream, flows, watched, batched
    hit = _FORMS.get(key)
    if hit is None or hit[0] is not facts:
        if len(_FORMS) >= _LARGEST:
            _FORMS.clear()
        hit = _FORMS[key] = facts, _written(facts, recipe, part, stream, flows, watched, batched)
    return hit[1]


def _written(
    facts: ModelFacts, recipe: Recipe, part: str, stream: int, flows: bool, watched: bool, batched: bool
) -> Form:
    tower, how = facts.vision, style(facts)
    assert tower is not None
    plain = replace(recipe, padded=False, liger=False, kernels=frozenset(), litgpt=False)
    t = Layer(facts, plain, watched=watched, batched=batched and not how.fused)
    if part == "stem":
        x = t.new(CHANNELS * tower.patch**2 * how.frames, 4, False)
        return recorded(t, x, stem(t, x, flows))
    x = t.new(tower.hidden, stream, flows, per=tokens)
    x.storage.external = watched or part == "inner_merge"  # the next layer has the same input
    writers: Mapping[str, Writer] = {"block": block, "merge": merge, "inner_merge": inner_merge}
    return recorded(t, x, writers[part](t, x))
