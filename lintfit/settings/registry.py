"""Every setting that there is, one record each: what it is called, what it may be, who states it, how it is asked for.

What a spec takes, what flags there are, what a script decides, what a plan changes in which way and the tables of
``docs/reference.md`` all come from here. A setting that an engine, a trainer or a model reads needs its record, the
field and the formula in :mod:`lintfit.memory` and the dialects that state it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from lintfit.settings.kinds import (
    DEVICE,
    DTYPE,
    FLAG,
    NAMED,
    OPTIMIZER,
    TARGETS,
    TOKENS,
    VERSIONS,
    Amount,
    Choice,
    Count,
    Names,
    Object,
    ValueKind,
)
from lintfit.settings.record import By, Record

TRAINERS = ("causal-lm", "classification", "dpo", "kto", "orpo", "cpo", "reward", "grpo", "rloo", "ppo")
"""Whose step is known: transformers' own, of a language model and of a classifier, and TRL's."""

KERNELS = ("cross_entropy", "rms_norm", "rope", "lora", "lora_mlp", "gated_delta_rule", "mamba_ssm", "causal_conv1d")
"""Kernels that may run in the place of the model's own code. A trainer's (Unsloth, FOAK): the loss that overwrites the
logits with their gradient, RMSNorm, rotary in place, LoRA and the quantised product in one, the whole MLP with its
adapters in one. Those that transformers takes where their packages are installed: flash-linear-attention's gated delta
rule, mamba-ssm's mixer, causal-conv1d."""

FSDP_GATHERS: Mapping[str, int] = {
    "FULL_SHARD": 2,
    "HYBRID_SHARD": 2,
    "SHARD_GRAD_OP": 1,
    "HYBRID_SHARD_ZERO2": 1,
    "NO_SHARD": 0,
}
"""FSDP 1's sharding strategies, without the underscore that torch's enum has before the last but one, and how often
each gathers all parameters for a micro-batch: for forward and backward, once for both, or never."""

QUANTIZATIONS = Choice((None, "nf4", "nf4-double", "int8", "gptq-int4", "gptq-int8"))


def _spec(name: str, kind: ValueKind, help: str, *, flag: Literal["spec", "hardware"] = "spec", **more: Any) -> Record:
    """A key of a spec that is a flag."""
    return Record(name, kind, help, flag=flag, **more)


_FSDP = Object(
    {
        "version": Choice((1, 2)),
        "strategy": Choice((*FSDP_GATHERS, "_HYBRID_SHARD_ZERO2")),
        "cpu_offload": FLAG,
        "auto_wrap": FLAG,
        "adapters_apart": FLAG,
    },
    nullable=True,
    defaults={
        "version": 1,
        "strategy": "FULL_SHARD",
        "cpu_offload": False,
        "auto_wrap": True,
        "adapters_apart": True,
    },
)
_GENERATION = Object(
    {
        "completion_len": TOKENS,
        "vllm_gpu_memory_utilization": Amount(0, 1),
        "gather_weights": FLAG,
        "steps_per_generation": Count(),
        "vllm_sleeps": FLAG,
        "vllm_server": FLAG,
        "rollout_batch_size": Count(),
        "mini_batches": Count(),
    },
    nullable=True,
    defaults={
        "vllm_gpu_memory_utilization": 0.0,
        "gather_weights": False,
        "steps_per_generation": None,
        "vllm_sleeps": False,
        "vllm_server": False,
        "rollout_batch_size": 64,  # PPOConfig.local_rollout_forward_batch_size
        "mini_batches": 1,
    },
)
_EVALUATION = Object(
    {
        "batch_size": Count(0),
        "predictions": Choice(("none", "dropped", "gathered", "kept", "held", "listed")),
        "graph": FLAG,
        "accumulation_steps": Count(),
        "concat_batches": FLAG,
        "samples": TOKENS,
        "generates": Choice((True, False, "only")),
        "prompt_len": TOKENS,
        "new_tokens": TOKENS,
        "beams": Count(),
    },
    nullable=True,
    defaults={
        "batch_size": 8,  # TrainingArguments.per_device_eval_batch_size
        "predictions": "none",
        "graph": False,
        "accumulation_steps": None,
        "concat_batches": True,
        "samples": None,
        "generates": False,
        "prompt_len": None,
        "new_tokens": None,
        "beams": 1,
    },
)

