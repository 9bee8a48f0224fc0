"""Terms of what stands beside the training itself: the framework, a reference model, a colocated vLLM, the host."""

from __future__ import annotations

from lintfit.memory import framework
from lintfit.memory.engines.host import (
    flattens,
    loaders,
    pinned,
    quantized_on_host,
    ranks_per_node,
    reads_a_part,
    reads_files,
    stored_dtype,
)
from lintfit.memory.engines.states import States
from lintfit.memory.explain.term import Factor, Term, amount, term
from lintfit.memory.moments import at_the_loss
from lintfit.memory.result import BEFORE_THE_FIRST_STEP, Estimate, Moment
from lintfit.memory.rollouts.reference import (
    beside_bytes,
    beside_on_host,
    frozen_bytes,
    frozen_sharers,
    reference_bytes,
    reference_gathered,
    whole_bytes,
)
from lintfit.memory.rollouts.rollout import vllm_bytes
from lintfit.memory.spec import DTYPE_BYTES, Spec
from lintfit.memory.tensors.frozen_models import name_of
from lintfit.memory.tensors.parameters import inventory, loaded_dtype, model_dtype, trained_dtype
from lintfit.memory.tensors.weights import loaded_parameters


def framework_terms(spec: Spec, estimate: Estimate, states: States) -> list[Term]:
    """CUDA context, NCCL, workspaces, what the allocator holds on to, and vLLM's share."""
    context, workspaces = framework.context(spec), framework.workspaces(spec)
    hopper = context is framework.CONTEXT_HOPPER
    measured = "measured on H200, ml-engineering" if hopper else "measured on A100, fms-acceleration and ml-engineering"
    found = [
        term("framework", "CUDA context and loaded kernels", context.likely, source=measured),
        term("framework", "cuBLAS workspaces", workspaces, (2, "threads"), (workspaces / 2, "bytes")),
    ]
    if spec.gpus > 1:
        what = "NCCL's communicators"
        found.append(term("framework", what, framework.NCCL.likely, source="measured on 8 A100, ml-engineering"))
    pool = vllm_bytes(spec)
    if pool:
        share = spec.generation.vllm_gpu_memory_utilization if spec.generation else 0.0
        factors = ((share, "vllm_gpu_memory_utilization"), (spec.capacity_bytes or 0, "bytes of the GPU"))
        found.append(term("framework", "a colocated vLLM", pool, *factors))
    slack = estimate.peak_moment.components.get("framework", 0) - sum(item.size for item in found)
    return [*found, *_slack(spec, slack, estimate, states)]


def _slack(spec: Spec, size: int, estimate: Estimate, states: States) -> list[Term]:
    """What the caching allocator holds beside the tensors: its cache, or the gaps that it cannot do without."""
    peak = max(estimate.moments, key=lambda moment: moment.allocated)
    fitted = "fitted to nvidia-smi in the fms runs on A100"
    loss = at_the_loss(estimate.moments, peak)
    cached = framework.cached(
        spec,
        peak.allocated,
        states,
        peak.components.get("logits", 0),
        loss,
        framework.side_streams(spec, estimate.moments, peak),
    )
    room = sum(part for _, part in cached)
    if abs(size - room) < 2:
        return [term("framework", f"the allocator's cache {what}", part, source=fitted) for what, part in cached]
    if abs(size - framework.FRAGMENTATION[1] * peak.allocated) < 2:
        what = "gaps: 3 % of what is allocated"
        return [term("framework", what, size, source="median of 339 replayed allocation logs")]
    what = f"the allocator's cache, as far as the GPU has room (else {amount(room)})"
    return [term("framework", what, size, source=fitted)]


def reference_terms(spec: Spec, moment: Moment) -> list[Term]:
    """The frozen reference model of DPO, GRPO and PPO, and PPO's reward model."""
    size = reference_bytes(spec)
    gathered = reference_gathered(spec)
    others = frozen_bytes(spec)
    found = [term("parameters", "the reward model", beside_bytes(spec) - size - others, source="TRL")]
    if others:
        names = ", ".join(name_of(each) for each in spec.frozen_models)
        found.append(term("parameters", f"{names}, beside the trained model", others))
    if size:
        whole = ((DTYPE_BYTES[model_dtype(spec)], "bytes"), (spec.facts.parameters, "parameters"))
        factors = whole if spec.quantization is None else ((whole_bytes(spec), "bytes, in as few bits as the base"),)
        over = (frozen_sharers(spec), "ranks")
        found.append(term("parameters", "the reference model", size, *factors, over=over, source="TRL"))
    if moment.phase not in BEFORE_THE_FIRST_STEP:
        what = "of the reference, gathered since its first forward"
        found.append(term("communication_buffers", what, gathered.lasting, source="TRL prepare_fsdp"))
    if moment.name in REFERENCE_RUNS:
        what = "of the reference, gathered while it runs"
        found.append(term("communication_buffers", what, gathered.running, source="TRL prepare_fsdp"))
    return found


