"""How a layer is run: the dtypes, the attention kernel, the adapters. What decides what autograd saves."""

from __future__ import annotations

from functools import lru_cache
from operator import attrgetter
from typing import Literal

from lintfit.catalog.attention import has_sdpa, runs_sdpa
from lintfit.catalog.language import language
from lintfit.frozen import field, frozen, names, replace
from lintfit.memo import Memo
from lintfit.memory.activations.family_names import has_module
from lintfit.memory.activations.gptq import Unpacked, unpacked
from lintfit.memory.alike import on_any_gpu
from lintfit.memory.spec import DTYPE_BYTES, OWN_LOSS, Spec, section
from lintfit.memory.tensors.fused_experts import Fused, fused, named
from lintfit.memory.tensors.lora import targets_of
from lintfit.memory.tensors.tensor_parallel import logit_parts, splits_head
from lintfit.memory.tensors.weights import (
    adapter_dtype,
    has_fused_experts,
    kbit_upcast,
    keeps_fp32,
    model_dtype,
    quantises_fused_experts,
)
from lintfit.memory.versions import NEWEST_TRANSFORMERS, release, since, transformers_version

Attention = Literal["eager", "sdpa", "flash_attention_2"]
Sdpa = Literal["flash", "efficient", "math"]


@frozen
class Lora:
    """Adapters: their rank, which modules they sit on, the bytes of one adapter weight, dropout on or off."""

    rank: int
    targets: tuple[str, ...] | None
    """Module names, None for all linear modules but the head."""
    item: int
    dropout: bool
    dora: bool = False
    fused: Fused | None = None
    """Of a model whose experts are one parameter."""

    def on(self, module: str) -> bool:
        """Whether the module of this name (its last part, ``q_proj``) is adapted, as PEFT matches suffixes."""
        if self.fused is not None and module in self.fused.never:
            return False
        if self.targets is None:
            return module != "lm_head"
        return named(module, self.targets)


