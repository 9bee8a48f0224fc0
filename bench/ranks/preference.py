"""TRL's own SFT, DPO and PPO trainers on two CPU ranks: how policy, reference, value and reward model lie on each.

    python -m bench.ranks.preference --out tests/memory/preference_parallel_cpu.json  # needs the bench extra and TRL
    python -m bench.ranks.preference --compare tests/memory/preference_parallel_cpu.json  # against lintfit, no torch

SFT and DPO (TRL 1.16) train two steps, under DeepSpeed or FSDP 1 and 2. Accelerate has no FSDP for CPU ranks, so that
it is told that these are GPUs' (:func:`_fsdp_on_cpus`). PPO (TRL 0.26 to 1.12, ``--only PPO``) is set up, and gathers
its models as it does to generate. Counted are the bytes of the trained parameters, of the models beside them, and of
what is gathered; under FSDP gradients and optimizer states as well, and what is gathered of DPO's reference.
"""

from __future__ import annotations

import gc
import json
import os
import tempfile
from pathlib import Path
from typing import Any

from bench.ranks.processes import held, optimizer_states, program
from bench.ranks.small_llama import MODEL, config_of, lora_of, made

RANKS = 2
TRAINERS = {"SFT": "causal-lm", "DPO": "dpo", "PPO": "ppo"}
"""TRL's trainers in the words of lintfit's specs."""
LORA = {"method": "lora", "lora_rank": 8, "lora_targets": ["q_proj", "v_proj"]}
ZERO = {"stage3_param_persistence_threshold": 1000, "reduce_bucket_size": 100_000}


def cases() -> list[dict[str, Any]]:
    """DPO and PPO under ZeRO-2 and 3, DPO and SFT under FSDP 1 and 2."""
    found = [_case("DPO", "1.16.0", f"ZeRO-{stage}", zero_stage=stage) for stage in (2, 3)]
    found += [_case("DPO", "1.16.0", f"FSDP {version}", fsdp={"version": version}) for version in (1, 2)]
    kept = {"version": 2, "strategy": "SHARD_GRAD_OP"}
    found.append(_case("DPO", "1.16.0", "FSDP 2 without resharding", fsdp=kept))
    for version in (1, 2):
        sharding = {"fsdp": {"version": version}, "reference_model": False}
        found.append(_case("SFT", "1.16.0", f"FSDP {version}", **sharding, gradient_accumulation_steps=2))
        found.append(_case("SFT", "1.16.0", f"FSDP {version}, LoRA", **sharding, **LORA))
    found.append(_case("DPO", "1.16.0", "FSDP 2, LoRA", fsdp={"version": 2}, reference_model=False, **LORA))
    return found + [_case("PPO", "1.12.0", f"ZeRO-{stage}", zero_stage=stage) for stage in (2, 3)]


def _case(trainer: str, version: str, name: str, **how: Any) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "gpus": RANKS, "trainer": TRAINERS[trainer], "weights_dtype": "bf16", "mixed_precision": "bf16",
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
        return (_ppo if case["spec"]["trainer"] == "ppo" else _train)(case, folder)


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
        "gradient_accumulation_steps": spec.get("gradient_accumulation_steps", 1),
    }  # fmt: skip
    if spec["engine"] == "deepspeed":
        return {**given, "deepspeed": spec["deepspeed_config"]}
    version = spec["fsdp"]["version"]
    wrapped = {
        "version": version,
        "transformer_layer_cls_to_wrap": ["LlamaDecoderLayer"],
        "cpu_ram_efficient_loading": False,
    }
    if version == 1:
        given["fsdp"] = ["full_shard", "auto_wrap"]
        return {**given, "fsdp_config": {**wrapped, "sync_module_states": False}}
    reshards = spec["fsdp"].get("strategy", "FULL_SHARD") == "FULL_SHARD"
    return {**given, "fsdp": True, "fsdp_config": {**wrapped, "reshard_after_forward": reshards}}


def _train(case: dict[str, Any], folder: str) -> dict[str, dict[str, int]]:
    """Two steps of SFT or DPO."""
    from datasets import Dataset
    from trl import DPOConfig, DPOTrainer, SFTConfig, SFTTrainer

    spec = case["spec"]
    fsdp = spec["engine"] == "fsdp"
    if fsdp:
        _fsdp_on_cpus()
    given = {**_arguments(case, folder), "max_steps": 2}
    shared = {"model": made(case), "processing_class": _tokenizer(), "peft_config": _adapters(spec)}
    if spec["trainer"] == "dpo":
        copy = made(case) if _adapters(spec) is None else None
        arguments: Any = DPOConfig(**given, precompute_ref_log_probs=False)
        trainer: Any = DPOTrainer(**shared, args=arguments, ref_model=copy, train_dataset=Dataset.from_list(PAIRS))
    else:
        trainer = SFTTrainer(**shared, args=SFTConfig(**given), train_dataset=Dataset.from_list(TEXTS))
    found: dict[str, dict[str, int]] = {}
    if fsdp:
        trainer.add_callback(_watch(trainer, found))
    reference = getattr(trainer, "ref_model", None)
    # FSDP 2 gives gathered parameters once the reference has run.
    beside = own(reference) if reference is not None else 0
    if fsdp and reference is not None:
        trainer.add_callback(_watch_reference(reference, found))
    trainer.train()
    if fsdp and trainer.accelerator.distributed_type != "FSDP":
        raise RuntimeError("the trainer has not sharded its model")
    if spec["trainer"] == "dpo":
        found["models"] = {"trained": own(trainer.model_wrapped), "beside": beside}
    return found


