"""The shapes of the catalogue's facts: what a model is and what a GPU is. No logic, no data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

from lintfit.frozen import field, frozen


@frozen
class Tensor:
    """One kind of parameter tensor of an architecture and how often it occurs.

    ``name`` is the parameter's dotted name in transformers with the layer index written ``{}``
    (``model.layers.{}.self_attn.q_proj.weight``). ``shape`` is in elements.
    """

    name: str
    shape: tuple[int, ...]
    copies: int = 1
    role: Literal["linear", "embedding", "lm_head", "norm", "bias", "expert", "router", "conv", "other"] = "linear"
    where: Literal["layer", "embedding", "head", "final", "vision", "other"] = "layer"
    holders: int = 1
    """Modules that hold each copy, where several layers share a parameter: each has an adapter of its own."""
    idle: int = 0
    """Of these the modules that never run."""

    @property
    def numel(self) -> int:
        """Elements of one copy."""
        return math.prod(self.shape)

    @property
    def total(self) -> int:
        """Elements of all copies."""
        return self.numel * self.copies


@frozen
class MoE:
    """Routed experts: how many there are, how many a token visits, their width, and which layers have them."""

    experts: int
    top_k: int
    intermediate: int
    layers: int
    shared_intermediate: int = 0


@frozen
class VisionTower:
    """The image encoder of a vision-language model.

    ``tokens`` is what one encoded picture of ``image_size`` adds to the sequence; None where its size is the image's
    own, ``image_size`` then the largest. ``tiles``: the most pictures that an image is cut into, the whole beside them.
    ``merge``: patches to a token where sizes vary, ``most``: patches of the largest image that the processor passes on
    then, as far as it is known.
    """

    hidden: int
    layers: int
    heads: int
    intermediate: int
    patch: int
    image_size: int | None = None
    tokens: int | None = None
    tiles: int = 1
    merge: int = 4
    most: int | None = None


@frozen
class Stored:
    """How a quantised checkpoint holds its weights.

    ``kind`` is what people call it (``AWQ``). ``method`` is a spec's ``quantization``; None where nobody has counted
    its bytes. ``skipped`` are the modules that it leaves as they are, as transformers' patterns; None for the library's
    own choice, the head. ``partly``: more are left that only its ``config.json`` names.
    """

    kind: str
    method: Literal["nf4", "nf4-double", "int8", "gptq-int4", "gptq-int8"] | None = None
    skipped: tuple[str, ...] | None = None
    partly: bool = False


@frozen
class ModelFacts:
    """An architecture's numbers, from a ``config.json`` or the catalogue.

    Sizes are elements, ``heads`` counts query heads. ``tensors`` lists every parameter tensor (tied weights
    once), so that totals, the largest tensor, LoRA targets and quantisable modules all come from one place.
    ``config`` is the ``config.json`` content that the facts were made from, with transformers' defaults filled in.
    ``exact`` is False where the architecture's tensors are approximated by a family of the same shape. ``notes`` say
    what the numbers rest on or leave out, as an estimate's assumptions.
    """

    name: str
    model_type: str
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    vocab: int
    tied: bool
    gated: bool
    norm: Literal["rmsnorm", "layernorm"]
    activation: str
    tensors: tuple[Tensor, ...]
    max_positions: int | None = None
    checkpoint_dtype: str | None = None
    """dtype of the published weights as the config states it: ``bf16``, ``fp16``, ``fp32`` or None."""
    sliding_window: int | None = None
    sliding_layers: int = 0
    """Layers that attend only within ``sliding_window``."""
    rotary_dim: int = 0
    """Elements of each head that rotary embedding turns; 0 without rotary embedding."""
    qk_norm: bool = False
    parallel_residual: bool = False
    attention_softcap: float | None = None
    logit_softcap: float | None = None
    moe: MoE | None = None
    vision: VisionTower | None = None
    text_type: str = ""
    """``model_type`` of a vision-language model's language model, where it is one that also stands alone."""
    text_config: Mapping[str, Any] = field(default_factory=dict)
    """That model's own part of the config, with its defaults."""
    config: Mapping[str, Any] = field(default_factory=dict)
    exact: bool = True
    notes: tuple[str, ...] = ()
    source: str = ""
    stored: Stored | None = None
    """How the checkpoint's weights are quantised, by its config or its name; None where neither says that they are."""

    @property
    def parameters(self) -> int:
        """All parameters, tied weights counted once."""
        return sum(tensor.total for tensor in self.tensors)


@frozen
class Gpu:
    """A GPU model. ``usable_bytes`` is the least total memory that torch was seen to report for it.

    ``native_bf16`` and ``flash_attention_2`` follow from the compute capability (8.0 and up).
    """

    name: str
    usable_bytes: int
    vendor_gb: float
    compute_capability: tuple[int, int] | None
    native_bf16: bool | None
    flash_attention_2: bool | None
    source: str = ""
