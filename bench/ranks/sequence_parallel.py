"""Real sequence parallelism on a CPU: DeepSpeed's Ulysses attention and torch's context parallelism, by rank.

    python -m bench.ranks.sequence_parallel --out tests/memory/sequence_parallel_cpu.json  # needs the bench extra
    python -m bench.ranks.sequence_parallel --compare tests/memory/sequence_parallel_cpu.json  # no torch

Counted are the model states by phase, and what autograd saves for a decoder layer and for the logits. Torch's ring is
written for the kernels of GPUs; here its own code runs around the CPU's FlashAttention (:func:`ring_on_the_cpu`).
"""

from __future__ import annotations

from functools import partial
from typing import Any

from bench.ranks.processes import engine_steps, program, torch_steps
from bench.ranks.small_llama import MODEL, batch_of, made

BATCH, SEQ = 2, 128
BUCKET = 100_000


def cases() -> list[dict[str, Any]]:
    """Ulysses over ZeRO's stages, ranks and key heads; context parallelism under FSDP 2."""
    found = [_ulysses(2, 2, stage) for stage in (1, 2, 3)]
    found.append(_ulysses(4, 2, 1))
    found.append(_ulysses(4, 4, 1, {"num_key_value_heads": 2}))
    found += [_ring(2, 2), _ring(4, 2)]
    return found


def _ring(ranks: int, parts: int) -> dict[str, Any]:
    spec = {
        "gpus": ranks, "sequence_parallel": parts, "engine": "fsdp", "fsdp": {"version": 2}, "weights_dtype": "bf16",
        "attention": "sdpa", "micro_batch_size": BATCH, "seq_len": SEQ, "optimizer": "adamw_torch",
    }  # fmt: skip
    return {"name": f"ring, {parts} of {ranks} ranks, FSDP 2", "spec": spec, "model": {"num_key_value_heads": 8}}


def _ulysses(ranks: int, parts: int, stage: int, model: dict[str, Any] | None = None) -> dict[str, Any]:
    zero = {"stage": stage, "reduce_bucket_size": BUCKET, "allgather_bucket_size": BUCKET}
    if stage == 3:
        zero |= {"stage3_param_persistence_threshold": 1000, "stage3_prefetch_bucket_size": BUCKET}
    config = {
        "train_micro_batch_size_per_gpu": BATCH,
        "sequence_parallel_size": parts,
        "optimizer": {"type": "AdamW", "params": {"lr": 1e-3, "torch_adam": True}},
        "bf16": {"enabled": True},
        "zero_optimization": zero,
    }
    spec = {
        "gpus": ranks, "sequence_parallel": parts, "engine": "deepspeed", "zero_stage": stage, "weights_dtype": "bf16",
        "mixed_precision": "bf16", "attention": "sdpa", "micro_batch_size": BATCH, "seq_len": SEQ,
        "deepspeed_config": config,
    }  # fmt: skip
    name = f"Ulysses, {parts} of {ranks} ranks, stage {stage}"
    name += "".join(f", {key} {value}" for key, value in (model or {}).items())
    return {"name": name, "spec": spec, "model": model or {"num_key_value_heads": 8}}


# --- one rank ---------------------------------------------------------------------------------------------------


def worker(rank: int, case: dict[str, Any]) -> dict[str, dict[str, int]]:
    """Two steps on this rank's part of each sequence."""
    import torch

    torch.manual_seed(0)
    return _with_ulysses(case) if case["spec"]["engine"] == "deepspeed" else _with_ring(case)


def _with_ulysses(case: dict[str, Any]) -> dict[str, dict[str, int]]:
    import deepspeed
    import torch
    from deepspeed.runtime.sequence_parallel.ulysses_sp import UlyssesSPAttentionHF

    deepspeed.init_distributed(dist_backend="gloo", verbose=False)
    config, parts = case["spec"]["deepspeed_config"], case["spec"]["sequence_parallel"]
    if case["spec"]["zero_stage"] == 3:
        with deepspeed.zero.Init(config_dict_or_path=config):
            model = made(case)
    else:
        model = made(case)
    mpu = UlyssesSPAttentionHF.register_with_transformers(model, "sdpa", parts, BATCH)
    local = SEQ // parts
    start = mpu.get_sequence_parallel_rank() * local
    ids = batch_of(case, parts)
    positions = torch.arange(start, start + local).expand(BATCH, -1)
    batch = {"input_ids": ids, "position_ids": positions, "labels": ids, "shift_labels": ids}
    return engine_steps(case, model, (MODEL["vocab_size"],), batch, mpu)


def _with_ring(case: dict[str, Any]) -> dict[str, dict[str, int]]:
    """What Accelerate does for ``ParallelismConfig(cp_size)``: FSDP 2 over all ranks, the batch's sequences divided."""
    import torch.distributed as dist
    from accelerate.big_modeling import _attach_context_parallel_hooks
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor.experimental import context_parallel

    dist.init_process_group("gloo")
    ring_on_the_cpu()
    ranks, parts = case["spec"]["gpus"], case["spec"]["sequence_parallel"]
    mesh = init_device_mesh("cpu", (ranks // parts, parts), mesh_dim_names=("dp", "cp"))
    model = made(case)
    for layer in model.model.layers:
        fully_shard(layer, mesh=mesh._flatten("dp_cp") if ranks > parts else mesh["cp"])
    fully_shard(model, mesh=mesh["dp_cp"] if ranks > parts else mesh["cp"])
    _attach_context_parallel_hooks(model)
    ids = batch_of(case, parts)
    around = partial(context_parallel, mesh["cp"], buffers=[batch_of(case)], buffer_seq_dims=[1])
    return torch_steps(model, (MODEL["vocab_size"],), {"input_ids": ids, "labels": ids, "shift_labels": ids}, around)


def ring_on_the_cpu() -> None:
    """Let torch's ring run around the CPU's FlashAttention, as it does around CUDA's.

    torch 2.13 names the CUDA kernels alone (``_context_parallel/_attention.py`` ``custom_ops``); the CPU's takes and
    gives the same tensors.
    """
    import torch
    from torch.distributed.tensor import DTensor, Shard
    from torch.distributed.tensor.experimental._context_parallel import _attention as ring

    forward = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    backward = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward

    def attend(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        mesh = args[0].device_mesh
        local = [each.to_local() if isinstance(each, DTensor) else each for each in args]
        if op is forward.default:
            query, key, value, _, causal = (*local, 0.0, False)[:5]
            made = ring._templated_ring_attention(
                mesh.get_group(), 2, forward, query=query, key=key, value=value, is_causal=causal
            )
        else:
            grad, query, key, value, out, stats, dropout, causal = local
            made = ring._templated_ring_attention_backward(
                mesh.get_group(), 2, backward.default, grad_out=grad, grad_out_name="grad_out", query=query, key=key,
                value=value, out=out, logsumexp=stats, is_causal=causal, dropout_p=dropout,
            )  # fmt: skip
        return tuple(DTensor.from_local(part, mesh, [Shard(2)], run_check=False) for part in made[:3])

    ring.custom_ops |= {forward.default: attend, backward.default: attend}


if __name__ == "__main__":
    program(__doc__, MODEL, cases(), worker, ("deepspeed", "torch", "transformers"))