@frozen
class Beside:
    """What some layers attend to beside the text: positions for each sequence, bytes of an element, and whether a
    gradient flows back into it. ``mask_item``: bytes of an element of the additive mask over it."""

    count: int
    item: int
    flows: bool
    mask_item: int
    hands_in: bool = True
    """Whether keys and values of it are handed in beside what layers save (Llama 3.2 Vision's)."""
    opens: bool = False
    """Whether biases over it need a gradient although nothing trains them: T5's, where it checkpoints."""

    def squares(self, batch: int, seq: int) -> int:
        """Pairs of a position of the text and one of these, which all sequences share."""
        return seq * self.count

    def square_rows(self, batch: int, seq: int) -> int:
        """The same in rows of a multiple of :data:`ALIGNED`."""
        return seq * (-(-self.count // ALIGNED) * ALIGNED)

    def positions(self, batch: int, seq: int) -> int:
        """All positions of a micro-batch."""
        return batch * self.count

    def pairs(self, batch: int, seq: int) -> int:
        """Pairs of a token and a position that it attends to."""
        return batch * seq * self.count

    def shares(self, item: int) -> bool:
        """Whether SDPA takes the mask as it is, for queries of ``item`` bytes an element, not a copy in each layer."""
        return self.count % ALIGNED == 0 and self.mask_item == item

    def mask_rows(self, batch: int, seq: int) -> int:
        """Elements of the mask, in rows of a multiple of :data:`ALIGNED`."""
        return batch * seq * (-(-self.count // ALIGNED) * ALIGNED)


ALIGNED = 8
"""Elements that the rows of a mask come in (torch ``attention.cpp:preprocess_mask``, ``mem_eff_alignment``)."""


@frozen
class Recipe:
    """What decides the saved tensors of a layer, apart from the architecture and the batch.

    ``weights`` is the bytes of a weight as the layers see it: what the engine computes with, not what it keeps
    (DeepSpeed bf16 and FSDP's mixed precision compute on half-precision weights). ``autocast``: whether a
    half-precision autocast surrounds the forward pass. ``frozen``: the base weights have no gradient.
    ``liger``: Liger's norms and gated MLP stand in for the model's own. ``quantized``: the linear layers' weights
    are dequantised for each use. ``holds_inputs``: they hold on to their inputs as long as the graph lives
    (bitsandbytes up to 0.43.1). ``copies_dequantized``: what is dequantised is cast once more. ``unpacked``: how plain
    torch does it for AutoGPTQ. ``litgpt``: the layers are LitGPT's. ``kernels``: ``Spec.fused_kernels``.
    ``upcast_norms``: the norms' weights, and with them the stream, are fp32 over a half-precision base;
    ``upcast_head``: the head's weight as well.
    """

    weights: int
    autocast: bool
    attention: Attention = "sdpa"
    padded: bool = False
    frozen: bool = False
    quantized: bool = False
    lora: Lora | None = None
    trained_modules: tuple[str, ...] = ()
    liger: bool = False
    dropout: bool = True
    holds_inputs: bool = False
    copies_dequantized: bool = False
    unpacked: Unpacked | None = None
    quantized_experts: int = 0
    """Bytes of an element that experts which are one quantised parameter are dequantised to; 0 where there are none."""
    litgpt: bool = False
    kernels: frozenset[str] = frozenset()
    upcast_norms: bool = False
    upcast_head: bool = False
    transformers: tuple[int, int] = NEWEST_TRANSFORMERS
    tensor_parallel: int = 1
    """Ranks that the head's weight is split over."""
    logit_parts: int = 1
    """Ranks that the logits stay split over; 1 where they are gathered."""
    expert_parallel: int = 1
    """Ranks that each have other experts; the tokens of all of them come to these."""
    ulysses: int = 1
    """Ranks that exchange heads for parts of the sequence around each layer's attention (DeepSpeed's Ulysses)."""
    ring: int = 1
    """Ranks whose keys and values go round while each attends with its own queries (torch's context parallelism)."""
    wrapped_loss: bool = False
    """Whether a wrapper around the model computes the loss, in the dtype of the logits that it gets."""
    beside: Beside | None = None
    """What the layers that cross over attend to; None where there is nothing, and they are left out."""
    copies_states: bool = False
    """Whether keys and values are copied into a cache on their way to the attention (:func:`caches`)."""
    returns_states: bool = False
    """Whether they are in a cache where nothing is trained: that of a vision-language model's ``text_config``."""
    sdpa: Sdpa = "flash"
    """The best that SDPA has for half-precision tensors on this GPU (:func:`best_sdpa`)."""
    fp32_out: bool = False
    """Whether T5's projection out of the MLP is in fp32 (:func:`.weights.keeps_fp32`)."""
    upcast_outputs: bool = True
    """Whether what comes out of autocast is copied to fp32 behind the model's forward."""
    keeps_scores: bool = False
    """Whether the backward of a softmax asks for its input, if only for the dtype (torch up to 1.10)."""
    loss_around: bool = False
    """Whether the loss is made by a class around the language model, which gives its logits back twice."""

    hashed: int = field(init=False, compare=False)
    """The hash, worked out once: forms are looked up by their recipe again and again."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "hashed", hash(_compared(self)))

    def __hash__(self) -> int:
        return self.hashed

    @property
    def opening(self) -> int:
        """Bytes of an element of the embeddings, and of what is made after them once for all layers: eager attention's
        additive mask, rotary tables. What these are added to, or multiply, has at least as many."""
        return 4 if self.upcast_head else self.weights

    def trains(self, module: str) -> bool:
        """Whether the weights of the module itself have a gradient."""
        return not self.frozen or module in self.trained_modules


_compared = attrgetter(*names(Recipe))


@lru_cache(maxsize=1024)
def _one(recipe: Recipe) -> Recipe:
    """The first of all equal recipes, so that what is counted for them is found without comparing them."""
    return recipe


@lru_cache(maxsize=1024)
def evaluating(recipe: Recipe) -> Recipe:
    """The same in the model's evaluation mode, without dropout."""
    lora = replace(recipe.lora, dropout=False) if recipe.lora is not None else None
    return _one(replace(recipe, dropout=False, lora=lora))


@lru_cache(maxsize=1024)
def untrained(recipe: Recipe) -> Recipe:
    """The same with nothing of the model's own to train, and no graph that could hold anything."""
    return _one(replace(recipe, frozen=True, trained_modules=(), holds_inputs=False))


@lru_cache(maxsize=1024)
def all_trained(recipe: Recipe) -> Recipe:
    """The same with a gradient for every weight."""
    return _one(replace(recipe, frozen=False))


@lru_cache(maxsize=1024)
def left_alone(recipe: Recipe, trained: tuple[str, ...] = ()) -> Recipe:
    """The same with weights that get no gradient, but those of the modules ``trained``."""
    return _one(replace(recipe, frozen=True, trained_modules=trained))


@lru_cache(maxsize=1024)
def with_beside(recipe: Recipe, beside: Beside) -> Recipe:
    """The same with something beside the text that layers attend to."""
    return _one(replace(recipe, beside=beside))


_OF: Memo[Recipe] = Memo()


def of(spec: Spec) -> Recipe:
    """The recipe of a run; the parts of an estimate ask for it one after the other."""
    return _OF.get(on_any_gpu(spec), "", lambda: _one(_made(spec)))


def _casts_frozen(spec: Spec) -> bool:
    """Whether a frozen base is of one 16-bit type and autocast of the other: each product casts its weight and saves
    the copy, and sums with what comes out of it are fp32 (``torch.promote_types(bfloat16, float16)``)."""
    halves = {model_dtype(spec), spec.mixed_precision}
    alone = spec.engine in ("single", "ddp") and spec.quantization is None
    return alone and spec.method == "lora" and halves == {"bf16", "fp16"}


LOSS_AROUND = frozenset({"blip-2", "instructblip"})
"""Model types whose class makes the loss of what a whole language model with its head gave."""


def _made(spec: Spec) -> Recipe:
    """The recipe of a run.

    DeepSpeed runs no autocast over its half-precision module unless ``torch_autocast`` asks for one; FSDP with mixed
    precision computes on half-precision unsharded weights inside the trainer's autocast (accelerate
    ``fsdp_utils.py``, DeepSpeed ``engine.py``). Elsewhere the weights are those of the module (:func:`model_dtype`):
    frozen ones of one 16-bit type under autocast to the other are cast as fp32 ones are.
    """
    half = spec.mixed_precision != "no"
    weights = 2 if spec.engine == "fsdp" and half else DTYPE_BYTES[model_dtype(spec)]
    autocast = half
    if spec.engine == "deepspeed":
        autocast = half and bool(section(spec.deepspeed_config, "torch_autocast").get("enabled"))
        if autocast:
            weights = 4
    elif autocast and _casts_frozen(spec):
        weights = 4
    lora = None
    if spec.method == "lora":
        targets = _adapted(spec)
        drops = spec.lora_dropout > 0 and spec.trainer != "ppo"
        experts = fused(spec.facts.model_type, targets) if has_fused_experts(spec) else None
        lora = Lora(spec.lora_rank, targets, DTYPE_BYTES[adapter_dtype(spec)], drops, spec.use_dora, experts)
    return Recipe(
        weights=weights,
        autocast=autocast,
        attention=attention_of(spec),
        padded=spec.padded_batches or masks_images(spec),
        frozen=spec.method == "lora",
        quantized=spec.quantization is not None,
        lora=lora,
        trained_modules=spec.lora_modules_to_save if spec.method == "lora" else (),
        dropout=spec.trainer != "ppo",  # TRL ``disable_dropout_in_model``
        holds_inputs=_holds_inputs(spec),
        copies_dequantized=spec.front_end == "litgpt" and spec.weights_dtype == "bf16",
        quantized_experts=_dequantized(spec),
        unpacked=unpacked(spec, model_dtype(spec), autocast),
        litgpt=spec.front_end == "litgpt" and spec.facts.moe is None,
        kernels=frozenset(spec.fused_kernels) | (LIGER_BRINGS if spec.loss == "liger" else frozenset()),
        upcast_norms=kbit_upcast(spec) != "none",
        upcast_head=kbit_upcast(spec) == "all",
        liger=spec.loss == "liger" and any(name in spec.versions for name in ("liger_kernel", "liger-kernel")),
        transformers=transformers_version(spec),
        wrapped_loss=spec.facts.model_type in WRAPS,
        tensor_parallel=spec.tensor_parallel if splits_head(spec) else 1,
        logit_parts=logit_parts(spec),
        expert_parallel=spec.expert_parallel,
        ulysses=spec.sequence_parallel if spec.engine == "deepspeed" else 1,
        ring=spec.sequence_parallel if spec.engine != "deepspeed" else 1,
        copies_states=caches(spec) and transformers_version(spec) >= COPIED_STATES,
        returns_states=caches_text(spec),
        sdpa=best_sdpa(spec),
        fp32_out=keeps_fp32(spec),
        upcast_outputs=spec.upcast_outputs,
        keeps_scores=not since(spec, "torch", (1, 11)),
        loss_around=spec.facts.model_type in LOSS_AROUND,
    )


def _dequantized(spec: Spec) -> int:
    """Bytes of a dequantised element of experts: 4 bits give the weights' dtype again, 8 bits fp32 (bitsandbytes
    ``_ops.py:int8_vectorwise_dequant``)."""
    if not quantises_fused_experts(spec):
        return 0
    return 4 if spec.quantization == "int8" else DTYPE_BYTES[model_dtype(spec)]


def _adapted(spec: Spec) -> tuple[str, ...] | None:
    """The modules with adapters by the names that the layers have here; None for all linear ones.

    A model whose layers are the nearest family's has modules of other names: what its targets leave out is
    not known.
    """
    targets = targets_of(spec)
    if isinstance(targets, str):
        return None
    return targets if spec.front_end == "litgpt" or has_module(spec.facts, targets) else None


def best_sdpa(spec: Spec) -> Sdpa:
    """Which of SDPA's kernels takes half-precision tensors on the run's GPU; the newest where nobody names it.

    Torch's own FlashAttention wants the GPUs that FlashAttention 2 does. On older ones there is the memory-efficient
    kernel, which knows no groups of heads and takes fp16 alone: the rest runs torch's reference path
    (``sdp_utils.cpp`` ``check_flash_attention_hardware_support``, ``can_use_mem_efficient_attention``).
    """
    if spec.gpu is None or spec.gpu.flash_attention_2 is not False:
        return "flash"
    half = spec.mixed_precision if spec.mixed_precision != "no" else spec.weights_dtype
    return "math" if half == "bf16" else "efficient"


COPIED_STATES = (4, 56)
"""The first transformers whose cache is put together with an empty tensor, a copy of the first keys and values
(``cache_utils.py:DynamicLayer.update``); before, it held them as they were."""


CACHE_OFF = (5, 0)
"""The first transformers version whose Trainer sets ``config.use_cache`` (``TrainingArguments.use_cache``, off)."""

SFT_CACHE_OFF = (0, 22)
"""The first TRL whose SFT trainer asks the model for no cache (trl#3891)."""


def wants_cache(spec: Spec) -> bool:
    """Whether ``use_cache`` is on: as stated, else by the model's config, which nobody overrules in older versions,
    nor in a loop of the script's own."""
    if "use_cache" in spec.stated:
        return spec.use_cache
    if spec.facts.config.get("use_cache") is False:
        return False
    by_sft = release(spec.versions.get("trl")) or (0,)
    by_config = transformers_version(spec) < CACHE_OFF and by_sft < SFT_CACHE_OFF
    return spec.use_cache or by_config or spec.loop_outputs != "dropped"


def caches(spec: Spec) -> bool:
    """Whether the model returns keys and values while it trains, because somebody wants ``use_cache``.

    Checkpointing turns it off, TRL's preference trainers do so themselves, LitGPT's models have none.
    """
    return (
        wants_cache(spec)
        and spec.gradient_checkpointing is False
        and spec.trainer in OWN_LOSS
        and spec.front_end != "litgpt"
    )


HANDS_ON = frozenset(
    {
        "gemma4",
        "gemma4_unified",
        "lighton_ocr",
        "llava_next",
        "llava_next_video",
        "llava_onevision",
        "mistral3",
        "smolvlm",
        "video_llava",
    }
)
"""Vision-language models whose forward asks its own config for ``use_cache`` (``merge_with_config_defaults``), which
the Trainer turns off, and hands it on."""

ASKS_ITSELF = frozenset({"idefics2", "idefics3"})
"""Those that have always done so."""


def caches_text(spec: Spec) -> bool:
    """Whether a vision-language model's text has a cache though nobody asks for one: its ``text_config`` decides."""
    kind = spec.facts.model_type
    asks = kind in ASKS_ITSELF or (kind in HANDS_ON and transformers_version(spec) >= (5, 0))
    return spec.facts.vision is not None and not asks


SEES_BOTH_WAYS = frozenset({"gemma3", "paligemma"})
"""Model types whose tokens of one image attend to each other in both directions, through a mask of their own for every
sequence (``token_type_ids``); FlashAttention takes no such mask and does without."""


def masks_images(spec: Spec) -> bool:
    """Whether every sequence has a mask because of its images, so that SDPA cannot take FlashAttention's kernel.

    Gemma 4 without encoders makes one for text alone, too (``block_sequence_ids``), unless its config says otherwise.
    """
    if spec.facts.model_type == "gemma4_unified":
        return bool(spec.facts.text_config.get("use_bidirectional_attention") == "vision")
    return bool(spec.images) and spec.facts.model_type in SEES_BOTH_WAYS


def attention_of(spec: Spec) -> Attention:
    """The attention kernel that the model runs: eager in the place of SDPA where transformers' class has none.

    A kernel that somebody states is one of the version that is installed, which may be another than the newest: the run
    would not start otherwise. LitGPT has models of its own.
    """
    if spec.attention != "sdpa" or spec.front_end == "litgpt":
        return spec.attention
    code = language(spec.facts).code
    torch = release(spec.versions.get("torch"))
    has = has_sdpa(code) if "attention" in spec.stated else runs_sdpa(code, transformers_version(spec), torch)
    return "sdpa" if has else "eager"


WRAPS = frozenset({"internvl_chat"})
"""Model types whose own class computes the loss from the logits of a whole language model inside it."""

LIGER_BRINGS = frozenset({"rms_norm"})
"""Kernels that come with Liger's loss in every trainer that offers it.

transformers' ``use_liger_kernel``, TRL, axolotl, LLaMA-Factory and FOAK all swap RMSNorm as well (Liger
``apply_liger_kernel_to_*``, ``rms_norm=True``)."""

FREES_INPUTS = (0, 43, 2)
"""The first bitsandbytes whose 4-bit product does not store its input on the autograd node (``MatMul4Bit``)."""


def _holds_inputs(spec: Spec) -> bool:
    """Whether 4-bit layers keep their inputs until the graph goes: ``ctx.tensors = (A, B)``, an attribute of the node
    that the engine does not release with what is saved."""
    return (spec.quantization or "").startswith("nf4") and not since(spec, "bitsandbytes", FREES_INPUTS)
