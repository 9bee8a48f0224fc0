"""What DPO and GRPO add to a training step: a frozen reference model, and rollouts on the training card."""

from __future__ import annotations

from lintfit.memory.components import plus
from lintfit.memory.parameters import model_dtype
from lintfit.memory.result import Moment
from lintfit.memory.spec import DTYPE_BYTES, Spec
from lintfit.memory.states import States
from lintfit.memory.weights import parameter_count


def reference_bytes(spec: Spec) -> int:
    """Bytes of the frozen reference model on one rank.

    TRL loads a second copy for full fine-tuning; with adapters the policy without them is the reference.
    ZeRO-3 and FSDP shard it like the policy (TRL ``prepare_deepspeed``, ``prepare_fsdp``).
    """
    if not spec.reference_model or spec.method == "lora":
        return 0
    size = parameter_count(spec.facts) * DTYPE_BYTES[model_dtype(spec)]
    sharded = (spec.engine == "deepspeed" and spec.zero_stage == 3) or spec.engine == "fsdp"
    return -(-size // spec.data_parallel) if sharded else size


def vllm_bytes(spec: Spec) -> int:
    """Bytes that a colocated vLLM holds: its share of the whole card, weights and cache together."""
    if spec.generation is None or spec.capacity_bytes is None:
        return 0
    return int(spec.generation.vllm_gpu_memory_utilization * spec.capacity_bytes)


def rollout(spec: Spec, states: States) -> tuple[Moment, ...]:
    """The generation of completions: the steady state, the gathered weights under ZeRO-3, and the KV cache.

    The cache holds keys and values of every token of a micro-batch in the weights' dtype; with vLLM it is vLLM's.
    """
    if spec.generation is None:
        return ()
    facts, item = spec.facts, DTYPE_BYTES[model_dtype(spec)]
    gathered = parameter_count(facts) * item if spec.generation.gather_weights else 0
    tokens = spec.micro_batch_size * spec.seq_len
    cache = 2 * facts.layers * facts.kv_heads * facts.head_dim * item * tokens
    if spec.generation.vllm_gpu_memory_utilization:
        cache = 0
    parts = plus(states.evaluate, {"communication_buffers": gathered, "activations": cache})
    return (Moment("generation", "evaluate", parts),)
