"""The range around the likely peak, from named uncertainties, and the verdict on a card.

``low`` is what must be there. ``high`` is what to plan for: everything below that may come on top. ``fits`` needs
``high`` to fit, ``does-not-fit`` needs ``low`` not to; what lies between is ``tight``.
"""

from __future__ import annotations

from dataclasses import replace
from operator import attrgetter

from lintfit.memory.activations import known
from lintfit.memory.activations.towers import counted as counted_images
from lintfit.memory.framework import context, gathers, nccl
from lintfit.memory.images import patches, unsaid, with_an_image, without_images
from lintfit.memory.moments import moments
from lintfit.memory.optimizers import counted
from lintfit.memory.parameters import inventory
from lintfit.memory.preference import FUSED
from lintfit.memory.result import Components, Moment, Range, Verdict
from lintfit.memory.rollout import vllm_bytes
from lintfit.memory.spec import DTYPE_BYTES, GIB, Spec
from lintfit.memory.states import States
from lintfit.memory.tensor_parallel import logit_parts
from lintfit.memory.weights import keeps_upcast, parameter_count
from lintfit.memory.zero_config import optimizer_name

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

DESKTOP = int(0.5 * GIB)
"""What a display server and other programs hold on a GeForce card; data-centre cards drive no screen."""

OLDER_LOSS = 14 / 12
"""transformers up to 4.48 holds 14 bytes of logits per token and vocabulary entry where later versions hold 12."""

GATHER_EXTRA = 3 * GIB
"""What runs that gather sharded parameters (ZeRO-3, FSDP) show beyond the sum of their parts: blocks that a side stream
gathers into cannot be used again until that stream has passed them. 16.3 GiB where formulas give 13 for Llama-3.1-8B
with ZeRO-3 and offload on 8 H200 (ml-engineering, DeepSpeed 0.19.2), 13 GB a card in LLaMA-Factory issue 5977."""

OVERFLOW_CHECK = 11
"""Bytes per element of the largest gradient while ZeRO-1 and 2 look for inf and nan: an fp32 copy, and isinf and isnan
of it with their union (DeepSpeed up to 0.19.6, ``stage_1_and_2.py:_has_inf_or_nan``; cheaper since)."""

HELD_CHUNKS = 6
"""Bytes an entry of logits whose chunks all stay: in half precision, and their log-softmax in fp32 (torchtune
``CEWithChunkedOutputLoss``; LitGPT's takes 8, in fp32 both)."""

UNSEEN = 2.0
"""Where even the parameters are those of a similar model, the peak is doubled and halved: the published errors of
estimators on models that they do not know are of this size."""

LONG_SEQUENCE = 131_072
"""Tokens of one rank beyond which no plain implementation trains: such runs tile the loss and the MLP, split the
sequence or offload checkpoints (ALST, arXiv 2506.13996: an 8B model ends at 32K on one H100 without), so only the
model states are certain."""

WHOLE_LOGITS = "1.13"
"""A TRL version whose trainers hold all logits of a micro-batch."""

WHOLE_SOFTMAX = "0.14"
"""A TRL version whose PPOTrainer holds a log-softmax of the whole response."""

EVALUATED = frozenset({"load", "initialize", "step", "save"})


