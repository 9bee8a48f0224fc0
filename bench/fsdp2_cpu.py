"""Real FSDP 2 on a CPU: what each of two ranks holds after two steps, against lintfit. Needs the bench extra, no GPU.

    python -m bench.fsdp2_cpu

``fully_shard`` wraps every layer and the model the way Accelerate does, with gloo, fp32 shards and bf16 for compute.
Compared are the bytes of parameters, gradients and AdamW's states of each rank.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

RANKS = 2
MODEL: dict[str, Any] = {
    "model_type": "llama", "hidden_size": 256, "intermediate_size": 688, "num_hidden_layers": 3,
    "num_attention_heads": 8, "num_key_value_heads": 4, "vocab_size": 1000, "tie_word_embeddings": False,
}  # fmt: skip


def _bytes(tensors: Any) -> int:
    own = [tensor.to_local() if hasattr(tensor, "to_local") else tensor for tensor in tensors]
    return sum(tensor.numel() * tensor.element_size() for tensor in own)


def _rank(rank: int, port: int, results: Any) -> None:
    import torch
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
    from transformers import AutoConfig, AutoModelForCausalLM

    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank), WORLD_SIZE=str(RANKS))
    dist.init_process_group("gloo", rank=rank, world_size=RANKS)
    settings = dict(MODEL)
    config = AutoConfig.for_model(settings.pop("model_type"), **settings)
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    how = {"mesh": init_device_mesh("cpu", (RANKS,)), "mp_policy": MixedPrecisionPolicy(param_dtype=torch.bfloat16)}
    for layer in model.model.layers:
        fully_shard(layer, **how)
    fully_shard(model, **how)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, foreach=True)
    ids = torch.zeros(1, 16, dtype=torch.long)
    found = {}
    for _ in range(2):
        model(input_ids=ids, labels=ids).loss.backward()
        found["gradients"] = _bytes(p.grad for p in model.parameters())
        optimizer.step()
        optimizer.zero_grad()
    found["parameters"] = _bytes(model.parameters())
    states = (value for state in optimizer.state.values() for value in state.values())
    found["optimizer_states"] = _bytes(value for value in states if value.numel() > 1)
    results.put((rank, found))
    dist.barrier()
    dist.destroy_process_group()


def record(port: int = 29641) -> list[dict[str, int]]:
    """Bytes of each rank by component."""
    from torch import multiprocessing

    spawn = multiprocessing.get_context("spawn")
    results = spawn.Queue()
    ranks = [spawn.Process(target=_rank, args=(rank, port, results)) for rank in range(RANKS)]
    for process in ranks:
        process.start()
    found = dict(results.get(timeout=300) for _ in ranks)
    for process in ranks:
        process.join()
    return [found[rank] for rank in range(RANKS)]


def expected() -> dict[str, int]:
    """The same by lintfit: what a rank holds in the step."""
    from lintfit.memory.engines import states
    from lintfit.memory.parse import spec_from_mapping

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
