"""Real FSDP 2 on a CPU: what each of two ranks holds after two steps, against lintfit. Needs the bench extra, no GPU.

    python -m bench.ranks.fsdp2

``fully_shard`` wraps every layer and the model the way Accelerate does, with gloo, fp32 shards and bf16 for compute.
Compared are the bytes of parameters, gradients and AdamW's states of each rank.
"""

from __future__ import annotations

import sys
from typing import Any

RANKS = 2
MODEL: dict[str, Any] = {
    "model_type": "llama", "hidden_size": 256, "intermediate_size": 688, "num_hidden_layers": 3,
    "num_attention_heads": 8, "num_key_value_heads": 4, "vocab_size": 1000, "tie_word_embeddings": False,
}  # fmt: skip


def _worker(rank: int, case: dict[str, Any]) -> dict[str, int]:
    import torch
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
    from transformers import AutoConfig, AutoModelForCausalLM

    from bench.ranks.processes import torch_steps

    dist.init_process_group("gloo")
    settings = dict(MODEL)
    config = AutoConfig.for_model(settings.pop("model_type"), **settings)
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    how = {"mesh": init_device_mesh("cpu", (RANKS,)), "mp_policy": MixedPrecisionPolicy(param_dtype=torch.bfloat16)}
    for layer in model.model.layers:
        fully_shard(layer, **how)
    fully_shard(model, **how)
    ids = torch.zeros(1, 16, dtype=torch.long)
    phases = torch_steps(model, (MODEL["vocab_size"],), {"input_ids": ids, "labels": ids})
    return {"gradients": phases["backward"]["gradients"], **phases["step"]}


def record() -> list[dict[str, int]]:
    """Bytes of each rank by component."""
    from bench.ranks.processes import prepare, run

    prepare()
    return run(_worker, {}, RANKS, "FSDP 2")


def expected() -> dict[str, int]:
    """The same by lintfit: what a rank holds in the step."""
    from lintfit.memory.engines.model_states import states
    from lintfit.memory.reading.parse import spec_from_mapping

    spec = {
        "model_config": MODEL, "engine": "fsdp", "gpus": RANKS, "fsdp": {"version": 2}, "weights_dtype": "fp32",
        "mixed_precision": "bf16", "optimizer": "adamw_torch",
    }  # fmt: skip
    held = states(spec_from_mapping(spec)).step
    return {name: held[name] for name in ("parameters", "gradients", "optimizer_states")}


def main() -> int:
    guess = expected()
    for rank, found in enumerate(record()):
        for name, size in sorted(found.items()):
            print(f"rank {rank} {name}: {size:,} bytes, lintfit {guess[name]:,} ({guess[name] / size - 1:+.3%})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
