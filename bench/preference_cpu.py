"""TRL's own DPO and PPO trainers on two CPU ranks: how policy, reference, value and reward model lie on each.

    python -m bench.preference_cpu --out tests/memory/preference_parallel_cpu.json     # needs the bench extra and TRL
    python -m bench.preference_cpu --compare tests/memory/preference_parallel_cpu.json # against lintfit, no torch

DPO (TRL 1.16) trains two steps under DeepSpeed; Accelerate has no FSDP on a CPU, so that there TRL's own function wraps
the reference alone. PPO (TRL 0.26 to 1.12, ``--only PPO``) is set up, and gathers its models as it does to
generate. Counted are the bytes of the trained parameters, of the models beside them, and of what is gathered.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from bench.ranks import held, program
from bench.small_llama import MODEL, batch_of, config_of, made

RANKS = 2
ZERO = {"stage3_param_persistence_threshold": 1000, "reduce_bucket_size": 100_000}


def cases() -> list[dict[str, Any]]:
    """Both trainers under ZeRO-2 and 3, DPO's reference under FSDP 1 and 2 as well."""
    found = [_case("DPO", "1.16.0", f"ZeRO-{stage}", zero_stage=stage) for stage in (2, 3)]
    found += [_case("DPO", "1.16.0", f"FSDP {version}", fsdp={"version": version}) for version in (1, 2)]
    return found + [_case("PPO", "1.12.0", f"ZeRO-{stage}", zero_stage=stage) for stage in (2, 3)]


def _case(trainer: str, version: str, name: str, **how: Any) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "gpus": RANKS, "trainer": trainer.lower(), "weights_dtype": "bf16", "mixed_precision": "bf16",
        "attention": "eager", "micro_batch_size": 1, "seq_len": 64, "reference_model": True, "optimizer": "adamw_torch",
        "engine": "deepspeed" if "zero_stage" in how else "fsdp", "versions": {"trl": version}, **how,
    }  # fmt: skip
    if "zero_stage" in how:
        spec["deepspeed_config"] = {
            "train_micro_batch_size_per_gpu": 1,
            "bf16": {"enabled": True},
            "zero_optimization": {"stage": how["zero_stage"], **ZERO},
            "zero_allow_untested_optimizer": True,
        }
    if trainer == "PPO":
        spec["generation"] = {"completion_len": 8, "gather_weights": how["zero_stage"] == 3}
    return {"name": f"{trainer}, {name}", "spec": spec}


# --- one rank ---------------------------------------------------------------------------------------------------


def worker(rank: int, case: dict[str, Any]) -> dict[str, dict[str, int]]:
    """One trainer."""
    import torch

    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        if case["spec"]["engine"] == "fsdp":
            return _reference(case)
        return (_dpo if case["spec"]["trainer"] == "dpo" else _ppo)(case, folder)


def _tokenizer() -> Any:
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = {"<pad>": 0, "<eos>": 1, "<unk>": 2} | {f"w{index}": index for index in range(3, 99)}
    made = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(tokenizer_object=made, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>")


def _arguments(case: dict[str, Any], folder: str) -> dict[str, Any]:
    spec = case["spec"]
    given: dict[str, Any] = {
        "output_dir": folder, "use_cpu": True, "bf16": True, "per_device_train_batch_size": 1, "report_to": [],
        "ddp_backend": "gloo", "save_strategy": "no", "gradient_checkpointing": False, "optim": "adamw_torch",
    }  # fmt: skip
    return {**given, "deepspeed": spec["deepspeed_config"]}


def _dpo(case: dict[str, Any], folder: str) -> dict[str, dict[str, int]]:
    from datasets import Dataset
    from trl import DPOConfig, DPOTrainer

    rows = [{"prompt": "w3 w4 w5", "chosen": " w6 w7 w8", "rejected": " w9 w10 w11"}] * 8
    arguments = DPOConfig(**_arguments(case, folder), max_steps=2, precompute_ref_log_probs=False)
    trainer = DPOTrainer(
        model=made(case), ref_model=made(case), args=arguments, train_dataset=Dataset.from_list(rows),
        processing_class=_tokenizer(),
    )  # fmt: skip
    trainer.train()
    return {"models": {"trained": own(trainer.model_wrapped), "beside": own(trainer.ref_model)}}


def _reference(case: dict[str, Any]) -> dict[str, dict[str, int]]:
    """A reference as TRL wraps it, after a forward pass."""
    import torch
    import torch.distributed as dist
    from accelerate import FullyShardedDataParallelPlugin
    from trl.models.utils import prepare_fsdp

    dist.init_process_group("gloo")
    plugin = FullyShardedDataParallelPlugin(
        fsdp_version=case["spec"]["fsdp"]["version"], auto_wrap_policy="transformer_based_wrap",
        transformer_cls_names_to_wrap=["LlamaDecoderLayer"], mixed_precision_policy="bf16",
        sync_module_states=False, cpu_ram_efficient_loading=False,
    )  # fmt: skip
    state = SimpleNamespace(fsdp_plugin=plugin)
    model: Any = prepare_fsdp(made(case), SimpleNamespace(state=state, device=torch.device("cpu")))  # type: ignore[arg-type]
    with torch.no_grad():
        model(input_ids=batch_of(case), use_cache=False)
    return {"models": {"beside": own(model)}}


def _ppo(case: dict[str, Any], folder: str) -> dict[str, dict[str, int]]:
    import torch
    from datasets import Dataset
    from transformers import AutoModelForSequenceClassification
    from trl.experimental.ppo import PPOConfig, PPOTrainer
    from trl.models.utils import unwrap_model_for_generation

    def scorer() -> Any:
        config = config_of({"num_labels": 1})
        return AutoModelForSequenceClassification.from_config(config, dtype=torch.bfloat16)

    given = _arguments(case, folder)
    # With ``deepspeed=`` TRL 1.12 dies in transformers 5.23: PPOConfig's ``world_size`` hides that of its base.
    config = Path(folder, "ds.json")
    config.write_text(json.dumps(given.pop("deepspeed")))
    os.environ |= {"ACCELERATE_USE_DEEPSPEED": "true", "ACCELERATE_DEEPSPEED_CONFIG_FILE": str(config)}
    os.environ["ACCELERATE_MIXED_PRECISION"] = "bf16"
    arguments = PPOConfig(**given, total_episodes=4, response_length=8)
    trainer = PPOTrainer(
        args=arguments, processing_class=_tokenizer(), model=made(case), ref_model=made(case), reward_model=scorer(),
        value_model=scorer(), train_dataset=Dataset.from_list([{"input_ids": [3, 4, 5]}] * 8),
    )  # fmt: skip
    gathers = case["spec"]["zero_stage"] == 3
    found = {"trained": own(trainer.model), "beside": own(trainer.ref_model) + own(trainer.reward_model)}
    with unwrap_model_for_generation(trainer.model, trainer.accelerator, gather_deepspeed3_params=gathers) as policy:
        wrapped = trainer.accelerator.unwrap_model(trainer.model)
        if gathers:
            found["gathered"] = held(parameter.data for parameter in wrapped.parameters())
        del policy, wrapped
    return {"models": found}


def own(model: Any) -> int:
    """Bytes of a model's parameters on this rank: of ZeRO-3 its shard and the small parameters that stay whole."""
    found = []
    for parameter in model.parameters():
        found += [getattr(parameter, "ds_tensor", None), parameter.data]
    return held(found)


if __name__ == "__main__":
    program(__doc__, MODEL, cases(), worker, ("accelerate", "deepspeed", "torch", "transformers"))
