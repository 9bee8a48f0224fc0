"""The shapes of the catalogue's facts: what a model is and what a GPU is. No logic, no data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

from lintfit.frozen import field, frozen

LONGEST_NAME = 400
"""Characters of a model's or GPU's name that is looked for: Hugging Face's ids have 96 and an owner's name at most."""


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


Version = tuple[int, int]
"""``(major, minor)`` of a library."""

Span = tuple[Version, Version]
"""From the first version on, and before the second."""

EVER: Span = ((0, 0), (1000, 0))
NEVER: Span = ((0, 0), (0, 0))


def since(major: int, minor: int) -> Span:
    """From a version on."""
    return (major, minor), EVER[1]


def before(major: int, minor: int) -> Span:
    """Until a version."""
    return EVER[0], (major, minor)


@frozen
class Code:
    """What libraries' code has for a model type, its class in transformers above all.

    ``sdpa`` and ``flash_attention_2``: the versions of transformers whose class has these kernels (``_supports_sdpa``;
    ``_supports_flash_attn``, ``_supports_flash_attn_2`` up to 4.52), read in the releases from 4.36 to 5.23.
    """

    sdpa: Span = EVER
    sdpa_unasked: Span = EVER
    """Of these the versions that run SDPA where nobody states a kernel."""
    sdpa_at_first: bool = False
    """Whether the class called SDPA before transformers chose among kernels."""
    sdpa_leaves_scores: bool = False
    """Whether SDPA may run its reference path, scores and all: one head of keys for all queries, or a mask."""
    flash_attention_2: Span = EVER
    flash_by_another_kernel: bool = False
    """Whether transformers takes another kernel in FlashAttention 2's place (5.12), which knows no sinks."""
    chooses_kernel: bool = True
    """Whether ``attn_implementation`` surely chooses the kernel: not in code of the checkpoint's own, which may have
    but one."""
    eager_advised: bool = False
    """Whether the class asks for eager attention in training ("strongly recommended", 4.42 and 4.50 to 4.56)."""
    layers: str = ""
    """The type whose layers this one has to the operation (``llama``), where the memory model does not know its own."""
    layer: str = ""
    """The class of a layer (``_no_split_modules`` of transformers 5.23); empty where nobody has looked."""
    moe_block: str = ""
    """The class of a layer's routed experts in transformers 4, where each expert is a module of its own."""
    moe_leaf_since: str = ""
    """The first DeepSpeed that marks that class as a leaf of ZeRO-3 by itself (``DEFAULT_LEAF_MODULE_CLASSES``)."""
    liger: bool = False
    """Whether liger-kernel 0.8.5 fuses the loss by default (``MODEL_TYPE_TO_APPLY_LIGER_FN`` in its
    ``transformers/monkey_patch.py``; Granite's is patched without the fused loss)."""
    unsloth: bool = False
    """Whether Unsloth's ``FastLanguageModel`` gives it attention of its own, by kernels alone and without a padding
    mask in training (``LlamaModel_fast_forward``); the score caps of its Gemma 2 are left to transformers' count."""
    text_by_auto: bool = False
    """Whether ``AutoModelForCausalLM`` loads the language model alone of a type that sees; it takes Gemma 3's whole."""
    own_dtype: bool = False
    """Whether code on the hub makes or casts the layers in the checkpoint's dtype, whatever the library's default."""
    padding_positions: int = 0
    """Of the learned positions those in front of a sample's first token, which begins behind the padding's
    (``create_position_ids_from_input_ids``)."""
    square_mask: bool = False
    """Whether the class of transformers 4.38 holds a causal mask of all positions squared (``_update_causal_mask``)."""
    lora_refused_since: str = ""
    """The first PEFT that refuses to adapt modules whose weights Mamba's kernels take themselves
    (huggingface/peft#2562, #3289)."""


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
    text_code: Code = Code()
    """What libraries' code has for that model."""
    config: Mapping[str, Any] = field(default_factory=dict)
    exact: bool = True
    notes: tuple[str, ...] = ()
    source: str = ""
    stored: Stored | None = None
    """How the checkpoint's weights are quantised, by its config or its name; None where neither says that they are."""
    code: Code = Code()
    """What libraries' code has for the ``model_type``."""
    larger: ModelFacts | None = None
    """The same with the most words that a model of this name has, where that leaves the vocabulary open."""

    @property
    def parameters(self) -> int:
        """All parameters, tied weights counted once."""
        return sum(tensor.total for tensor in self.tensors)

    @property
    def last_position(self) -> int | None:
        """The most tokens that a sample of text can have: those of a table of learned positions, beyond which the
        lookup fails (BERT, GPT-2); None where positions are computed, which go on, and where the length is that of two
        texts or of images as well."""
        rows = self.max_positions
        tables = [tensor.name for tensor in self.tensors if tensor.name.endswith(_POSITIONS)]
        if rows is None or len(tables) != 1 or self.vision is not None:
            return None
        return rows - self.code.padding_positions


_POSITIONS = ("position_embeddings.weight", "wpe.weight", "embed_positions.weight")


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
