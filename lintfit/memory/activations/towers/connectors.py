"""From an image encoder's last states to what stands between the words: projectors and mergers on tapes.

Sources: the projectors in transformers' ``modeling_<model_type>.py``, by the names of :data:`CONNECTORS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Literal

from lintfit.catalog.facts import ModelFacts, VisionTower
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.tape import Var
from lintfit.memory.activations.towers import (
    aya,
    glm4v,
    kimi,
    lfm2_vl,
    mllama,
    ovis2,
    paddleocr,
    perceiver,
    phi4,
    qformer,
    resampler,
)
from lintfit.memory.activations.towers.encoder import last_norm, norm
from lintfit.memory.activations.towers.merged import Merged
from lintfit.memory.activations.towers.style import Style, style, taken, tower_of, vision_config

Connector = Callable[[Layer, Var], Var]


ITSELF = frozenset({"internvl_chat"})
"""Model types whose own code, outside transformers, takes FlashAttention where it finds it, and eager scores else."""


def counted(facts: ModelFacts) -> bool:
    """Whether everything between pixels and words is read: the encoder, and what follows it.

    MiniCPM-V's code, which no library has, and Phi 4 multimodal's are read but not measured.
    """
    read = facts.model_type in CONNECTORS or facts.model_type.startswith(QWENS)
    return read and facts.model_type not in UNMEASURED


LAYERED = frozenset({"blip-2", "instructblip"})
"""Model types with layers behind the encoder that are checkpointed by themselves."""

QWENS = ("exaone4_5", "qwen")
"""How the names of the model types begin whose merger is Qwen's."""

UNMEASURED = frozenset({"instructblip", "minicpmv", "phi4_multimodal", "phi4mm", "qwenvl"})
"""Model types whose way from pixels to words is counted as their code was read, and held against nothing."""


def merge(t: Layer, x: Var, checkpointed: Literal["", "once", "reentrant"] = "") -> Var:
    """What the language model gets of the encoder's last states; ``checkpointed``: the layers in between are."""
    if checkpointed and t.facts.model_type in LAYERED:
        return qformer.connector(t, x, checkpointed)
    how, connector = style(t.facts), CONNECTORS.get(t.facts.model_type)
    if connector is not None:
        return connector(t, x)
    if how.apart:
        return _merger(t, x, how, after=False)
    return t.layernorm(x, tower_of(t.facts).hidden)


def _two_layers(t: Layer, x: Var) -> Var:
    """LLaVA's projector, which takes the patches without the class's position."""
    tower, how, hidden = tower_of(t.facts), style(t.facts), t.facts.hidden
    if how.classes:
        x = _patches(t, x, how.classes)
    y = t.linear("linear_1", x, tower.hidden, hidden, bias=True)
    return t.linear("linear_2", t.activation(y, "gelu"), hidden, hidden, bias=True)


def _vipllava(t: Layer, x: Var) -> Var:
    """The patches of several layers side by side, normed and projected (``VipLlavaMultiModalProjector``).

    On the way back each layer's share is put between zeros, one after the other.
    """
    several, hidden = len(taken(t.facts)), t.facts.hidden
    beside = (x.scratch((several - 1) * x.item),) if several > 1 else ()
    wide = t.op(t.new(several * x.width, x.item, x.grad, per=Merged(1, style(t.facts).classes)), (x,), temp=beside)
    y = t.linear("linear_1", t.layernorm(wide, wide.width), wide.width, hidden, bias=True)
    return t.linear("linear_2", t.activation(y, "gelu"), hidden, hidden, bias=True)


def _aligned(t: Layer, x: Var) -> Var:
    """DeepSeek VL's and Janus' aligner behind the encoder's last norm (``DeepseekVLAligner``)."""
    config, hidden = vision_config(t.facts), t.facts.hidden
    itself = t.facts.model_type == "janus"
    names = ("fc1", *(str(number) for number in range(int(config.get("depth") or 2) - 1)))
    y = last_norm(t, x)
    for number, name in enumerate(names if itself else ("linear1", "linear2")):
        y = t.linear(name, t.activation(y, "gelu") if number else y, y.width, hidden, bias=True)
    return y


def _patches(t: Layer, x: Var, less: int) -> Var:
    """A copy without the first positions of each image, which is what a slice becomes."""
    out = t.new(x.width, x.item, x.grad, per=Merged(1, less))
    return t.op(out, (x,))


def _gemma3(t: Layer, x: Var) -> Var:
    """Patches are averaged, normed and projected (``Gemma3MultiModalProjector``)."""
    tower, facts = tower_of(t.facts), t.facts
    given = last_norm(t, x)
    y = t.map(given)
    pooled = t.new(tower.hidden, y.item, y.grad, per=Merged(_each(tower)))
    y = t.gemma_norm(t.op(pooled, (y,), (y,)), tower.hidden)
    trains = t.recipe.trains("multi_modal_projector")
    return t.cast(t.matmul(y, tower.hidden, facts.hidden, item=t.recipe.weights, trains=trains), given.item)