def bounds(spec: Spec, points: tuple[Moment, ...], beside: Range, held: States) -> tuple[Range, tuple[str, ...]]:
    """Low, likely and high bytes of the peak, and the assumptions that the range rests on."""
    peak = max(points, key=lambda moment: moment.allocated)
    allocated = peak.allocated
    notes: list[str] = []
    low = allocated
    if spec.seq_len // spec.sequence_parallel > LONG_SEQUENCE and "sequence_parallel" not in spec.stated:
        low = max(moment.allocated for moment in points if moment.phase in EVALUATED)
        notes.append(
            f"sequence of {spec.seq_len} tokens on one GPU: such runs split or tile it, which the spec does not say; "
            "the low end counts the model states only"
        )
    if spec.front_end == "litgpt" and "front_end" not in spec.stated:
        low = min(low, _if_not_litgpt(spec, held))
        notes.append(_guessed_litgpt(spec))
    outside = context(spec).high + nccl(spec).high
    if spec.gpu is not None and "GeForce" in spec.gpu.name:
        outside += DESKTOP
    worst = points if known(spec.facts) else moments(_remote_code(spec), held)[0]
    if _may_hold_inputs(spec):
        worst = (*worst, *moments(_older_bitsandbytes(spec), held)[0])
    if spec.facts.vision is not None and spec.images != 0:
        seen = with_an_image(spec) if spec.images is None else spec
        if not counted_images(spec.facts):
            seen = _uncounted(seen)
            notes.append(
                f"the way from pixels to words is that of similar models, because nobody has counted that of "
                f"{spec.facts.model_type}: the low end counts text only, the high end more than likely"
            )
        if seen is not spec:
            worst = (*worst, *moments(seen if known(spec.facts) else _remote_code(seen), held)[0])
    if unsaid(spec) or (spec.images and spec.facts.vision is not None and not counted_images(spec.facts)):
        low = min(low, max(moment.allocated for moment in moments(without_images(spec), held)[0]))
    if unsaid(spec):
        notes.append(
            "images as large, or of as many tiles, as the model and the sequence let them be (image_patches or "
            "image_tiles would say); the low end counts text only"
        )
    if spec.trainer in FUSED and "trl" not in spec.versions:
        worst = (*worst, *moments(replace(spec, versions={**spec.versions, "trl": WHOLE_LOGITS}), held)[0])
        notes.append("the tiled loss of TRL 1.15 (version not stated; earlier ones hold whole logits)")
    if spec.trainer == "ppo" and "trl" not in spec.versions:
        worst = (*worst, *moments(replace(spec, versions={**spec.versions, "trl": WHOLE_SOFTMAX}), held)[0])
        notes.append("the PPOTrainer of TRL 0.15 and later (version not stated; earlier ones hold a log-softmax more)")
    gathered = _gathers(spec)
    upcast = _unquantised(spec) if _may_upcast(spec) else None
    chunks = _held_chunks(spec)
    if chunks:
        notes.append(
            f"a chunked loss that frees its chunks, as TRL's (whose it is is not stated; LitGPT's and torchtune's keep "
            f"{chunks / GIB:.1f} GiB of logits, which the high end counts)"
        )
    kept = chunks + _held_weights(spec)
    high = _overflow_check(spec, held)
    for moment in sorted(worst, key=_allocated, reverse=True):
        # Most moments are far below the largest: what they could come to at most says so.
        if upcast is not None or moment.phase == "initialize" or _ceiling(moment, gathered + kept) > high:
            high = max(high, _planned(spec, moment, held, gathered, kept, upcast))
    high += outside
    if not spec.facts.exact:
        high = max(high, int(UNSEEN * (allocated + beside.low)))
        low = int(low / UNSEEN)
    high = max(high + vllm_bytes(spec), allocated + beside.likely)
    if not counted(optimizer_name(spec)):
        low -= peak.components.get("optimizer_states", 0)
    return Range(low + beside.low, allocated + beside.likely, high), tuple(notes)


def _guessed_litgpt(spec: Spec) -> str:
    guess = "LitGPT, by its chunked loss in true half precision with nothing recomputed (not stated)"
    if not (spec.quantization or "").startswith("nf4"):
        return guess
    version = spec.versions.get("bitsandbytes", "of today")
    return f"{guess}; bitsandbytes {version}, where LitGPT before 0.5.5 pins 0.42, whose 4-bit layers keep their inputs"


def _if_not_litgpt(spec: Spec, held: States) -> int:
    """Peak allocated bytes at least, where a newer LitGPT or transformers and TRL train instead.

    Newer versions install a bitsandbytes that keeps no inputs; TRL may tie the head that LitGPT unties.
    """
    versions = {name: version for name, version in spec.versions.items() if name != "bitsandbytes"}
    head = spec.facts.vocab * spec.facts.hidden * DTYPE_BYTES[spec.weights_dtype]
    plain = replace(spec, front_end="transformers", versions=versions)
    least = max(moment.allocated for moment in moments(plain, held)[0]) - head
    if len(versions) == len(spec.versions) or not (spec.quantization or "").startswith("nf4"):
        return least  # nothing else asks for that version
    newer = moments(replace(spec, versions=versions), held)[0]
    return min(least, max(moment.allocated for moment in newer))


def _remote_code(spec: Spec) -> Spec:
    """A model whose own code nobody has counted may ignore gradient checkpointing and compute attention eagerly."""
    return replace(spec, gradient_checkpointing=False, attention="eager")


def _uncounted(spec: Spec) -> Spec:
    """A run with images whose encoder or connector is another model's: twice the patches; as :func:`_remote_code` where
    the model's own code chooses how to run."""
    if spec.facts.model_type in OUTSIDE:
        return _remote_code(spec)
    return replace(spec, image_patches=2 * patches(spec))


OUTSIDE = frozenset({"internvl_chat"})
"""Model types whose code looks for FlashAttention, goes over to eager scores without it, and checkpoints by itself."""


def _may_hold_inputs(spec: Spec) -> bool:
    """Whether a bitsandbytes of before 0.43.2 may run, whose 4-bit layers keep their inputs until the graph goes.

    Where layers are checkpointed, what was written for that version checkpoints reentrantly, which frees them.
    """
    unstated = "bitsandbytes" not in spec.versions and spec.gradient_checkpointing is False
    return unstated and (spec.quantization or "").startswith("nf4")


def _older_bitsandbytes(spec: Spec) -> Spec:
    return replace(spec, versions={**spec.versions, "bitsandbytes": "0.43.1"})


