"""Real expert parallelism on a CPU: transformers' ``ep_size`` and DeepSpeed's AutoEP, by rank.

    python -m bench.ranks.expert_parallel --out tests/memory/expert_parallel_cpu.json  # record (needs the bench extra)
    python -m bench.ranks.expert_parallel --compare tests/memory/expert_parallel_cpu.json  # against lintfit, no torch

Counted are parameters, gradients, master weights and optimizer states of a small Mixtral by phase. What a rank's
experts save depends on the tokens that are routed to them, and is not compared.
"""

from __future__ import annotations

from typing import Any

from bench.ranks.processes import engine_steps, program, transformers_steps
from bench.ranks.small_llama import MODEL, batch_of, made

EXPERTS = {
    "model_type": "mixtral", "architectures": ["MixtralForCausalLM"], "num_local_experts": 4, "num_experts_per_tok": 2,
    "intermediate_size": 320, "sliding_window": None,
}  # fmt: skip
BATCH, SEQ = 2, 64
BUCKET = 100_000


def cases() -> list[dict[str, Any]]:
    """transformers on 2 ranks; AutoEP on 2 and 4, stages 0 to 2."""
    found = [_case("transformers", 2, 2)]
    found += [_case("AutoEP", 4, 2, stage) for stage in (0, 1, 2)]
    return [*found, _case("AutoEP", 2, 2, 1)]


def _case(how: str, ranks: int, parts: int, stage: int | None = None) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "gpus": ranks, "expert_parallel": parts, "weights_dtype": "bf16", "attention": "eager", "engine": "ddp",
        "micro_batch_size": BATCH, "seq_len": SEQ, "optimizer": "adamw_torch",
    }  # fmt: skip
    name = f"{how}, {parts} of {ranks} ranks"
    if stage is None:
        spec["tensor_parallel"] = parts
    else:
        spec |= {"engine": "deepspeed", "zero_stage": stage, "mixed_precision": "bf16"}
        spec["deepspeed_config"] = {
            "train_micro_batch_size_per_gpu": BATCH,
            "optimizer": {"type": "AdamW", "params": {"lr": 1e-3, "torch_adam": True}},
            "bf16": {"enabled": True},
            "zero_optimization": {"stage": stage, "reduce_bucket_size": BUCKET, "allgather_bucket_size": BUCKET},
            "expert_parallel": {
                "enabled": True, "autoep_size": parts, "preset_model": "mixtral", "use_grouped_mm": False,
            },
        }  # fmt: skip
        name += f", stage {stage}"
    return {"name": name, "spec": spec, "model": EXPERTS}


# --- one rank ---------------------------------------------------------------------------------------------------


def worker(rank: int, case: dict[str, Any]) -> dict[str, dict[str, int]]:
    """Two steps."""
    import torch

    torch.manual_seed(0)
    vocabulary = (MODEL["vocab_size"],)
    if case["spec"]["engine"] == "deepspeed":
        ids = batch_of(case)
        _without_recorders()
        found = engine_steps(case, made(case), vocabulary, {"input_ids": ids, "labels": ids})
    else:
        from transformers import DistributedConfig

        parts = case["spec"]["expert_parallel"]
        split = DistributedConfig(tp_size=parts, ep_size=parts)
        found = transformers_steps(case, vocabulary, distributed_config=split)
    del found["saved"]
    return found


def _without_recorders() -> None:
    """DeepSpeed 0.19.8 moves hooks that record router logits over to its layers; transformers 5.23 knows others."""
    from deepspeed.module_inject.auto_ep_presets import base

    base._retarget_transformers_output_recorders_for_modules = lambda *args, **kwargs: None


if __name__ == "__main__":
    program(__doc__, MODEL, cases(), worker, ("deepspeed", "torch", "transformers"))
