"""How much slower a step gets: a first-order model, only ever quoted as a ratio of two of its results.

``docs/step-time.md`` has every term with its source. Compute, communication and offload are added up as if nothing
overlapped, which is the slower end of the truth for the plan that communicates more.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from lintfit.fit.hardware import Card, card_of
from lintfit.memory.activations.recipe import attention_of
from lintfit.memory.engines.host import ranks_per_node
from lintfit.memory.engines.zero_config import zero_config
from lintfit.memory.spec import DTYPE_BYTES, Spec
from lintfit.memory.tensors.parameters import inventory

UTILISATION = 0.4
"""Share of peak FLOPS that fine-tuning reaches; the usual range is 0.3 to 0.5 (Narayanan et al. 2021, table 1)."""

NF4_SLOWDOWN = 1.4
"""Time with nf4 weights over that with bf16 weights: LoRA on one A10G takes 1.39 (Llama-2-7B), 1.44 (Mistral-7B) and
1.37 (Gemma-2B) times as long in LitGPT's own table (``config_hub/finetune/README.md``, 0.5.13)."""

EAGER_BYTES = 20
"""Bytes that eager attention reads and writes for each score: product, mask, fp32 softmax and cast in the forward pass,
and as much again in the backward pass (``eager_attention_forward`` of transformers' models)."""

NETWORK_BYTES_PER_S = 12e9
"""What goes in or out of a machine where there are several: one 100 Gbit/s adapter, which nobody states, at NCCL's
``NET_BW`` (``src/graph/topo.h``, 2.30)."""
HOST_BYTES_PER_S = 47e9
"""Memory bandwidth that DeepSpeedCPUAdam sees on a host: 28 bytes for each parameter of Llama-2-7B in the 4 s that
DeepSpeed reports beside four A100 (``blogs/deepspeed-zenflow``). Nobody states the host."""
NVME_READ, NVME_WRITE = 10e9 / 4, 5e9 / 4
"""Bytes a second of one NVMe drive: a quarter of what DeepSpeed's own measurement has on four (``blogs/deepnvme``)."""
ADAM_BYTES = 28
"""fp32 master, two moments and gradient read, three of them written back, for each parameter."""
STATE_BYTES = 12
"""The part of them that lies with the optimizer: master and two moments."""
BUCKET_SECONDS = 130e-6
"""What a collective takes longer than its bytes at full bandwidth: for 32 MiB on eight GPUs 189 microseconds on A100,
76 on H100 (all-reduce in Azure's AI-benchmarking-guide, 2024)."""

DDP_BUCKET = 25 * 2**20
"""Bytes of ``DistributedDataParallel``'s ``bucket_cap_mb``."""

_GIGA, _TERA = 1e9, 1e12


def step_seconds(spec: Spec) -> float:
    """Seconds that one optimizer step of one rank takes, in the model above. Only ratios of it mean anything."""
    return in_all(arithmetic(spec), rest(spec))


class Rest(NamedTuple):
    """Seconds of a step beside the arithmetic. Of what passes in a step only the accumulation decides about them."""

    update: float
    communication: float
    offload: float


def in_all(computing: float, beside: Rest) -> float:
    """Seconds of a step from its two parts."""
    return computing + beside.update + beside.communication + beside.offload


def arithmetic(spec: Spec) -> float:
    """Seconds of the forward and backward passes of a step."""
    return _compute(spec, card_of(spec))


def rest(spec: Spec) -> Rest:
    """Seconds of the optimizer, of communication and of offload."""
    card = card_of(spec)
    return Rest(_update(spec, card), _communication(spec, card), _offload(spec, card))


def arithmetic_of(spec: Spec) -> tuple[Any, ...]:
    """What :func:`arithmetic` depends on beside batch, tokens, recomputation, attention, model and GPUs."""
    trained = (spec.method, spec.lora_rank, spec.lora_targets, spec.quantization)
    return (*trained, spec.weights_dtype, spec.mixed_precision)


def relative_step_time(before: Spec, after: Spec) -> float:
    """The ratio of the step times for the same number of tokens, rounded as it is quoted."""
    return rounded(step_seconds(after) / after.seq_len / (step_seconds(before) / before.seq_len))


def rounded(ratio: float) -> float:
    """A ratio with the digits that the model can answer for: tenths, above 3 halves, above 10 whole numbers."""
    if ratio >= 10:
        return float(round(ratio))
    return round(2 * ratio) / 2 if ratio >= 3 else round(ratio, 1)


def _compute(spec: Spec, card: Card) -> float:
    """Forward and backward of all micro-batches of a step: arithmetic, or reading the weights where tokens are few."""
    facts, tokens = spec.facts, spec.tokens
    peak = card.single if spec.mixed_precision == "no" and spec.weights_dtype == "fp32" else card.half
    rate = peak * _TERA * UTILISATION
    if spec.quantization is not None and spec.quantization.startswith("nf4"):
        rate /= NF4_SLOWDOWN
    recompute = 1 if spec.gradient_checkpointing else 0
    frozen = max(0, facts.parameters - inventory(spec).trainable)
    active = facts.parameters - _idle(spec)
    flops: float = (6 + 2 * recompute) * active - 2 * min(frozen, active)
    flops += (3 + recompute) * _attention_flops(spec)
    seconds = flops * tokens / rate
    if attention_of(spec) == "eager":
        scores = facts.layers * facts.heads * tokens * spec.seq_len
        seconds += EAGER_BYTES * scores * (1 + recompute / 2) / (card.memory * _GIGA)
    reading = (2 + recompute) * DTYPE_BYTES[spec.weights_dtype] * facts.parameters / (card.memory * _GIGA)
    shared = spec.tensor_parallel * spec.pipeline_parallel * spec.sequence_parallel
    return max(seconds, reading) * spec.gradient_accumulation_steps / shared


