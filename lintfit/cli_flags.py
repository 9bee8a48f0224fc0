"""The flags that several commands share: the hardware, and the keys of a spec."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import click

HARDWARE: Mapping[str, tuple[str, str]] = {
    "gpu": ("NAME", 'The card: "RTX 3090", "A100-SXM4-80GB", …'),
    "gpus": ("N", "Cards that there are, over all --nodes, else of each machine; of a spec those it uses."),
    "nodes": ("N", "Machines."),
    "gpu-memory": ("SIZE", "Memory of one card, where it is not the card's own: 23.7GiB."),
    "host-memory": ("SIZE", "Memory of one machine: 256GiB."),
    "nvme-path": ("FOLDER", "Where plans may offload to: a folder on the machines' own NVMe drive."),
    "model": ("ID|FOLDER", "Hugging Face id, or a folder with a config.json."),
    "model-config": ("FILE", "The model's config.json."),
    "seq-len": ("N", "Tokens of a sequence."),
}

SPEC: Mapping[str, tuple[str, str]] = {
    "engine": ("NAME", "single, ddp, deepspeed or fsdp."),
    "zero-stage": ("N", "0 to 3."),
    "offload-optimizer": ("DEVICE", "none, cpu or nvme."),
    "offload-param": ("DEVICE", "none, cpu or nvme."),
    "deepspeed-config": ("FILE", "The DeepSpeed JSON. What it states counts, but for what other flags say."),
    "fsdp": ("STRATEGY", 'FULL_SHARD, …, or JSON: {"version": 2, "strategy": "FULL_SHARD", "cpu_offload": false}.'),
    "tensor-parallel": ("N", "Ranks that share each matrix."),
    "pipeline-parallel": ("N", "Ranks that share the layers."),
    "sequence-parallel": ("N", "Ranks that share a sequence."),
    "expert-parallel": ("N", "Ranks that share the experts."),
    "weights-dtype": ("DTYPE", "As loaded: fp32, bf16 or fp16."),
    "mixed-precision": ("DTYPE", "The trainer's flag: no, bf16 or fp16."),
    "method": ("NAME", "full or lora (any --lora flag says lora)."),
    "lora-rank": ("N", "Rank of the adapters."),
    "lora-targets": ("NAMES", "q_proj,v_proj,… or all-linear."),
    "frozen-modules": (
        "NAMES",
        "What full fine-tuning leaves as it is: vision_tower, model.layers[:24], *, !lm_head.",
    ),
    "lora-modules-to-save": ("NAMES", "Modules that train whole beside the adapters."),
    "lora-dtype": ("DTYPE", "Of the adapters: fp32, bf16 or fp16."),
    "lora-dropout": ("SHARE", "0 and up."),
    "use-dora": ("BOOL", "true or false."),
    "quantization": ("NAME", "Of the frozen base: nf4, nf4-double, int8, gptq-int4 or gptq-int8."),
    "quantized-experts": ("BOOL", "Whether experts that are one parameter are quantised, too (axolotl)."),
    "optimizer": ("NAME", "transformers' name: adamw_torch, adamw_8bit, adafactor, …"),
    "optimizer-in-backward": ("BOOL", "true or false."),
    "micro-batch-size": ("N", "Sequences per card and step."),
    "decoder-seq-len": (
        "N",
        "Tokens that a decoder makes of --seq-len that an encoder reads; as many where not stated.",
    ),
    "gradient-accumulation-steps": ("N", "Micro-batches per step."),
    "gradient-checkpointing": ("BOOL", "true, false or selective."),
    "use-reentrant": ("BOOL", "true or false."),
    "activation-offload": ("BOOL", "true or false."),
    "attention": ("NAME", "eager, sdpa or flash_attention_2."),
    "padded-batches": ("BOOL", "Whether a padding mask is passed."),
    "loss": ("NAME", "full, chunked or liger."),
    "use-cache": ("BOOL", "true or false."),
    "loop-outputs": ("NAME", "What a loop of one's own holds: dropped, backward or held."),
    "upcast-outputs": ("BOOL", "Whether autocast's outputs are copied to fp32 (Accelerate)."),
    "zero-grad": ("NAME", "When gradients go: step, forward, backward or never."),
    "max-grad-norm": ("NORM", "Clipping's norm; 0 for none."),
    "trainer": ("NAME", "causal-lm, classification, sft, dpo, kto, orpo, cpo, reward, grpo, rloo or ppo."),
    "reference-model": ("BOOL", "Whether a frozen copy stands beside the model."),
    "generation": ("JSON", 'A rollout: {"completion_len": 512, "vllm_gpu_memory_utilization": 0.3}.'),
    "evaluation": ("JSON", 'What it evaluates with: {"batch_size": 8, "predictions": "kept"}.'),
    "gradient-as-bucket-view": ("BOOL", "DDP: whether gradients are views of its buckets (default false)."),
    "saves": ("BOOL", "Whether it saves checkpoints, or the model at its end (default true)."),
    "reward-model": ("ID", "PPO's, a Hugging Face id; the model itself where it is not stated."),
    "value-model": ("ID", "PPO's, a Hugging Face id; the model itself where it is not stated."),
    "frozen-models": ("IDS", "Models on the card that are only asked: IDs, or JSON as in a spec."),
    "own-loss": ("BOOL", "Whether the script makes a loss of its own of the logits."),
    "images": ("N", "Images of a sample, for models that see."),
    "image-tiles": ("N", "Pictures that an image becomes, for models that cut it into tiles."),
    "image-max-pixels": ("N", "Pixels that the processor leaves of an image at most (its max_pixels)."),
    "image-patches": ("N", "Patches of an image before they are merged."),
    "front-end": ("NAME", "transformers or litgpt: whose model and loop."),
    "kbit-upcast": ("PARTS", "none, norms or all: what is cast to fp32 beside a four- or eight-bit base."),
    "zero3-init": ("BOOL", "ZeRO-3: whether the model is partitioned as it loads; false: every card takes it whole."),
    "fused-kernels": (
        "NAMES",
        "Kernels in place of the model's own code: rms_norm,rope,cross_entropy,lora, and those of packages: "
        "gated_delta_rule,mamba_ssm,causal_conv1d.",
    ),
    "versions": ("NAMES", "transformers=4.48.1,deepspeed=0.19.8: what differs by version follows it."),
}


_Command = Callable[..., Any]


def flags(named: Mapping[str, tuple[str, str]]) -> Callable[[_Command], _Command]:
    """A decorator that adds flags to a command: metavar and help by name."""

    def add(command: _Command) -> _Command:
        for name, (metavar, text) in reversed(list(named.items())):
            command = click.option(f"--{name}", metavar=metavar, help=text)(command)
        return command

    return add


def given(values: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """What click was given for flags, by their names on the command line; None for those that are not there."""
    return {name: values[name.replace("-", "_")] for name in names}


def color_option(command: _Command) -> _Command:
    choice = click.Choice(["auto", "always", "never"])
    return click.option("--color", type=choice, default="auto", help="Colours (NO_COLOR and FORCE_COLOR count).")(
        command
    )
