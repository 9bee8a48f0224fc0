"""How a change of a setting is said to a person: the part of its record that speaks of what there is to do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from lintfit.frozen import field, frozen


@frozen
class Said:
    """How a change of one setting is said.

    In a text ``{before}`` and ``{after}`` stand for the two values, ``{name}`` for what another setting has behind the
    change, ``{zero}`` for ZeRO's stage and what of it is offloaded.
    """

    text: str = ""
    """For any value that has no words of its own."""
    less: str = ""
    """For a number that goes down; ``text`` is then for one that goes up."""
    by: Mapping[Any, str] = field(default_factory=dict)
    """For values whose change has words of its own."""
    values: Mapping[Any, str] = field(default_factory=dict)
    """What stands for a value in a text, where that is not the value itself."""
    within: Literal["", "method", "engine"] = ""
    """The setting whose change says this one, too, where both change."""


def _number(what: str, within: Literal["", "method", "engine"] = "") -> Said:
    return Said(
        f"raise {what} from {{before}} to {{after}}", f"lower {what} from {{before}} to {{after}}", within=within
    )


def _device(what: str) -> Said:
    words = {"none": f"keep {what} on the GPU", "cpu": f"move {what} to the host", "nvme": f"move {what} to NVMe"}
    return Said(by=words, within="engine")


def _size(key: str) -> Said:
    """A key of ``zero_optimization``, which a person writes as it is called."""
    return Said(f"set {key} to {{after}}")


SAID: Mapping[str, Said] = {
    # What trains, and what of it
    "method": Said(by={
        "lora": "train LoRA adapters of rank {lora_rank} on {lora_targets} in place of all weights",
        "full": "train all weights in place of adapters",
    }),
    "lora_rank": _number("the adapters' rank", within="method"),
    "lora_targets": Said("put the adapters on {after}", within="method", values={
        "all-linear": "all linear layers",
        None: "the modules that PEFT chooses",
    }),
    "quantization": Said(by={
        "nf4": "load the frozen weights in four bits (nf4)",
        "nf4-double": "load the frozen weights in four bits (nf4, double quantization)",
        "int8": "load the frozen weights in eight bits",
        "gptq-int4": "train on a base that GPTQ has rounded to four bits",
        "gptq-int8": "train on a base that GPTQ has rounded to eight bits",
        None: "load the weights without quantization",
    }),
    "whole_state_dict": Said(by={
        True: "take the whole state dict as it is",
        False: "gather the whole state dict on the host of the first rank (FullStateDictConfig with CPU offload)",
    }),
    "reference_model": Said(by={
        True: "hand over a reference model",
        False: "hand over no reference model: the model with its adapters switched off is one",
    }),
    "weights_dtype": Said("load the weights in {after}", by={"as loaded": "keep the weights as they are loaded"}),
    # How a micro-batch is computed
    "gradient_checkpointing": Said(by={
        True: "turn on gradient checkpointing",
        False: "turn off gradient checkpointing",
        "selective": "turn on selective gradient checkpointing",
    }),
    "attention": Said(by={
        "eager": "use eager attention",
        "sdpa": "use SDPA's attention",
        "flash_attention_2": "use FlashAttention 2",
    }),
    "loss": Said(by={
        "full": "compute the loss of all logits at once",
        "chunked": "compute the loss in chunks",
        "liger": "use Liger's fused loss",
    }),
    "loop_outputs": Said(by={
        "dropped": "let go of the model's outputs before the backward pass",
        "backward": "let go of the model's outputs behind the backward pass",
        "held": "hold the model's outputs until the next step",
    }),
    "zero_grad": Said(by={
        "step": "clear the gradients right behind the optimizer's step",
        "forward": "clear the gradients before the forward pass",
        "backward": "clear the gradients before the backward pass",
        "never": "leave the gradients where they are",
    }),
    # Evaluation
    "eval_batch_size": _number("the evaluation batch"),
    "eval_accumulation_steps": Said(
        "move the evaluation's logits to the host after every {after} batches",
        by={1: "move the evaluation's logits to the host after every batch"},
    ),
    "eval_predictions": Said("have the evaluation keep {after}", values={
        "none": "the loss alone, without logits and metrics",
        "kept": "its logits for metrics",
    }),
    # The hardware and the engine
    "gpus": Said("run on {after} GPUs instead of {before}"),
    "nodes": Said("run on {after} machines instead of {before}"),
    "engine": Said(by={
        "single": "train in one process",
        "ddp": "start one process for each GPU (DDP)",
        "deepspeed": "shard with DeepSpeed: {zero}",
        "fsdp": "shard with {fsdp}",
    }),
    "zero_stage": _number("the ZeRO stage", within="engine"),
    "offload_optimizer": _device("the optimizer"),
    "offload_param": _device("the parameters"),
    "zero3_init": Said(by={
        True: "set ZeRO-3 up before the model is loaded, which is then partitioned as it loads",
        False: "load the whole model before ZeRO-3 is set up",
    }),
    "fsdp": Said("switch from {before} to {after}", by={None: "give FSDP up"}, within="engine"),
    "reduce_bucket_size": _size("reduce_bucket_size"),
    "stage3_prefetch_bucket_size": _size("stage3_prefetch_bucket_size"),
    "stage3_param_persistence_threshold": _size("stage3_param_persistence_threshold"),
    "stage3_max_live_parameters": _size("stage3_max_live_parameters"),
    "stage3_max_reuse_distance": _size("stage3_max_reuse_distance"),
    "sub_group_size": _size("sub_group_size"),
    # Precision, batch, optimizer
    "mixed_precision": Said("train in {after} mixed precision", by={"no": "train without mixed precision"}),
    "micro_batch_size": _number("the micro-batch"),
    "gradient_accumulation_steps": Said(
        "accumulate {after} steps instead of {before}", by={1: "accumulate 1 step instead of {before}"}
    ),
    "seq_len": Said(
        "let sequences have {after} tokens instead of {before}",
        "cut sequences at {after} tokens instead of {before}",
    ),
    "optimizer": Said("switch the optimizer from {before} to {after}"),
}  # fmt: skip
"""By the settings' names; no plan changes a setting that is not here."""
