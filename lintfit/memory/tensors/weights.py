"""Parameter tensors as a rank holds them before any data-parallel sharding: shape, dtype, bytes.

Everything follows from ``ModelFacts.tensors``: totals, quantised bytes, units of FSDP. Sizes are bytes of torch's
caching allocator, which hands out blocks of 512 bytes (``kMinBlockSize``, c10/cuda/CUDACachingAllocator.h).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Literal

from lintfit.catalog.facts import ModelFacts, Tensor
from lintfit.frozen import field, frozen, replace
from lintfit.memo import Memo
from lintfit.memory.spec import DTYPE_BYTES, SCORING, Dtype, Spec
from lintfit.memory.tensors.quantization import KEPT
from lintfit.memory.tensors.tensor_parallel import share
from lintfit.memory.versions import GROUPED_EXPERTS, since, transformers_version

BLOCK = 512
"""Bytes: torch's allocator rounds every block up to a multiple of this."""

OTHER_TABLES = (
    "embed_audio", "embed_vision", "per_layer", "position", "wpe", "pos_embed", "rel_embeddings",
    "relative_attention_bias", "tile_embedding", "token_type",
)  # fmt: skip
"""Parts of the names of embeddings that are not of words."""

UNCAST_SINCE = (0, 19, 2)
"""The first DeepSpeed that leaves parameters alone which are added to a model of ``zero.Init``."""


