"""Real tensor parallelism on a CPU: transformers' ``tp_plan="auto"`` and DeepSpeed's AutoTP, by rank.

    python -m bench.ranks.tensor_parallel --out tests/memory/tensor_parallel_cpu.json  # record (needs the bench extra)
    python -m bench.ranks.tensor_parallel --compare tests/memory/tensor_parallel_cpu.json  # against lintfit, no torch

Counted are parameters, gradients, master weights and optimizer states after initialisation, backward and step, and what
autograd saves for a decoder layer and for the logits. Attention is eager, the one kernel that the CPU shares with GPUs.
"""

from __future__ import annotations

from itertools import product
from typing import Any

from bench.ranks.processes import engine_steps, program, transformers_steps
from bench.ranks.small_llama import MODEL, batch_of, made

BATCH, SEQ = 2, 64
BUCKET = 100_000
"""Elements of DeepSpeed's reduce bucket."""
QUERIES, GATES = ["q_proj", "v_proj"], ["k_proj", "gate_proj", "up_proj"]
"""Adapted matrices, all of them split by columns: on others PEFT 0.21's adapters fail in the forward."""


def cases() -> list[dict[str, Any]]:
    """What is run: both ways of splitting, ranks, precisions, ZeRO's stages, tied and untied heads, few key heads."""
    found = [_case("transformers", ranks, ranks, "bf16", tied) for ranks, tied in product((2, 4), (False, True))]
    found.append(_case("transformers", 2, 2, "fp32", False))
    found += [_with_fsdp(tied) for tied in (False, True)]
    found.append(_case("transformers", 3, 3, "bf16", False, None, {"model_type": "olmo2"}))
    found.append(_case("transformers", 2, 2, "bf16", False, None, {"model_type": "phi3", "pad_token_id": 0}))
    found += [_with_adapters(ranks, targets) for ranks, targets in ((2, QUERIES), (4, QUERIES), (2, GATES))]
    found += [_case("AutoTP", 4, 2, "bf16", False, stage) for stage in (0, 1, 2, 3)]
    found.append(_made_whole(_case("AutoTP", 4, 2, "bf16", False, 3)))
    found.append(_case("AutoTP", 3, 3, "bf16", False, 1))
    found += [_case("AutoTP", 2, 2, dtype, tied, 1) for dtype, tied in (("bf16", True), ("fp32", False))]
    found.append(_case("AutoTP", 4, 4, "bf16", False, 1, {"num_key_value_heads": 2}))
    return found


def _case(
    how: str,
    ranks: int,
    parts: int,
    dtype: str,
    tied: bool,
    stage: int | None = None,
    model: dict[str, Any] | None = None,
) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "gpus": ranks, "tensor_parallel": parts, "weights_dtype": dtype, "optimizer": "adamw_torch",
        "attention": "eager", "micro_batch_size": BATCH, "seq_len": SEQ, "engine": "ddp",
    }  # fmt: skip
    name = f"{how}, {parts} of {ranks} ranks, {dtype}"
    if stage is not None:
        spec |= {"engine": "deepspeed", "zero_stage": stage, "mixed_precision": "no" if dtype == "fp32" else dtype}
        spec["deepspeed_config"] = {
            "train_micro_batch_size_per_gpu": BATCH,
            "optimizer": {"type": "AdamW", "params": {"lr": 1e-3, "torch_adam": True}},
            "bf16": {"enabled": dtype == "bf16"},
            "zero_optimization": {"stage": stage, "reduce_bucket_size": BUCKET, "allgather_bucket_size": BUCKET},
            "tensor_parallel": {"autotp_size": parts},
        }
        if stage == 3:
            spec["deepspeed_config"]["zero_optimization"]["stage3_param_persistence_threshold"] = 1000
        name += f", stage {stage}"
    changes = {**(model or {}), **({"tie_word_embeddings": True} if tied else {})}
    name += "".join(f", {key} {value}" for key, value in changes.items())
    return {"name": name, "spec": spec, "model": changes}


def _with_fsdp(tied: bool) -> dict[str, Any]:
    """Both at once, as transformers' ``DistributedConfig`` has it."""
    case = _case("transformers and FSDP 2", 4, 2, "bf16", tied)
    return {**case, "spec": {**case["spec"], "engine": "fsdp", "fsdp": {"version": 2}}}


def _with_adapters(ranks: int, targets: list[str]) -> dict[str, Any]:
    case = _case("transformers", ranks, ranks, "bf16", False)
    spec = {**case["spec"], "method": "lora", "lora_rank": 8, "lora_targets": targets}
    return {**case, "name": f"{case['name']}, LoRA on {', '.join(targets)}", "spec": spec}


def _made_whole(case: dict[str, Any]) -> dict[str, Any]:
    """The case without ``zero.Init``."""
    return {**case, "name": f"{case['name']}, made whole", "zero3_init": False}


# --- one rank ---------------------------------------------------------------------------------------------------


def worker(rank: int, case: dict[str, Any]) -> dict[str, dict[str, int]]:
    """Two steps."""
    import torch

    torch.manual_seed(0)
    if case["spec"]["engine"] == "deepspeed":
        ids = batch_of(case)
        return engine_steps(case, _made(case), _vocabulary(case), {"input_ids": ids, "labels": ids})
    if case["spec"]["engine"] == "fsdp":
        from transformers import DistributedConfig

        parts, ranks = case["spec"]["tensor_parallel"], case["spec"]["gpus"]
        split = DistributedConfig(tp_size=parts, fsdp_size=ranks // parts)
        return transformers_steps(case, _vocabulary(case), distributed_config=split)
    return transformers_steps(case, _vocabulary(case), tp_plan="auto")


def _made(case: dict[str, Any]) -> Any:
    import deepspeed

    spec = case["spec"]
    partitioned = spec["zero_stage"] == 3 and case.get("zero3_init", True)
    with deepspeed.zero.Init(config_dict_or_path=spec["deepspeed_config"], enabled=partitioned):
        return made(case)


def _vocabulary(case: dict[str, Any]) -> tuple[int, ...]:
    vocabulary = MODEL["vocab_size"]
    return vocabulary, vocabulary // case["spec"]["tensor_parallel"]


if __name__ == "__main__":
    program(__doc__, MODEL, cases(), worker, ("deepspeed", "torch", "transformers"))