REFERENCE_RUNS = frozenset({"reference, forward", "reference scored"})
"""Moments inside the reference's forward."""


def host_terms(spec: Spec, estimate: Estimate, states: States) -> list[Term]:
    """The host memory of one node: the larger of loading and the steady state."""
    if not estimate.host.peak:
        return []
    if estimate.host.decided_by == "merging":
        what = "the model, and the difference of the largest matrix, while adapters are merged"
        return [term("host", what, estimate.host.merge, source="peft tuners/lora/layer.py")]
    if estimate.host.decided_by == "loading":
        if flattens(spec, inventory(spec), estimate.host):
            return [_flattening(spec, estimate.host.load_peak)]
        return _load_terms(spec, estimate.host.load_peak)
    ranks = _ranks(ranks_per_node(spec))
    found = _evaluated(spec) if spec.evaluation is not None else []
    found.append(term("host", "what the ranks read of the checkpoint, while they resume", estimate.host.resume))
    for block in sorted(set(states.rank_host.locked), reverse=True):
        count = states.rank_host.locked.count(block)
        locked = pinned(block)
        if not locked:
            continue
        what = f"page-locked, a block of {amount(block)} rounded up to a power of two"
        factors = ((count, "blocks"), (locked, "bytes"), *ranks)
        size = count * locked * ranks_per_node(spec)
        found.append(term("host", what, size, *factors, source="torch CachingHostAllocator.h"))
    if spec.offload_param != "nvme":
        found.append(term("host", "frozen models beside the policy", beside_on_host(spec), source="TRL"))
    plain = states.rank_host.plain
    found.append(term("host", "not page-locked", plain * ranks_per_node(spec), (plain, "bytes"), *ranks))
    return found


def _evaluated(spec: Spec) -> list[Term]:
    from lintfit.memory.explain import evaluating

    return evaluating.host_terms(spec)


def _flattening(spec: Spec, size: int) -> Term:
    """Parameters that ZeRO-1 and 2 flatten on the host."""
    item, trained = DTYPE_BYTES[trained_dtype(spec)], inventory(spec).trainable
    factors = ((2, "copies"), (item, "bytes"), (trained, "trained parameters"), *_ranks(ranks_per_node(spec)))
    what = "parameters on their way back to the GPU, one by one and flat"
    return term("host", what, size, *factors, source="DeepSpeed stage_1_and_2.py flatten_on_accelerator")


def _ranks(count: int) -> tuple[Factor, ...]:
    return ((count, "ranks of a node"),) if count > 1 else ()


def _load_terms(spec: Spec, size: int) -> list[Term]:
    ranks = ranks_per_node(spec)
    if reads_a_part(spec):
        what = "every rank reads its own part of the model"
        return [term("host", what, size, (size // ranks, "bytes of a rank"), *_ranks(ranks), source="transformers")]
    if quantized_on_host(spec):
        what = "every rank has the whole quantized model on the host, which the engine moves to the GPU"
        return [term("host", what, size, (size // ranks, "bytes"), *_ranks(ranks), source="transformers")]
    if spec.quantization is not None:
        largest = inventory(spec).largest
        factors = ((largest, "elements of the largest tensor"), (DTYPE_BYTES[spec.weights_dtype], "bytes"))
        what = "one tensor at a time is read and quantised on the GPU"
        return [term("host", what, size, *factors, *_ranks(ranks))]
    if spec.made_in_parts:
        if reads_files(spec):
            what = "one file of the checkpoint at a time is read"
            return [term("host", what, size, source="transformers modeling_utils.py")]
        dtype = stored_dtype(spec)
        factors = ((DTYPE_BYTES[dtype], f"bytes ({dtype})"), (loaded_parameters(spec), "parameters"))
        return [term("host", "the checkpoint is read whole", size, *factors, source="transformers merged_state_dict")]
    dtype, copies = loaded_dtype(spec), loaders(spec)
    if spec.placed_by_tensor:
        factors = (
            (inventory(spec).largest, "elements of the largest tensor"),
            (DTYPE_BYTES[dtype], f"bytes ({dtype})"),
        )
        return [term("host", "one tensor at a time is read to its GPU (device_map)", size, *factors, *_ranks(ranks))]
    what = "every rank reads a full copy of the weights" if copies > 1 else "one full copy of the weights is read"
    factors = ((DTYPE_BYTES[dtype], f"bytes ({dtype})"), (loaded_parameters(spec), "parameters"))
    return [term("host", what, size, *factors, *_ranks(copies), source="transformers from_pretrained")]
