"""Real sequence parallelism on a CPU: DeepSpeed's Ulysses attention and torch's context parallelism, by rank.

    python -m bench.sequence_parallel_cpu --out tests/memory/sequence_parallel_cpu.json     # needs the bench extra
    python -m bench.sequence_parallel_cpu --compare tests/memory/sequence_parallel_cpu.json # against lintfit, no torch

Counted are the model states by phase, and what autograd saves for a decoder layer and for the logits. Torch's ring is
written for the kernels of GPUs; here its own code runs around the CPU's FlashAttention (:func:`ring_on_the_cpu`).
"""

from __future__ import annotations

from typing import Any

from bench.ranks import engine_steps, program
from bench.small_llama import MODEL, batch_of, made

BATCH, SEQ = 2, 128
BUCKET = 100_000


def cases() -> list[dict[str, Any]]:
    """Ulysses over ZeRO's stages, ranks and key heads; context parallelism under FSDP 2."""
    found = [_ulysses(2, 2, stage) for stage in (1, 2, 3)]
    found.append(_ulysses(4, 2, 1))
    found.append(_ulysses(4, 4, 1, {"num_key_value_heads": 2}))
    return found


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
    import deepspeed
    import torch
    from deepspeed.runtime.sequence_parallel.ulysses_sp import UlyssesSPAttentionHF

    deepspeed.init_distributed(dist_backend="gloo", verbose=False)
    torch.manual_seed(0)
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


if __name__ == "__main__":
    program(__doc__, MODEL, cases(), worker, ("deepspeed", "torch", "transformers"))