TEXTS = [{"text": "w3 w4 w5 w6"}] * 16
PAIRS = [{"prompt": "w3 w4 w5", "chosen": " w6 w7 w8", "rejected": " w9 w10 w11"}] * 8


def _adapters(spec: dict[str, Any]) -> Any:
    return lora_of(spec) if spec.get("method") == "lora" else None


def _fsdp_on_cpus() -> None:
    """Have Accelerate take CPU ranks for those of GPUs, the only ones that it shards, and FSDP 1 a plain device."""
    import torch
    from accelerate.state import PartialState
    from accelerate.utils import DistributedType
    from torch.distributed.fsdp import _init_utils

    before = PartialState.__init__

    def as_if_gpus(self: Any, *args: Any, **kwargs: Any) -> None:
        before(self, *args, **kwargs)
        if self.distributed_type == DistributedType.MULTI_CPU:
            self.distributed_type = DistributedType.MULTI_GPU

    PartialState.__init__ = as_if_gpus
    _init_utils._get_device_from_device_id = lambda *_, **__: torch.device("cpu")


def _watch(trainer: Any, found: dict[str, dict[str, int]]) -> Any:
    """A callback that counts what is there between micro-batches, before each optimizer step and after it."""
    from transformers import TrainerCallback

    def parameters() -> Any:
        return trainer.model_wrapped.parameters()

    class Watch(TrainerCallback):
        def on_substep_end(self, *_: Any, **__: Any) -> None:
            found["accumulated"] = {"gradients": _gradients()}

        def on_pre_optimizer_step(self, *_: Any, **__: Any) -> None:
            gradients = held(parameter.grad for parameter in parameters())
            found["backward"] = {"parameters": held(parameters()), "gradients": gradients}

        def on_step_end(self, *_: Any, optimizer: Any, **__: Any) -> None:
            states = optimizer_states(getattr(optimizer, "optimizer", optimizer))
            found["step"] = {"parameters": held(parameters()), "optimizer_states": states, "gradients": _gradients()}

    return Watch()


def _watch_reference(model: Any, found: dict[str, dict[str, int]]) -> Any:
    """A callback that counts what is gathered of the reference once its forward is over, and more in its layers."""
    from transformers import TrainerCallback

    most = 0

    def in_a_layer(*_: Any) -> None:
        nonlocal most
        most = max(most, _gathered(model))

    for module in model.modules():
        if type(module).__name__ == "LlamaDecoderLayer":
            module.register_forward_pre_hook(in_a_layer)

    class Watch(TrainerCallback):
        def on_pre_optimizer_step(self, *_: Any, **__: Any) -> None:
            lasting = _gathered(model)
            found["reference"] = {"lasting": lasting, "running": most - lasting}

    return Watch()


def _gathered(model: Any) -> int:
    """Bytes of a frozen model that FSDP has gathered: parameters, and the flat buffers that they came in."""
    from torch.distributed.fsdp import FSDPModule, FullyShardedDataParallel

    storages = {}
    for module in model.modules():
        tensors: list[Any] = []
        if isinstance(module, FullyShardedDataParallel) and module._handle is not None:
            tensors.append(module._handle.flat_param._full_param_padded)
        elif isinstance(module, FSDPModule):
            (group,) = module._get_fsdp_state()._fsdp_param_groups
            tensors += [getattr(one, "_unsharded_param", None) for one in group.fsdp_params]
            if group.comm_ctx.all_gather_state is not None:
                tensors.append(group.comm_ctx.all_gather_state.all_gather_result.all_gather_output)
        storages |= {one.untyped_storage()._cdata: one.untyped_storage() for one in tensors if one is not None}
    return sum(storage.nbytes() for storage in storages.values())


def _gradients() -> int:
    """Bytes of the gradients that FSDP itself holds: FSDP 1's flat ones, FSDP 2's of gathered parameters."""
    from torch.distributed.fsdp._flat_param import FlatParamHandle
    from torch.distributed.fsdp._fully_shard._fsdp_param import FSDPParam

    gradients = []
    for one in gc.get_objects():
        if type(one) is FlatParamHandle:
            gradients.append(one.flat_param.grad)
        elif type(one) is FSDPParam:
            gathered = getattr(one, "_unsharded_param", None)
            gradients += [one.unsharded_accumulated_grad, None if gathered is None else gathered.grad]
    return held(gradients)


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
