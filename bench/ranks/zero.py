"""Real DeepSpeed on a CPU as the oracle for model states: initialise, two steps, and count every live tensor.

    python -m bench.ranks.zero --out tests/memory/deepspeed_cpu.json  # record (needs the bench extra)
    python -m bench.ranks.zero --compare tests/memory/deepspeed_cpu.json  # a recording against lintfit, no torch

Every rank is a process with gloo. After initialisation, after the second backward and after the second step it
walks all tensors that Python can reach and sums their storages once each, by what they are. Offloaded tensors are
on the CPU like all others here, so that they are told apart by what they are, too.
"""

from __future__ import annotations

import sys
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any

from bench import recordings
from bench.ranks import small_llama
from bench.ranks.processes import prepare, run
from bench.ranks.zero_compare import LORA_TARGETS, name, table
from bench.ranks.zero_live import live

MODEL = {**small_llama.MODEL, "max_position_embeddings": 64}
BUCKET = 300_000
"""Elements of the reduce bucket: smaller than the embedding, so that its gradient takes the way around it."""


def cases() -> list[dict[str, Any]]:
    """Every combination that is run: stage, ranks, precision, offload."""
    found: list[dict[str, Any]] = []
    for stage, ranks, precision in product((0, 1, 2, 3), (1, 2, 4), ("bf16", "fp32")):
        found.append(_case(stage, ranks, precision, "none", "none", 1))
    for stage, ranks in product((1, 2, 3), (1, 2, 4)):
        found.append(_case(stage, ranks, "bf16", "cpu", "none", 1))
    found += [_case(3, ranks, "bf16", "cpu", "cpu", 1) for ranks in (1, 2, 4)]
    found += [_case(stage, 2, "bf16", "none", "none", 2) for stage in (1, 2, 3)]
    found += [_case(2, 2, "bf16", "none", "none", 2, "fp32"), _case(3, 2, "bf16", "none", "none", 1, "fp32")]
    found += [_case(1, 2, "bf16", "none", "none", 1, "fp32")]
    found += [_halved(_case(stage, 2, "bf16", "none", "none", 1)) for stage in (1, 2, 3)]
    found += [_halved(_case(stage, 2, "bf16", "cpu", "none", 2)) for stage in (2, 3)]
    found += [{**_case(stage, 2, "bf16", "none", "none", 1), "lora_rank": 8} for stage in (0, 1, 2, 3)]
    found += [_with_second_shard(_case(3, ranks, "bf16", "none", "none", 1), 2) for ranks in (2, 4)]
    found.append(_with_second_shard({**_case(3, 4, "bf16", "none", "none", 1), "lora_rank": 8}, 2))
    found.append(_with_second_shard(_case(3, 2, "fp32", "none", "none", 2), 8))
    found.append(_with_second_shard(_case(3, 4, "bf16", "cpu", "cpu", 1), 2))
    return found


def _with_second_shard(case: dict[str, Any], ranks: int) -> dict[str, Any]:
    """The case with hpZ over groups of ``ranks``."""
    zero = {**case["config"]["zero_optimization"], "zero_hpz_partition_size": ranks}
    return {**case, "config": {**case["config"], "zero_optimization": zero}}


def _halved(case: dict[str, Any]) -> dict[str, Any]:
    """The case with half-precision masters, and with such states where these stay on the GPU."""
    config = case["config"]
    offloads = "offload_optimizer" in config["zero_optimization"]
    masters = {"bf16_master_weights_and_grads": True, "bf16_optimizer_states": not offloads}
    return {**case, "config": {**config, "bf16": {**config["bf16"], **masters}}}


def _case(
    stage: int,
    ranks: int,
    precision: str,
    optimizer: str,
    param: str,
    accumulation: int,
    accumulator: str | None = None,
) -> dict[str, Any]:
    zero: dict[str, Any] = {"stage": stage, "reduce_bucket_size": BUCKET, "allgather_bucket_size": BUCKET}
    if stage == 3:
        zero |= {"stage3_param_persistence_threshold": 1000, "stage3_prefetch_bucket_size": 100_000}
    if optimizer != "none":
        zero["offload_optimizer"] = {"device": optimizer}
    if param != "none":
        zero["offload_param"] = {"device": param}
    offloaded = optimizer != "none"
    config: dict[str, Any] = {
        "train_micro_batch_size_per_gpu": 1,
        "gradient_accumulation_steps": accumulation,
        "optimizer": {"type": "AdamW", "params": {"lr": 1e-3} | ({} if offloaded else {"torch_adam": True})},
        "bf16": {"enabled": precision == "bf16"},
        "zero_optimization": zero,
    }
    if accumulator:
        config["data_types"] = {"grad_accum_dtype": accumulator}
    return {"ranks": ranks, "precision": precision, "config": config}


# --- one rank ---------------------------------------------------------------------------------------------------


def worker(rank: int, case: dict[str, Any]) -> dict[str, dict[str, int]]:
    """Train two steps on this rank: what was alive after each phase."""
    import deepspeed
    import torch
    from transformers import AutoModelForCausalLM

    deepspeed.init_distributed(dist_backend="gloo", verbose=False)
    torch.manual_seed(0)
    config = small_llama.config_of(MODEL)
    dtype = torch.bfloat16 if case["precision"] == "bf16" else torch.float32
    if case["config"]["zero_optimization"]["stage"] == 3:
        with deepspeed.zero.Init(config_dict_or_path=case["config"]):
            model = AutoModelForCausalLM.from_config(config, dtype=dtype)
    else:
        model = AutoModelForCausalLM.from_config(config, dtype=dtype)
    if "lora_rank" in case:
        model = small_llama.adapted(model, {"lora_rank": case["lora_rank"], "lora_targets": LORA_TARGETS})
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    engine, *_ = deepspeed.initialize(model=model, config=case["config"], model_parameters=trained)
    phases = {"initialize": live(engine)}
    ids = torch.randint(0, MODEL["vocab_size"], (1, 16))
    for step in range(2):
        for _ in range(case["config"]["gradient_accumulation_steps"]):
            loss = engine(input_ids=ids, labels=ids).loss
            engine.backward(loss)
            del loss
            if step == 1:
                phases["backward"] = live(engine)
            engine.step()
    phases["step"] = live(engine)
    return phases


# --- recording and comparing ------------------------------------------------------------------------------------


def record(out: Path, only: str = "") -> int:
    """Run every case (or those whose name contains ``only``) and write what each rank held."""
    prepare()
    for module in PRELOADED:
        import_module(module)
    packages = ("deepspeed", "torch", "transformers")
    return recordings.record(out, only, cases(), _measure, packages, name=name, compact=True, model=MODEL)


def _measure(case: dict[str, Any]) -> dict[str, Any]:
    return {"phases": run(worker, case, case["ranks"], name(case))}


PRELOADED = ("deepspeed", "peft", "transformers.models.llama.modeling_llama")
"""Imported once, before the ranks are forked."""


if __name__ == "__main__":
    sys.exit(recordings.program(__doc__, record, table))
