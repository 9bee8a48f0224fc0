"""What to plan for on top of what is counted at a moment: gaps, and what code that the spec does not name may keep."""

from __future__ import annotations

from collections.abc import Iterable

from lintfit.frozen import frozen
from lintfit.memory.activations.gptq import auto_gptq
from lintfit.memory.activations.recipe import of
from lintfit.memory.engines.states import States
from lintfit.memory.framework import gathers, side_streams
from lintfit.memory.loss.losses import own_loss
from lintfit.memory.loss.preference import loss_path
from lintfit.memory.result import ALLOCATED, Components, Moment
from lintfit.memory.spec import GIB, Spec
from lintfit.memory.tensors.parameters import inventory
from lintfit.memory.tensors.tensor_parallel import logit_parts
from lintfit.memory.tensors.weights import parameter_count

FRAGMENTATION = 0.45
"""What the caching allocator may need on top of the memory that comes and goes, as a share of it, to run at all.

The worst of 339 replayed allocation logs needed 1.26 times its allocated peak (median 1.03, 90th percentile 1.14), a
model of large vocabulary whose logits leave blocks of many sizes; there 0.58 of the peak and more comes and goes.
Parameters, master weights and optimizer states are allocated once, one after the other, and leave no gaps. Seven runs
through the simulated allocator (``bench/allocator.py``) need up to 0.44, of batches of one length and of any.
"""

STEP_GAPS = 0.15
"""The same for the step of one process or DDP. Gradients and the step's copies have the sizes of the parameters, every
step anew, and go into each other's blocks: Llama-3-8B whole on an A100-80GB (fms) runs with 74.8 of 78.6 GiB allocated,
so that the 29.9 GiB that come and go leave gaps of 3.8 GiB at most."""

LASTING = ("parameters", "master_weights", "optimizer_states")

OLDER_LOSS = 14 / 12
"""transformers up to 4.48 holds 14 bytes of logits per token and vocabulary entry where later versions hold 12."""

GATHER_EXTRA = 3 * GIB
"""What runs that gather sharded parameters (ZeRO-3, FSDP) show beyond the sum of their parts: blocks that a side stream
gathers into cannot be used again until that stream has passed them. 16.3 GiB where formulas give 13 for Llama-3.1-8B
with ZeRO-3 and offload on 8 H200 (ml-engineering, DeepSpeed 0.19.2), 13 GB a GPU in LLaMA-Factory issue 5977. Of FSDP 1
the streams' own blocks are counted instead (:func:`.framework.side_streams`)."""

OVERFLOW_CHECK = 11
"""Bytes per element of the largest gradient while ZeRO-1 and 2 look for inf and nan: an fp32 copy, and isinf and isnan
of it with their union (DeepSpeed up to 0.19.6, ``stage_1_and_2.py:_has_inf_or_nan``; cheaper since)."""

HELD_CHUNKS = 6
"""Bytes an entry of logits whose chunks all stay: in half precision, and their log-softmax in fp32 (torchtune
``CEWithChunkedOutputLoss``; LitGPT's takes 8, in fp32 both)."""

DYNAMIC = 0.33
"""What Unsloth's dynamic checkpoints take on top of those that quantise every linear layer, at the most that was
published: 1.81 GB for 1.36 of Qwen2-VL-2B (unsloth.ai/blog/dynamic-4bit, which has under 10 % for larger models)."""


@frozen
class Extra:
    """Bytes that may come on top of what is counted, by what the spec leaves open."""

    gathers: int
    """Of gathering sharded parameters."""
    kept: int
    """What the passes may keep, by code that the spec does not name."""
    older: float
    """Share of the logits that an older transformers holds on top."""


def planned(spec: Spec, points: Iterable[Moment], held: States, chunks: int) -> int:
    """Bytes of torch's allocator to plan for: the most that any moment may come to.

    ``chunks``: bytes of logits that the loss may hold (:func:`held_chunks`).
    """
    ordered = sorted(points, key=ALLOCATED, reverse=True)
    gathered, streams = _gathers(spec, ordered)
    extra = Extra(gathered, chunks + _held_weights(spec), _older_loss(spec))
    high = _overflow_check(spec, held)
    for moment in ordered:
        # Most moments are far below the largest: what they could come to at most says so.
        if moment.phase == "initialize" or _ceiling(moment, extra) > high:
            high = max(high, _planned(spec, moment, held, extra))
    return high + streams


def _ceiling(moment: Moment, extra: Extra) -> float:
    """What :func:`_planned` does not exceed, but for what a flattening tries."""
    passing = moment.allocated + extra.gathers + extra.kept + moment.components.get("logits", 0) * extra.older
    return passing * (1 + FRAGMENTATION)