def rounded(size: int) -> int:
    """Bytes that torch's CUDA allocator counts for a tensor of ``size`` bytes."""
    return -(-size // BLOCK) * BLOCK


@frozen
class Weight:
    """One kind of parameter tensor on this rank (after tensor, pipeline and expert parallelism).

    ``shape`` is in elements; ``storage`` is the bytes of one copy as it lies in memory (less than
    ``numel * itemsize`` where it is quantised).
    """

    name: str
    shape: tuple[int, ...]
    copies: int
    dtype: Dtype
    trainable: bool
    storage: int
    role: str
    where: str
    per_layer: float = 0.0
    """Copies in one (the largest) decoder layer; 0 outside the layers."""
    unreached: bool = False
    """Whether it is trained in name only: see :data:`UNREACHED`. ``trainable`` says no."""

    numel: int = field(init=False)
    bytes: int = field(init=False)
    """Bytes of all copies as separate tensors."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "numel", math.prod(self.shape))
        object.__setattr__(self, "bytes", rounded(self.storage) * self.copies)

    @property
    def total(self) -> int:
        return self.numel * self.copies

    @property
    def words(self) -> bool:
        """Whether it is the table of words, which a head may share; others are of positions, or give every layer an
        input of its own."""
        return self.role == "embedding" and not any(part in self.name for part in OTHER_TABLES)

    @property
    def quantised(self) -> bool:
        return self.storage < self.numel * DTYPE_BYTES[self.dtype]

    @property
    def decays(self) -> bool:
        """Whether HF's Trainer puts it into the group with weight decay (all but norms and biases)."""
        return self.role not in ("norm", "bias")

    def cast(self, dtype: Dtype) -> Weight:
        """The same weight in another dtype; quantised storage is left as it is."""
        if self.dtype == dtype or self.quantised:
            return self
        return replace(self, dtype=dtype, storage=self.numel * DTYPE_BYTES[dtype])


@frozen
class Inventory:
    """All parameter tensors of one rank. Element counts and byte totals are sums over copies."""

    weights: tuple[Weight, ...]
    trainable: int
    frozen: int
    trainable_bytes: int
    frozen_bytes: int
    decayed: int
    """Trainable elements with weight decay: the larger of the optimizer's two parameter groups."""
    largest_trainable: int
    """Elements of the largest trainable tensor."""
    largest: int
    """Elements of the largest tensor."""
    trainables: tuple[Weight, ...]

    @classmethod
    def of(cls, weights: tuple[Weight, ...]) -> Inventory:
        trainable = frozen = trainable_bytes = frozen_bytes = decayed = largest = largest_trainable = 0
        for weight in weights:
            numel, size = weight.numel * weight.copies, weight.bytes
            largest = max(largest, weight.numel)
            if weight.trainable:
                trainable += numel
                trainable_bytes += size
                largest_trainable = max(largest_trainable, weight.numel)
                if weight.decays:
                    decayed += numel
            else:
                frozen += numel
                frozen_bytes += size
        trained = tuple(weight for weight in weights if weight.trainable)
        return cls(
            weights, trainable, frozen, trainable_bytes, frozen_bytes, decayed, largest_trainable, largest, trained
        )

    @property
    def bytes(self) -> int:
        return self.trainable_bytes + self.frozen_bytes

    def cast(self, dtype: Dtype) -> Inventory:
        """All unquantised tensors in one dtype, as ``model.bfloat16()`` makes them."""
        if all(weight.dtype == dtype for weight in self.weights):
            return self
        return Inventory.of(tuple(weight.cast(dtype) for weight in self.weights))


_COUNTS: Memo[int] = Memo()


def parameter_count(facts: ModelFacts) -> int:
    """``facts.parameters``, added up once."""
    return _COUNTS.get(facts, "", lambda: facts.parameters)


def loaded_parameters(spec: Spec) -> int:
    """Parameters that a process reads before training: the model's, and those of all models beside PPO's policy.

    A reference beside adapters is one that the trainer is handed, read before the trainer moves the policy. The one
    that TRL makes itself is read behind that (``DPOTrainer.__init__``, 1.16).
    """
    policy = parameter_count(spec.facts)
    if spec.trainer != "ppo":
        return 2 * policy if spec.reference_model and spec.method == "lora" else policy
    beside = (spec.reward_model or spec.facts, value_facts(spec))
    reference = policy if spec.reference_model else 0
    return policy + reference + sum(parameter_count(facts) for facts in beside)


def loaded_dtype(spec: Spec) -> Dtype:
    """dtype of the copy that a rank holds right after loading, before the engine casts it."""
    return spec.full_load_dtype or spec.weights_dtype


def model_dtype(spec: Spec) -> Dtype:
    """dtype of the module's parameters in training.

    DeepSpeed casts the module to the enabled precision (``engine.py:_configure_distributed_model``). Where none
    is enabled, ``zero.Init`` makes fp32 whatever ``from_pretrained`` asks for
    (``partition_parameters.py:Init._set_dtype``) and the other stages keep the dtype as loaded.
    """
    if spec.engine != "deepspeed":
        return spec.weights_dtype
    if spec.mixed_precision != "no":
        return spec.mixed_precision
    return "fp32" if spec.made_in_parts else spec.weights_dtype


def adapter_dtype(spec: Spec) -> Dtype:
    """dtype of LoRA weights: DeepSpeed's cast of the module takes the adapters along.

    Since 0.19.2 not where ``zero.Init`` made the model: its parameters have the enabled precision already, so that the
    cast is left out, and PEFT's adapters stay what they are (``engine.py:_cast_module_mixed_precision``, #8066).
    """
    if spec.engine != "deepspeed" or spec.mixed_precision == "no":
        return spec.lora_dtype
    skips = spec.made_in_parts and since(spec, "deepspeed", UNCAST_SINCE)
    return spec.lora_dtype if skips else spec.mixed_precision


def trained_dtype(spec: Spec) -> Dtype:
    """dtype of what the optimizer is given: the adapters', or the module's.

    PEFT keeps adapters of half-precision models in fp32 (``cast_adapter_dtype``), and where no precision is enabled
    DeepSpeed leaves them so: its flat buffers then take the dtype of the first trained parameter (stage_1_and_2.py
    ``self.dtype``).
    """
    return adapter_dtype(spec) if spec.method == "lora" else model_dtype(spec)


def kbit_upcast(spec: Spec) -> Literal["none", "norms", "all"]:
    """Which unquantised weights of a bitsandbytes base are fp32; ``none`` where nobody said so.

    DeepSpeed casts them back to its half precision; TRL leaves sharded models alone; PEFT leaves GPTQ's alone
    (``peft/utils/other.py:prepare_model_for_kbit_training``).
    """
    return spec.kbit_upcast or "none" if keeps_upcast(spec) else "none"


def keeps_upcast(spec: Spec) -> bool:
    """Whether unquantised weights that somebody cast to fp32 train so."""
    kept = spec.engine in ("single", "ddp") and spec.weights_dtype != "fp32"
    return kept and spec.quantization in ("nf4", "nf4-double", "int8")


UPCASTS_QUANTISED_BEFORE = (5, 0)
"""The transformers version before which modules that a class keeps in fp32 are so in every quantised model; since, in
fp16 models alone (``_get_dtype_plan``)."""


def keeps_fp32(spec: Spec) -> bool:
    """Whether what the model's class keeps from a quantiser, and from fp16, is in fp32 (:data:`.quantization.KEPT`).

    DeepSpeed's half precision casts it like the rest.
    """
    if spec.facts.model_type not in KEPT or spec.engine not in ("single", "ddp") or spec.weights_dtype == "fp32":
        return False
    old = spec.quantization is not None and transformers_version(spec) < UPCASTS_QUANTISED_BEFORE
    return old or spec.weights_dtype == "fp16"


def local_tensors(spec: Spec) -> Iterator[tuple[Tensor, float]]:
    """The model's own tensors as this rank holds them, each with its copies in one decoder layer.

    Tensor parallelism splits matrices over its ranks (:mod:`.tensor_parallel`); expert parallelism splits the experts;
    pipeline parallelism splits the layers. A model that scores has one row in the place of the head
    (``AutoModelForSequenceClassification``).
    """
    facts, tensor, pipeline = spec.facts, spec.tensor_parallel, spec.pipeline_parallel
    dropped = _not_on_stage(spec) if pipeline > 1 else ()
    if spec.trainer == "ppo":
        yield from _with_value_model(spec)
        return
    for kind in facts.tensors:
        if kind.where in dropped or (kind.role == "lm_head" and spec.trainer in SCORING):
            continue
        shape, copies = kind.shape, kind.copies
        if kind.role == "expert" and spec.expert_parallel > 1:
            if len(shape) == 3:
                shape = (-(-shape[0] // spec.expert_parallel), *shape[1:])
            else:
                copies = -(-copies // spec.expert_parallel)
        if tensor > 1:
            shape = _split(shape, *share(spec, kind))
        layers = facts.moe.layers if facts.moe and kind.role in ("expert", "router") else facts.layers
        per_layer = copies / max(1, layers) if kind.where == "layer" else 0.0
        if kind.where == "layer":
            copies = -(-copies // pipeline)
        changed = shape != kind.shape or copies != kind.copies
        yield (replace(kind, shape=shape, copies=copies) if changed else kind), per_layer
    if spec.trainer in SCORING and "head" not in dropped:
        yield Tensor("score.weight", (1, facts.hidden), role="lm_head", where="head"), 0.0


UNREACHED = {
    "chameleon": ("vqmodel",),
    "janus": ("generation_aligner", "generation_embeddings", "generation_head", "vqmodel"),
    **dict.fromkeys(("deepseek_v32", "glm_moe_dsa", "minimax_m3_vl_text"), ("indexer",)),
    "esm": ("contact_head",),
    **dict.fromkeys(("marian", "pegasus"), ("embed_positions",)),
}
"""Modules of a model type that run without a graph, or whose result has none: no gradient reaches their weights, which
train in name only. Positions by sines are parameters that their class freezes."""

VALUE = "value_model."
"""What the names of the value model's tensors begin with (TRL ``PolicyAndValueWrapper``)."""


def value_facts(spec: Spec) -> ModelFacts:
    """The architecture of PPO's value model: the reward model's, and the policy's, where nothing else is said."""
    return spec.value_model or spec.reward_model or spec.facts


def _with_value_model(spec: Spec) -> Iterator[tuple[Tensor, float]]:
    """PPO's policy and value model, which are one module; the value model has one row in the place of the head.

    Only the model with the larger layer counts for what one layer is.
    """
    policy, value = spec.facts, value_facts(spec)
    value_is_larger = _layer_size(value) > _layer_size(policy)
    for facts, values in ((policy, False), (value, True)):
        counts = values == value_is_larger
        for kind in facts.tensors:
            if values and kind.role == "lm_head":
                continue
            layers = facts.moe.layers if facts.moe and kind.role in ("expert", "router") else facts.layers
            per_layer = kind.copies / max(1, layers) if kind.where == "layer" and counts else 0.0
            yield (replace(kind, name=f"{VALUE}{kind.name}") if values else kind), per_layer


def _layer_size(facts: ModelFacts) -> float:
    return sum(kind.total for kind in facts.tensors if kind.where == "layer") / facts.layers


def _not_on_stage(spec: Spec) -> tuple[str, ...]:
    """Where the tensors stand that a pipeline's stage has not: embedding, or head and last norm.

    A tied head is a copy of the embedding on the last stage (DeepSpeed ``TiedLayerSpec``).
    """
    facts = spec.facts
    if spec.pipeline_stage == "first":
        return ("head", "final")
    if spec.pipeline_stage == "last":
        return () if facts.tied else ("embedding",)
    first = sum(kind.total for kind in facts.tensors if kind.where == "embedding")
    last = sum(kind.total for kind in facts.tensors if kind.where in ("head", "final"))
    return ("head", "final") if first >= last else ("embedding",)


def _split(shape: tuple[int, ...], part: int, of: int) -> tuple[int, ...]:
    axis = max(0, len(shape) - 2)
    return (*shape[:axis], -(-shape[axis] * part // of), *shape[axis + 1 :])


ALWAYS_FUSED = frozenset(
    {
        "dbrx",
        "gemma4",
        "gemma4_text",
        "gpt_oss",
        "granitemoe",
        "granitemoe_swa",
        "granitemoehybrid",
        "granitemoeshared",
        "jetmoe",
        "llama4",
        "llama4_text",
        "qwen3_vl_moe",
    }
)
"""Model types whose experts were one parameter in transformers 4, too (``GptOssExperts``,
``GraniteMoeParallelExperts``, ``Llama4TextExperts``, ``Qwen3VLMoeTextExperts``)."""


def has_separate_experts(spec: Spec) -> bool:
    """Whether experts are linear layers of their own, as most were before transformers 5 fused them."""
    return transformers_version(spec) < GROUPED_EXPERTS and spec.facts.model_type not in ALWAYS_FUSED


def quantises_fused_experts(spec: Spec) -> bool:
    """Whether experts that are one parameter are quantised in it, and dequantised as one."""
    return spec.quantized_experts and has_fused_experts(spec)


def has_fused_experts(spec: Spec) -> bool:
    """Whether a layer's experts are one parameter."""
    return spec.facts.moe is not None and not has_separate_experts(spec)