_RECORDS = (
    # The model and the hardware
    Record(
        "model",
        NAMED,
        "Hugging Face id, or a folder with a config.json.",
        "a Hugging Face id or a folder with a `config.json`. Ids are known from the catalogue and from the Hugging "
        "Face cache of this machine",
        metavar="ID|FOLDER",
        flag="hardware",
    ),
    Record(
        "model_config",
        NAMED,
        "The model's config.json.",
        "the content of a `config.json`",
        metavar="FILE",
        flag="hardware",
    ),
    Record(
        "gpu",
        NAMED,
        'The GPU: "RTX 3090", "A100-SXM4-80GB", …; auto: that of this machine.',
        "the GPU's name",
        metavar="NAME",
        flag="hardware",
    ),
    Record(
        "gpu_memory_gib",
        Amount(0, 2**16, exclusive=True),
        values="memory of one GPU in GiB, where it is not the GPU's own, or the GPU is not known",
    ),
    Record(
        "gpus",
        Count(),
        "GPUs that there are, over all --nodes, else of each machine; of a spec those it uses.",
        "GPUs that the run uses, over all nodes",
        flag="hardware",
        default=1, default_by="as many as the GPU's name says (`8x3090`), else 1",
    ),
    Record("nodes", Count(), "Machines.", "machines", flag="hardware", default=1),
    Record("host_memory_gib", Amount(0, 2**20, exclusive=True), values="memory of one machine in GiB"),
    # What trains, and what of it
    _spec("method", Choice(("full", "lora")), "full or lora (any --lora flag says lora).",
          as_it_is=True, by="script", lower_bound="lora", bits=5,
          default="full", default_by="`full`; `lora` with any `lora_` key or a quantised base"),
    _spec("lora_rank", Count(), "Rank of the adapters.", as_it_is=True, by="script", lower_bound=1,
          default=8),  # LoraConfig.r
    _spec("lora_targets", TARGETS, "q_proj,v_proj,… or all-linear.", as_it_is=True, by="script", default=None),
    _spec("lora_modules_to_save", Names(), "Modules that train whole beside the adapters.",
          as_it_is=True, by="script", lower_bound=(), default=()),
    _spec("lora_dropout", Amount(0, 1), "0 and up.", metavar="SHARE", as_it_is=True, by="script",
          default=0.0, default_by="0; 0.05 with LitGPT"),
    _spec("lora_dtype", DTYPE, "Of the adapters: fp32, bf16 or fp16.", as_it_is=True, by="script",
          default="fp32", default_by="`fp32`; that of the weights with LitGPT"),
    _spec("use_dora", FLAG, "true or false.", as_it_is=True, by="script", default=False),
    _spec("quantization", QUANTIZATIONS, "Of the frozen base: nf4, nf4-double, int8, gptq-int4 or gptq-int8.",
          as_it_is=True, by="script", lower_bound="nf4", bits=3,
          default=None, default_by="`null`; what the checkpoint is stored in"),
    _spec("quantized_experts", FLAG, "Whether experts that are one parameter are quantised, too (axolotl).",
          values="whether bitsandbytes quantises experts that are one parameter, too: axolotl's "
          "`quantize_moe_experts`; `true`, `false`", as_it_is=True, default=False),
    _spec("kbit_upcast", Choice(("none", "norms", "all")),
          "none, norms or all: what is cast to fp32 beside a four- or eight-bit base.", metavar="PARTS", as_it_is=True,
          values="which weights beside a quantised base were cast to fp32: `none`, `norms`, `all`",
          default=None, default_by="not known"),
    # How a micro-batch is computed
    _spec("gradient_checkpointing", Choice((True, False, "selective")), "true, false or selective.", metavar="BOOL",
          aliases=("checkpointing",), as_it_is=True, by="script", lower_bound=True,
          default=False, default_by="`false`; TRL's with the trainer `sft`"),
    _spec("use_reentrant", FLAG, "true or false.", as_it_is=True, by="script",
          default=False, default_by="`false`; `true` before transformers 5"),
    _spec("activation_offload", FLAG, "true or false.", as_it_is=True, by="script", default=False),
    _spec("attention", Choice(("eager", "sdpa", "flash_attention_2")), "eager, sdpa or flash_attention_2.",
          as_it_is=True, by="script", lower_bound="flash_attention_2", default="sdpa"),
    _spec("padded_batches", FLAG, "Whether a padding mask is passed.", as_it_is=True, by="script", lower_bound=False,
          values="whether a padding mask is passed", default=False, default_by="`false`; `true` with PPO"),
    _spec("loss", Choice(("full", "chunked", "liger")), "full, chunked or liger.",
          as_it_is=True, by="script", lower_bound="liger",
          default="full", default_by="`full`; TRL's with the trainer `sft`", bits=2),
    _spec("use_cache", FLAG, "true or false.", as_it_is=True, by="script", default=False),
    _spec("loop_outputs", Choice(("dropped", "backward", "held")),
          "What a loop of one's own holds: dropped, backward or held.", as_it_is=True, by="script",
          values="a loop of the script's own: its outputs are `dropped`, or named through the `backward`, or `held` "
          "until the next", default="dropped"),
    _spec("upcast_outputs", FLAG, "Whether autocast's outputs are copied to fp32 (Accelerate).",
          as_it_is=True, by="script", values="whether autocast's outputs become fp32", default=True),
    _spec("zero_grad", Choice(("step", "forward", "backward", "never")),
          "When gradients go: step, forward, backward or never.", as_it_is=True, by="script",
          values="when a loop's gradients go: `step`, `forward`, `backward`, `never`", default="step"),
    _spec("weights_dtype", DTYPE, "As loaded: fp32, bf16 or fp16.", as_it_is=True, by="script", lower_bound="bf16",
          values="as loaded: `fp32`, `bf16`, `fp16`", aliases=("dtype", "torch-dtype"),
          default="bf16", default_by="the checkpoint's, else `bf16`; `fp32` before transformers 5"),
    # Trainers, and models beside the trained one
    _spec("trainer", Choice((*TRAINERS, "sft")),
          "causal-lm, classification, sft, dpo, kto, orpo, cpo, reward, grpo, rloo or ppo.", by="script",
          default="causal-lm"),
    _spec("reference_model", FLAG, "Whether a frozen copy stands beside the model.", as_it_is=True, by="script",
          lower_bound=False,
          values="whether a frozen copy stands beside the model",
          default=False, default_by="`true` for the trainers that make one of a model that trains whole"),
    Record("num_generations", by="script"),
    Record("packing", by="script"),
    Record("pads_to_length", by="script"),
    Record("joins_samples", by="script"),
    Record("oft_block_size", by="script"),
    Record("tuner_width", by="script"),
    Record("max_completion_length", by="script"),
    Record("max_prompt_length", by="script"),
    Record("use_vllm", by="script"),
    Record("vllm_mode", by="script"),
    Record("vllm_device", by="script"),
    Record("vllm_gpu_memory_utilization", by="script"),
    Record("ds3_gather_for_generation", by="script"),
    Record("vllm_enable_sleep_mode", by="script"),
    Record("steps_per_generation", by="script"),
    _spec("reward_model", NAMED, "PPO's, a Hugging Face id; the model itself where it is not stated.", by="script",
          values="PPO's, as `model` or `model_config`", default=None, default_by="the model"),
    _spec("value_model", NAMED, "PPO's, a Hugging Face id; the model itself where it is not stated.", by="script",
          values="PPO's, as `model` or `model_config`", default=None, default_by="the reward model"),
    Record("response_length", by="script", default=53),  # PPOConfig
    Record("rollout_batch_size", by="script"),
    Record("mini_batches", by="script"),
    _spec("frozen_modules", Names(),
          "What full fine-tuning leaves as it is: vision_tower, model.layers[:24], *, !lm_head.",
          as_it_is=True, by="script",
          values="what full fine-tuning leaves as it is ([patterns](memory.md#what-is-trained-and-how))", default=()),
    Record("text_only", by="script"),
    # Evaluation
    Record("eval_batch_size", by="script", evaluation="batch_size"),
    Record("eval_accumulation_steps", by="script", evaluation="accumulation_steps"),
    Record("eval_do_concat_batches", by="script"),
    Record("eval_predictions", by="script", evaluation="predictions"),
    Record("predict_with_generate", by="script"),
    Record("generation_num_beams", by="script"),
    _spec("decoder_seq_len", TOKENS,
          "Tokens that a decoder makes of --seq-len that an encoder reads; as many where not stated.",
          as_it_is=True, by="script",
          values="tokens of what a decoder makes of the `seq_len` that an encoder reads (T5, mT5); as many where it is "
          "not stated, and one at the low end", default=None, default_by="`seq_len`"),
    _spec("mean_seq_len", TOKENS, "Tokens of a sample in the mean; --seq-len is then the longest.",
          values="tokens of a sample in the mean, where `seq_len` is the longest: the estimate says what that takes "
          "beside it", default=None, default_by="`seq_len`", aliases=("mean-len", "mean-length")),
    _spec("image_max_pixels", TOKENS, "Pixels that the processor leaves of an image at most (its max_pixels).",
          as_it_is=True, by="script", values="pixels of each image at most",
          default=None, default_by="the published bound"),
    Record("eval_graph", by="script"),
    # Saving, and what a script does in its own way
    Record("whole_state_dict", by="script"),
    Record("gathered_state_dict", by="script"),
    Record("torch_compile", by="script"),
    _spec("frozen_models", NAMED, "Models on the GPU that are only asked: IDs, or JSON as in a spec.", metavar="IDS",
          by="script",
          values='models that are only asked, a list of `{"model": …}` or `{"model_config": …}`, with '
          "`weights_dtype`, `quantization`, `scores` and `prepared` (by Accelerate: FSDP shards it)", default=()),
    _spec("own_loss", FLAG, "Whether the script makes a loss of its own of the logits.", as_it_is=True, by="script",
          values="whether the script makes a loss of its own of the logits", default=False),
    Record("own_attention", by="script"),
    Record("own_kernels", by="script"),
    Record("forward_pass", by="script"),
    Record("own_head", by="script"),
    Record("uncounted", by="script"),
    Record("own_evaluation", by="script"),
    Record("partly_frozen", by="script"),
    Record("fsdp_upcast", by="script"),
    _spec("optimizer_in_backward", FLAG, "true or false.", as_it_is=True, by="script",
          values="whether it steps inside the backward pass", default=False),
    _spec("sync_each_batch", FLAG, "true or false.", as_it_is=True, by="script",
          values="FSDP: whether the gradients of every micro-batch are reduced, not only those of a step's last "
          "(Accelerate's `sync_each_batch`)", default=False),
    _spec("gradient_as_bucket_view", FLAG, "DDP: whether gradients are views of its buckets (default false).",
          as_it_is=True, by="script",
          values="DDP: whether gradients are views of its buckets, not a copy beside them: `true`, `false` (torch's "
          "default)", default=False),
    _spec("saves", FLAG, "Whether it saves checkpoints, or the model at its end (default true).",
          as_it_is=True, by="script",
          values="whether it saves checkpoints, or the model at its end: `true`, `false`; without it a run saves",
          default=True),
    _spec("resumes", FLAG, "Whether it goes on from a checkpoint (default false).", as_it_is=True, by="script",
          values="whether it goes on from a checkpoint, with its optimizer's states: `true`, `false`",
          default=False, lower_bound=False, aliases=("resume",)),
    _spec("merges", FLAG, "Whether adapters are merged into the model on the host (default false).", as_it_is=True,
          by="script", values="whether the adapters are merged into the model on the host: `true`, `false`",
          default=False, lower_bound=False, aliases=("merge",)),
    Record("eval_generates", by="script"),
    Record("eval_new_tokens", by="script"),
    # The engine
    _spec("engine", Choice(("single", "ddp", "deepspeed", "fsdp")), "single, ddp, deepspeed or fsdp.",
          as_it_is=True, lower_bound="deepspeed",
          default="single",
          default_by="`deepspeed` with a stage or its JSON, `fsdp` with `fsdp`, else `ddp` on several GPUs, "
          "`single` on one"),
    _spec("zero_stage", Choice((0, 1, 2, 3)), "0 to 3.", metavar="N", by="zero", as_it_is=True, lower_bound=3,
          values="0 to 3", default=0, aliases=("zero", "stage")),
    _spec("offload_optimizer", DEVICE, "none, cpu or nvme.", by="zero", as_it_is=True, lower_bound="cpu",
          default="none"),
    _spec("offload_param", DEVICE, "none, cpu or nvme.", by="zero", as_it_is=True, lower_bound="cpu",
          default="none"),
    _spec("deepspeed_config", Object(), "The DeepSpeed JSON. What it states counts, but for what other flags say.",
          metavar="FILE",
          values="the DeepSpeed JSON, for buckets and thresholds; it also counts for keys that are not stated"),
    _spec("zero3_init", FLAG,
          "ZeRO-3: whether the model is partitioned as it loads; false: every GPU takes it whole.",
          values="ZeRO-3: whether the model is partitioned as it loads", default=True),
    _spec("fsdp", _FSDP, 'FULL_SHARD, …, or JSON: {"version": 2, "strategy": "FULL_SHARD", "cpu_offload": false}.',
          metavar="STRATEGY", bits=4,
          values='`{"version": 1, "strategy": "FULL_SHARD", "cpu_offload": false, "auto_wrap": true}`, any of these '
          "keys (`auto_wrap` false: the whole model is one unit, as with `NO_WRAP`; `adapters_apart` false: FSDP 1 has "
          "adapters in the units of their layers, as without PEFT's policy); also `HYBRID_SHARD`, "
          "`SHARD_GRAD_OP`, `HYBRID_SHARD_ZERO2`, `NO_SHARD`",
          default=None, default_by="`null`; with the engine `fsdp` as shown"),
    _spec("tensor_parallel", Count(), "Ranks that share each matrix.", by="split", default=1),
    _spec("pipeline_parallel", Count(), "Ranks that share the layers.", by="split", default=1),
    _spec("sequence_parallel", Count(), "Ranks that share a sequence.", by="split", default=1),
    _spec("expert_parallel", Count(), "Ranks that share the experts.", default=1),
    Record("deepspeed_config_file", bits=2),
    Record("reduce_bucket_size", by="zero-section"),
    Record("stage3_prefetch_bucket_size", by="zero-section"),
    Record("stage3_param_persistence_threshold", by="zero-section"),
    Record("stage3_max_live_parameters", by="zero-section"),
    Record("stage3_max_reuse_distance", by="zero-section"),
    Record("sub_group_size", by="zero-section"),
    # Precision, batch, optimizer
    _spec("mixed_precision", Choice(("no", "bf16", "fp16")), "The trainer's flag: no, bf16 or fp16.", metavar="DTYPE",
          as_it_is=True, lower_bound="bf16", bits=2, values="the trainer's flag: `no`, `bf16`, `fp16`",
          default="no", default_by="`no`; TRL's with the trainer `sft`"),
    _spec("micro_batch_size", Count(), "Sequences per GPU and step.", as_it_is=True, lower_bound=1,
          values="sequences per GPU", default=8,
          aliases=("micro-batch", "batch", "batch-size")),  # TrainingArguments.per_device_train_batch_size
    _spec("gradient_accumulation_steps", Count(), "Micro-batches per step.", as_it_is=True, lower_bound=1,
          values="micro-batches per step", default=1, aliases=("gradient-accumulation", "grad-accum")),
    Record("seq_len", TOKENS, "Tokens of a sequence.", "tokens of a sequence", flag="hardware",
           aliases=("seq-length", "max-seq-len", "max-length", "sequence-length"), as_it_is=True, lower_bound=64,
           default=2048,
           default_by="2048, or the model's positions where they are fewer; TRL's with the trainer `sft`"),
    _spec("optimizer", OPTIMIZER, "transformers' name: adamw_torch, adamw_8bit, adafactor, …",
          values="transformers' names (`adamw_torch`, `adamw_8bit`, `paged_adamw_32bit`, `adafactor`, …)",
          lower_bound="sgd", default="adamw_torch_fused",
          default_by="`adamw_torch_fused`; `adamw_torch` before transformers 5"),
    _spec("max_grad_norm", Amount(), "Clipping's norm; 0 for none.", metavar="NORM", as_it_is=True,
          values="clipping's norm; 0 for none", default=1.0),
    Record("learning_rate", by="script-or-deepspeed"),
    Record("adam_beta1", by="script-or-deepspeed"),
    Record("adam_beta2", by="script-or-deepspeed"),
    Record("adam_epsilon", by="script-or-deepspeed"),
    Record("weight_decay", by="script-or-deepspeed"),
    Record("warmup_steps", by="script-or-deepspeed"),
    # The rest of a spec
    _spec("generation", _GENERATION, 'A rollout: {"completion_len": 512, "vllm_gpu_memory_utilization": 0.3}.',
          values="a rollout: `completion_len`, `vllm_gpu_memory_utilization`, `vllm_sleeps`, `vllm_server`, "
          "`gather_weights`, `steps_per_generation`, `rollout_batch_size`, `mini_batches`",
          default=None, default_by="none; TRL's rollouts with its trainers that generate"),
    _spec("evaluation", _EVALUATION, 'What it evaluates with: {"batch_size": 8, "predictions": "kept"}.',
          values="what it evaluates with, loss or answers: [its keys](memory.md#evaluation)",
          default=None, default_by="a batch of the training's size is counted"),
    _spec("images", Count(0), "Images of a sample, for vision-language models.", flag="hardware", as_it_is=True,
          values="[images](memory.md#vision-towers) of a sequence", default=None, default_by="not known"),
    _spec("image_tiles", Count(), "Pictures that an image becomes, for models that cut it into tiles.",
          values="pictures that each becomes", default=None, default_by="not known"),
    _spec("image_patches", TOKENS, "Patches of an image before they are merged.", values="patches of each",
          default=None, default_by="those of the config's size"),
    _spec("front_end", Choice(("transformers", "litgpt", "torchtune")),
          "transformers, litgpt or torchtune: whose model and loop.",
          as_it_is=True, by="script", values="whose models and loop: `transformers`, `litgpt`, `torchtune`",
          default="transformers"),
    _spec("fused_kernels", Names(KERNELS),
          "Kernels in place of the model's own code: rms_norm,rope,cross_entropy,lora,lora_mlp, and those of packages: "
          "gated_delta_rule,mamba_ssm,causal_conv1d.", default=()),
    _spec("versions", VERSIONS, "transformers=4.48.1,deepspeed=0.19.8: what differs by version follows it.",
          values='`{"transformers": "4.48.1", "deepspeed": "0.19.8"}`; the newest where absent'),
)  # fmt: skip