def _planned(spec: Spec, moment: Moment, held: States, extra: Extra) -> int:
    """Bytes to plan for at one moment: what lasts as it is, what comes and goes with the gaps that it leaves."""
    parts = moment.components
    lasting = _lasting(parts)
    if spec.zero_stage == 3:
        # One flat buffer that ZeRO-3 allocates when it initialises.
        lasting += min(parts.get("gradients", 0), held.backward_start.get("gradients", 0))
    passing: float = moment.allocated - lasting + extra.gathers
    if moment.phase == "initialize" and held.flattening is not None:
        # One block of the driver's own, made after the cache is emptied: there are no gaps to fit it into.
        flat = min(held.flattening.gpu, parts.get("temporaries", 0))
        tried = parts.get("parameters", 0) + held.flattening.perhaps
        return max(lasting + int((passing - flat) * (1 + FRAGMENTATION)) + flat, tried)
    if moment.phase == "step" and spec.engine in ("single", "ddp"):
        return lasting + int(passing * (1 + STEP_GAPS))
    passing += parts.get("logits", 0) * extra.older
    if moment.phase in ("forward", "backward"):
        passing += extra.kept
    return lasting + int(passing * (1 + FRAGMENTATION))


def _older_loss(spec: Spec) -> float:
    """Share of the logits that the loss of a transformers may hold on top, where its version is not stated."""
    if "transformers" in spec.versions or spec.loss != "full" or own_loss(spec.facts, of(spec)):
        return 0.0
    if loss_path(spec) == "tempered":
        return 0.0  # torchtune's own
    return OLDER_LOSS - 1


def held_chunks(spec: Spec) -> int:
    """Bytes of the chunks that a chunked loss may hold, where nobody says whose loss it is.

    TRL's never has more than a tile; torchtune and LitGPT make the logits in chunks and keep all of them.
    """
    said = "front_end" in spec.stated and spec.front_end != "torchtune"
    if spec.loss != "chunked" or spec.front_end == "litgpt" or said or "trl" in spec.versions:
        return 0
    return HELD_CHUNKS * spec.tokens // spec.sequence_parallel * spec.facts.vocab // logit_parts(spec)


def left_whole(spec: Spec) -> int:
    """Bytes that modules may need which a quantised checkpoint leaves in 16 bits, where its ``config.json`` alone says
    which those are."""
    stored = spec.facts.stored
    if stored is None or not stored.partly or spec.quantization is None:
        return 0
    return int(DYNAMIC * inventory(spec).frozen_bytes)


def _held_weights(spec: Spec) -> int:
    """Bytes of dequantised weights that autograd may keep for GPTQ, by the kernel, where a spec does not say whose.

    The Triton kernels dequantise once more in the backward. Those in plain torch multiply by a dequantised copy, which
    the graph saves: a layer's under checkpointing, else all; they shift through int32 (GPTQModel ``qlinear/torch.py``,
    AutoGPTQ's :mod:`lintfit.memory.activations.gptq`).
    """
    if not (spec.quantization or "").startswith("gptq") or auto_gptq(spec.versions) is not None:
        return 0
    quantised = [weight for weight in inventory(spec).weights if weight.quantised]
    largest = max((weight.numel for weight in quantised), default=0)
    if spec.gradient_checkpointing is not False:
        held = sum(weight.numel * weight.per_layer for weight in quantised)
    else:
        held = sum(weight.total for weight in quantised)
    return int(2 * held) + 4 * largest


def _lasting(parts: Components) -> int:
    return sum([parts.get(name, 0) for name in LASTING])


def _gathers(spec: Spec, ordered: list[Moment]) -> tuple[int, int]:
    """Bytes that gathering sharded parameters may take on top of what is counted, and those in the pools of FSDP 1's
    streams, which leave no gaps to anything else; ``ordered``: moments from the largest on."""
    if not gathers(spec):
        return 0, 0
    streams = side_streams(spec, tuple(ordered), ordered[0])
    return (min(GATHER_EXTRA, 4 * parameter_count(spec.facts)), 0) if streams is None else (0, streams)


def _overflow_check(spec: Spec, held: States) -> int:
    """Bytes to plan for while an older DeepSpeed checks the averaged gradients; 0 where that is cheap or not done."""
    if spec.engine != "deepspeed" or spec.zero_stage not in (1, 2) or "deepspeed" in spec.versions:
        return 0
    if spec.offload_optimizer != "none":
        return 0
    share = inventory(spec).trainable // spec.sharding_ranks
    largest = min(inventory(spec).largest_trainable, share)
    lasting = _lasting(held.step)
    passing = held.step.get("gradients", 0) + OVERFLOW_CHECK * largest
    return lasting + int(passing * (1 + FRAGMENTATION))