def _idle(spec: Spec) -> int:
    """Parameters of the experts that a token does not visit."""
    moe = spec.facts.moe
    if moe is None or not moe.experts:
        return 0
    matrices = 3 if spec.facts.gated else 2
    return (moe.experts - moe.top_k) * matrices * spec.facts.hidden * moe.intermediate * moe.layers


def _attention_flops(spec: Spec) -> float:
    """FLOPs a token of one forward pass for the scores and their product with the values, causal halves left out."""
    facts = spec.facts
    width = facts.heads * facts.head_dim
    window = facts.sliding_window or spec.seq_len
    local = min(facts.layers, facts.sliding_layers)
    reach = (facts.layers - local) * spec.seq_len + local * min(spec.seq_len, window)
    causal = 1.0 if attention_of(spec) == "eager" else 0.5
    return 4 * width * reach * causal


def _update(spec: Spec, card: Card) -> float:
    """The optimizer's step on the GPU: reading and writing its states, and one launch for each sub-group."""
    if spec.offload_optimizer != "none" or (spec.fsdp is not None and spec.fsdp.cpu_offload):
        return 0.0
    return ADAM_BYTES * _own(spec) / (card.memory * _GIGA)


def _own(spec: Spec) -> float:
    """Trainable parameters whose states one rank keeps."""
    trainable = inventory(spec).trainable
    return trainable / spec.data_parallel if spec.zero_stage or spec.engine == "fsdp" else float(trainable)


def _communication(spec: Spec, card: Card) -> float:
    """Gradients reduced once a step (ZeRO-2: at every micro-batch), and where parameters are sharded a gather in the
    forward and mostly one in the backward pass of every micro-batch."""
    ranks = spec.data_parallel
    if ranks < 2:
        return 0.0
    width = 2 if spec.mixed_precision != "no" or spec.weights_dtype != "fp32" else 4
    if spec.engine in ("single", "ddp"):
        width = DTYPE_BYTES[spec.weights_dtype]
    trainable, micro_batches = inventory(spec).trainable, spec.gradient_accumulation_steps
    gathers = 2 if spec.zero_stage == 3 else spec.fsdp.gathers if spec.fsdp is not None else 0
    reduced, gathered = _buckets(spec, width)
    if gathers:
        elements = (trainable + gathers * spec.facts.parameters) * micro_batches
        started = (trainable / reduced + gathers * spec.facts.parameters / gathered) * micro_batches
    elif spec.zero_stage == 2:
        elements = trainable * (micro_batches + 1)
        started = elements / reduced
    else:
        elements = 2 * trainable
        started = trainable / reduced
    return elements * width * (ranks - 1) / ranks / _link(spec, card) + BUCKET_SECONDS * started


def _buckets(spec: Spec, width: int) -> tuple[float, float]:
    """Elements that one reduction and one gather move: the bucket of DDP or ZeRO, the layer that FSDP wraps."""
    if spec.engine == "deepspeed":
        config = zero_config(spec)
        return max(1, config.reduce_bucket), max(1, config.prefetch_bucket)
    if spec.engine == "fsdp":
        unit = spec.facts.parameters / (spec.facts.layers + 1)
        return unit, unit
    return DDP_BUCKET / width, DDP_BUCKET / width


def _link(spec: Spec, card: Card) -> float:
    """Bytes a second that each rank moves in a ring: the slowest link of it counts."""
    inside = card.nvlink or card.pcie / 2
    if spec.nodes > 1:
        return min(inside * _GIGA, NETWORK_BYTES_PER_S)
    return inside * _GIGA


def _offload(spec: Spec, card: Card) -> float:
    """Gradients go down at every micro-batch, updated weights come back, and the host's Adam works on all of a
    node's shards; offloaded parameters come up for every pass."""
    fsdp = spec.fsdp is not None and spec.fsdp.cpu_offload
    if spec.offload_optimizer == "none" and spec.offload_param == "none" and not fsdp:
        return 0.0
    own, pcie = _own(spec), card.pcie * _GIGA
    seconds = 0.0
    if spec.offload_optimizer != "none" or fsdp:
        moved = 2 * own * (spec.gradient_accumulation_steps + 1)
        on_node = own * ranks_per_node(spec)
        seconds += moved / pcie + ADAM_BYTES * on_node / HOST_BYTES_PER_S
        if spec.offload_optimizer == "nvme":
            seconds += STATE_BYTES * on_node * (1 / NVME_READ + 1 / NVME_WRITE)
    if spec.offload_param != "none" or fsdp:
        fetched = 2 * 2 * spec.facts.parameters / spec.data_parallel * spec.gradient_accumulation_steps
        seconds += fetched / pcie
        if spec.offload_param == "nvme":
            seconds += fetched * ranks_per_node(spec) / NVME_READ
    return seconds