_allocated = attrgetter("allocated")


def _ceiling(moment: Moment, more: int) -> float:
    """What :func:`_planned` does not exceed where nothing is cast up, but for what a flattening tries."""
    return (moment.allocated + more + moment.components.get("logits", 0) * (OLDER_LOSS - 1)) * (1 + FRAGMENTATION)


def _planned(spec: Spec, moment: Moment, held: States, gathers: int, kept: int, upcast: int | None) -> int:
    """Bytes to plan for at one moment: what lasts as it is, what comes and goes with the gaps that it leaves.

    ``kept``: what the passes may keep on top of what is counted, by code that the spec does not name. ``upcast``: what
    the weights need on top where the norms, and with them the activations, may be fp32.
    """
    parts = moment.components
    lasting = _lasting(parts)
    if spec.zero_stage == 3:
        # One flat buffer that ZeRO-3 allocates when it initialises.
        lasting += min(parts.get("gradients", 0), held.backward_start.get("gradients", 0))
    passing: float = moment.allocated - lasting + gathers
    if moment.phase == "initialize" and held.flattening is not None:
        # One block of the driver's own, made after the cache is emptied: there are no gaps to fit it into.
        flat = min(held.flattening.gpu, parts.get("temporaries", 0))
        tried = parts.get("parameters", 0) + held.flattening.perhaps
        return max(lasting + int((passing - flat) * (1 + FRAGMENTATION)) + flat, tried)
    if moment.phase == "step" and spec.engine in ("single", "ddp"):
        return lasting + int(passing * (1 + STEP_GAPS))
    if "transformers" not in spec.versions:
        passing += parts.get("logits", 0) * (OLDER_LOSS - 1)
    if moment.phase in ("forward", "backward"):
        passing += kept
    more = parts.get("activations", 0) + upcast if upcast is not None else 0
    return lasting + int(passing * (1 + FRAGMENTATION)) + more


def _held_chunks(spec: Spec) -> int:
    """Bytes of the chunks that a chunked loss may hold, where nobody says whose loss it is.

    TRL's never has more than a tile; torchtune and LitGPT make the logits in chunks and keep all of them.
    """
    if spec.loss != "chunked" or spec.front_end == "litgpt" or "front_end" in spec.stated or "trl" in spec.versions:
        return 0
    return HELD_CHUNKS * spec.tokens // spec.sequence_parallel * spec.facts.vocab // logit_parts(spec)


def _held_weights(spec: Spec) -> int:
    """Bytes of dequantised weights that autograd may keep for GPTQ, by the kernel, which no spec says.

    The Triton kernels dequantise once more in the backward. Those in plain torch multiply by a dequantised copy, which
    the graph saves: a layer's under checkpointing, else all; they shift through int32 (GPTQModel ``qlinear/torch.py``,
    AutoGPTQ ``qlinear_cuda_old.py``).
    """
    if not (spec.quantization or "").startswith("gptq"):
        return 0
    quantised = [weight for weight in inventory(spec).weights if weight.quantised]
    largest = max((weight.numel for weight in quantised), default=0)
    if spec.gradient_checkpointing is not False:
        held = sum(weight.numel * weight.per_layer for weight in quantised)
    else:
        held = sum(weight.total for weight in quantised)
    return int(2 * held) + 4 * largest


def _may_upcast(spec: Spec) -> bool:
    """Whether PEFT's ``prepare_model_for_kbit_training`` may have cast the norms to fp32, which the spec cannot say.

    bitsandbytes then gives its results in fp32, so that every activation takes twice its bytes: measured, 8.0 GiB
    for the inputs of Mistral's 32 layers (fms, ``baseline-peft-bnb``). TRL does not do so for sharded models, and
    DeepSpeed casts everything back, PEFT passes GPTQ's models over.
    """
    return spec.kbit_upcast is None and keeps_upcast(spec)


def _unquantised(spec: Spec) -> int:
    """Bytes that embeddings, norms and head would need on top in fp32."""
    return sum(weight.bytes for weight in inventory(spec).weights if not weight.trainable and not weight.quantised)


def _lasting(parts: Components) -> int:
    return sum([parts.get(name, 0) for name in LASTING])


def _gathers(spec: Spec) -> int:
    """Bytes that gathering sharded parameters may take on top of what is counted."""
    if gathers(spec):
        return min(GATHER_EXTRA, 4 * parameter_count(spec.facts))
    return 0


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


def judge(span: Range, capacity: int | None) -> Verdict:
    """``fits`` where the high end fits the card, ``does-not-fit`` where the low end does not, else ``tight``."""
    if capacity is None:
        return Verdict.UNKNOWN
    if span.high <= capacity:
        return Verdict.FITS
    return Verdict.DOES_NOT_FIT if span.low > capacity else Verdict.TIGHT
