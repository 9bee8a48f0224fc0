"""Rollouts of GRPO and RLOO on the training card (PPO's: :mod:`.ppo`)."""

from __future__ import annotations

from lintfit.memory.components import plus
from lintfit.memory.engines.states import States
from lintfit.memory.loss.preference import trl_version
from lintfit.memory.result import Moment
from lintfit.memory.spec import DTYPE_BYTES, Spec
from lintfit.memory.tensors.parameters import model_dtype
from lintfit.memory.tensors.weights import parameter_count

STEPS_PER_GENERATION = (0, 18)
"""The first TRL version that generates for several micro-batches at once."""


def vllm_bytes(spec: Spec) -> int:
    """Bytes that a colocated vLLM holds while the model trains: its share of the whole card, weights and cache.

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
    facts = spec.facts
    layer = 2 * facts.kv_heads * facts.head_dim * DTYPE_BYTES[model_dtype(spec)] * generated(spec) * spec.seq_len
    return (facts.layers + 1) * layer


def rollout(spec: Spec, states: States) -> tuple[Moment, ...]:
    """The generation of completions: the steady state, the gathered weights under ZeRO-3, and the KV cache.

    With vLLM on the same card the cache is vLLM's; where it sleeps in between, its whole share counts here alone.
    """
    if spec.generation is None or spec.trainer == "ppo":
        return ()
    gathered = parameter_count(spec.facts) * DTYPE_BYTES[model_dtype(spec)] if spec.generation.gather_weights else 0
    if spec.generation.vllm_gpu_memory_utilization:
        woken = _vllm_share(spec) if spec.generation.vllm_sleeps else 0
        parts = plus(states.evaluate, {"communication_buffers": gathered, "temporaries": woken})
    else:
        parts = plus(states.evaluate, {"communication_buffers": gathered, "activations": cache_bytes(spec)})
    return (Moment("generation", "evaluate", parts),)