SETTINGS: Mapping[str, Record] = {record.name: record for record in _RECORDS}
"""All settings by name, in the order in which they are told."""


BY_FLAG: Mapping[str, str] = {
    other: record.name for record in _RECORDS if record.flag for other in (record.option, *record.aliases)
}
"""Settings by every name that their flags have."""


def named(*, by: By) -> tuple[str, ...]:
    """The settings that are decided in this way."""
    return tuple(record.name for record in _RECORDS if record.by == by)


def default(name: str, part: str = "") -> Any:
    """What a setting is where nobody states it; of one that is an object, what this part of it is.

    Raises LookupError for one that has no default of its own.
    """
    record = SETTINGS[name]
    if part:
        assert isinstance(record.kind, Object)
        return record.kind.defaults[part]
    if not record.has_default:
        raise LookupError(name)
    return record.default


def flags(kind: Literal["spec", "hardware"]) -> Iterator[Record]:
    """The settings that are flags of this kind."""
    return (record for record in _RECORDS if record.flag == kind)


LOWER_BOUNDS: Mapping[str, Any] = {record.name: record.lower_bound for record in _RECORDS if record.has_lower_bound}
"""What to take for a setting that is written but not statically known: the value that needs least memory.

A run that does not fit even so does not fit; any better verdict is not known.
"""
AS_THEY_ARE = tuple(record.name for record in _RECORDS if record.as_it_is)
"""Settings of a run that become the spec's field of the same name."""
EVALUATED: Mapping[str, str] = {record.name: record.evaluation for record in _RECORDS if record.evaluation}
"""Settings of the evaluation, by their names in the spec's ``evaluation``."""
ZERO = named(by="zero")
"""ZeRO's stage and what of it is offloaded."""
SPLITS = named(by="split")
"""How many ranks share a model or a sequence."""
NUMERICS = frozenset(named(by="script-or-deepspeed"))
"""What the optimizer computes with, which changes no byte."""
ZERO_SECTION = frozenset(named(by="zero-section"))
"""Sizes that only the DeepSpeed JSON's ``zero_optimization`` states."""