def _paligemma(t: Layer, x: Var) -> Var:
    y = last_norm(t, x)
    return t.linear("linear", y, tower_of(t.facts).hidden, t.facts.hidden, bias=True)


def _internvl(t: Layer, x: Var) -> Var:
    """Four patches become one token, which is normed and projected; OpenGVLab's code calls the layers by numbers."""
    hidden = t.facts.hidden
    itself = t.facts.model_type in ITSELF
    names = ("1", "3") if itself else ("linear_1", "linear_2")
    y = _shuffled(t, t.op(Var(x.width, x.item, x.per, x.storage, x.grad), (x,)) if itself else _patches(t, x, 1), 1)
    y = t.layernorm(y, y.width)
    y = t.linear(names[0], y, y.width, hidden, bias=True)
    return t.linear(names[1], t.activation(y, "gelu"), hidden, hidden, bias=True)


def _idefics3(t: Layer, x: Var) -> Var:
    y = _shuffled(t, last_norm(t, x), 0)
    return t.linear("proj", y, y.width, t.facts.hidden)


def _each(tower: VisionTower) -> int:
    """Patches of an image of the config's size that become one token."""
    return max(1, ((tower.image_size or 0) // tower.patch) ** 2 // (tower.tokens or 1))


def _shuffled(t: Layer, x: Var, less: int) -> Var:
    """Pixel shuffle: copies of the patches, those of a token in a row."""
    each = _each(tower_of(t.facts))
    return t.map(t.map(t.view(x, x.width * each, Merged(each, less))))


def _mistral3(t: Layer, x: Var) -> Var:
    """Patches are normed, merged by a linear layer and projected (``Mistral3MultiModalProjector``)."""
    tower, hidden = tower_of(t.facts), t.facts.hidden
    y = t.rmsnorm(x, tower.hidden)
    y = t.map(t.map(t.view(y, tower.hidden * tower.merge, Merged(tower.merge))))
    y = t.linear("merging_layer", y, y.width, tower.hidden)
    y = t.linear("linear_1", y, tower.hidden, hidden)
    return t.linear("linear_2", t.activation(y, "gelu"), hidden, hidden)


def _merger(t: Layer, x: Var, how: Style, *, after: bool) -> Var:
    """Qwen's merger of two by two patches; ``after``: the norm stands behind the merging (Qwen 3's inner mergers)."""
    config, h = vision_config(t.facts), tower_of(t.facts).hidden
    each = int(config.get("spatial_merge_size") or 2) ** 2
    numbered = "linear_fc1" not in how.names or "omni" in t.facts.model_type
    names = ("0", "2") if numbered else how.names[-2:]
    wide, merged = each * h, Merged(each)
    y = norm(t, t.view(x, wide, merged), how, wide) if after else t.view(norm(t, x, how), wide, merged)
    y = t.activation(t.linear(names[0], y, wide, wide, bias=True), "gelu")
    out = t.linear(names[1], y, wide, t.facts.hidden, bias=True)
    return t.map(out) if how.rms else out  # Qwen 2.5 puts its windows back in order


def inner_merge(t: Layer, x: Var) -> Var:
    """One of Qwen 3's mergers inside the encoder, whose result the language model's first layers add."""
    return _merger(t, x, style(t.facts), after=True)


CONNECTORS: Mapping[str, Connector] = {
    "aya_vision": aya.connector,
    "blip-2": qformer.connector,
    "cohere2_vision": aya.connector,
    "deepseek_vl": _aligned,
    "gemma3": _gemma3,
    "glm46v": glm4v.connector,
    "glm4v": glm4v.connector,
    "glm4v_moe": glm4v.connector,
    "glm_ocr": glm4v.connector,
    "idefics2": perceiver.connector,
    "idefics3": _idefics3,
    "instructblip": qformer.connector,
    "internvl": _internvl,
    "internvl_chat": _internvl,
    "janus": _aligned,
    "kimi_k25": kimi.connector,
    "lfm2_vl": lfm2_vl.connector,
    "lighton_ocr": _mistral3,
    "llava": _two_layers,
    "llava_next": _two_layers,
    "llava_next_video": _two_layers,
    "llava_onevision": _two_layers,
    "minicpmv": resampler.connector,
    "mistral3": _mistral3,
    "mllama": mllama.connector,
    "qwenvl": partial(resampler.connector, normed=False),
    "smolvlm": _idefics3,
    "ovis2": ovis2.connector,
    "paddleocr_vl": paddleocr.connector,
    "paligemma": _paligemma,
    "phi4_multimodal": phi4.connector,
    "phi4mm": phi4.connector,
    "video_llava": _two_layers,
    "vipllava": _vipllava,
}
