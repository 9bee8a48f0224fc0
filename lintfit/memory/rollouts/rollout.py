"""Rollouts of GRPO and RLOO on the training GPU (PPO's: :mod:`.ppo`)."""

from __future__ import annotations

from lintfit.catalog.facts import ModelFacts
from lintfit.memory.components import plus
from lintfit.memory.engines import merging
from lintfit.memory.engines.states import States
from lintfit.memory.loss.preference import trl_version
from lintfit.memory.result import Moment
from lintfit.memory.spec import DTYPE_BYTES, Spec
from lintfit.memory.tensors.parameters import inventory, model_dtype
from lintfit.memory.tensors.weights import adapter_dtype, parameter_count
from lintfit.memory.versions import GROUPED_EXPERTS, transformers_version

LOOPING = frozenset({"dbrx", "doge", "jetmoe", "llama4", "llama4_text"})
"""Model types whose experts are run in their own way (no ``use_experts_implementation``)."""

STEPS_PER_GENERATION = (0, 18)
"""The first TRL version that generates for several micro-batches at once."""


def vllm_bytes(spec: Spec) -> int:
    """Bytes that a colocated vLLM holds while the model trains: its share of the whole GPU, weights and cache.

    In sleep mode it has given them back then (TRL ``vllm_generation.py``: ``llm.sleep(level=2)``).
    """
    return 0 if spec.generation is None or spec.generation.vllm_sleeps else _vllm_share(spec)


def _vllm_share(spec: Spec) -> int:
    if spec.generation is None or spec.capacity_bytes is None:
        return 0
    return int(spec.generation.vllm_gpu_memory_utilization * spec.capacity_bytes)


def generated(spec: Spec) -> int:
    """Sequences that a rank generates at once.

    A micro-batch for every step until the next generation; that is every step of accumulation where nothing else is
    said (TRL ``steps_per_generation``). Up to 0.17 each micro-batch generated for itself.
    """
    if spec.generation is None or trl_version(spec) < STEPS_PER_GENERATION:
        return spec.micro_batch_size
    return spec.micro_batch_size * (spec.generation.steps_per_generation or spec.gradient_accumulation_steps)


def cache_bytes(spec: Spec) -> int:
    """Keys and values of all layers for every token that is generated at once, in the weights' dtype.

    One layer's are there twice while the newest token is appended (``DynamicLayer.update``: ``torch.cat``).
    """
    item = DTYPE_BYTES[model_dtype(spec)]
    return (spec.facts.layers + 1) * layer_cache(spec.facts, item, generated(spec) * spec.seq_len)


def layer_cache(facts: ModelFacts, item: int, tokens: int) -> int:
    """Bytes of one layer's keys and values for so many tokens; ``item``: bytes of an element."""
    return 2 * facts.kv_heads * facts.head_dim * item * tokens


def selected_experts(spec: Spec, sequences: int) -> int:
    """Bytes of the experts that the newest token of every sequence goes to: each gets a copy of theirs in one layer
    after the other (``_optimize_model_for_decode``, ``batched_mm_experts_forward``; measured on Mixtral)."""
    moe = spec.facts.moe
    if moe is None or transformers_version(spec) < GROUPED_EXPERTS or spec.facts.model_type in LOOPING:
        return 0
    routed = [tensor.shape for tensor in spec.facts.tensors if tensor.role == "expert" and len(tensor.shape) == 3]
    largest = max((rows for rows, _, _ in routed), default=0)
    one = sum(columns * width for rows, columns, width in routed if rows == largest)
    return sequences * moe.top_k * one * DTYPE_BYTES[model_dtype(spec)]


def rollout(spec: Spec, states: States) -> tuple[Moment, ...]:
    """The generation of completions: the steady state, the gathered weights under ZeRO-3, and the KV cache.

    Where a server generates nothing but the weights that it is sent, which is one tensor after the other unless they
    are merged before (:func:`merged_for_vllm`). With vLLM on the same GPU the cache is vLLM's; where it sleeps in
    between, its whole share counts here alone.
    """
    if spec.generation is None or spec.trainer == "ppo":
        return ()
    merged = merged_for_vllm(spec)
    sent = plus(
        states.evaluate, {"communication_buffers": merged, "temporaries": merging.on_gpu(spec) if merged else 0}
    )
    handed = (Moment("weights handed to vLLM", "evaluate", sent),) if merged else ()
    if spec.generation.vllm_server:
        return handed
    gathered = parameter_count(spec.facts) * DTYPE_BYTES[model_dtype(spec)] if spec.gathers_to_generate else 0
    if spec.generation.vllm_gpu_memory_utilization:
        woken = _vllm_share(spec) if spec.generation.vllm_sleeps else 0
        parts = plus(states.evaluate, {"communication_buffers": gathered, "temporaries": woken})
    else:
        parts = plus(states.evaluate, {"communication_buffers": gathered, "activations": cache_bytes(spec)})
        parts = plus(parts, {"temporaries": selected_experts(spec, generated(spec))})
    return (*handed, Moment("generation", "evaluate", parts))


def merged_for_vllm(spec: Spec) -> int:
    """Bytes of the weights that ZeRO-3 gathers all at once, beside its shards, to merge adapters before vLLM gets them.

    "we must gather the full model at once before merging" (TRL 0.15 to 0.29 ``_move_model_to_vllm``, later
    ``vllm_generation.py``), whether a server or a vLLM on the same GPU takes them.
    """
    made = spec.generation
    if made is None or not (made.vllm_server or made.vllm_gpu_memory_utilization):
        return 0
    if spec.method != "lora" or spec.engine != "deepspeed" or spec.zero_stage != 3 or spec.sharding_ranks == 1:
        return 0
    adapters = inventory(spec).trainable * DTYPE_BYTES[adapter_dtype(spec)]
    return parameter_count(spec.facts) * DTYPE_BYTES[model_dtype(spec)] + adapters
