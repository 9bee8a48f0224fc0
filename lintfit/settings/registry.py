"""Every setting that there is, one record each: what it is called, what it may be, who states it, how it is asked for.

What a spec takes, what flags there are, what a script decides, what a plan changes in which way and the tables of
``docs/reference.md`` all come from here. A setting that an engine, a trainer or a model reads needs its record, the
field and the formula in :mod:`lintfit.memory` and the dialects that state it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from lintfit.frozen import frozen
from lintfit.settings.kinds import (
    DEVICE,
    DTYPE,
    FLAG,
    NAMED,
    OF_FILES,
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
    metavar,
)
from lintfit.settings.said import SAID, Said

TRAINERS = ("causal-lm", "classification", "dpo", "kto", "orpo", "cpo", "reward", "grpo", "rloo", "ppo")
"""Whose step is known: transformers' own, of a language model and of a classifier, and TRL's."""

KERNELS = ("cross_entropy", "rms_norm", "rope", "lora", "gated_delta_rule", "mamba_ssm", "causal_conv1d")
"""Kernels that may run in the place of the model's own code. A trainer's (Unsloth, FOAK): the loss that overwrites the
logits with their gradient, RMSNorm, rotary in place, LoRA and the quantised product in one. Those that transformers
takes where their packages are installed: flash-linear-attention's gated delta rule, mamba-ssm's mixer,
causal-conv1d."""

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

By = Literal["", "script", "script-or-deepspeed", "zero-section"]
"""Who decides a setting where one rule serves for several: a script (with the flags of its launch line) or a recipe;
that or the DeepSpeed JSON; the ``zero_optimization`` of a DeepSpeed JSON. Others have a rule of their own in
:mod:`lintfit.run.resolve`."""

_NOTHING = object()


@frozen(eq=False)
class Record:
    """One setting."""

    name: str
    """Also its key in a spec and, with ``-`` for ``_``, its flag."""
    kind: ValueKind = OF_FILES
    help: str = ""
    """One sentence, as ``lintfit estimate --help`` has it."""
    values: str = ""
    """What the reference page says of its values, where its kind does not say it all."""
    metavar: str = ""
    """What stands for a value in a command's help, where its kind has no word for it."""
    flag: Literal["", "spec", "hardware"] = ""
    """Whether it is a flag: of ``estimate`` alone, or also of ``check`` and ``fit``."""
    as_it_is: bool = False
    """Whether what a run has of it becomes the spec's field of the same name."""
    by: By = ""
    lower_bound: Any = _NOTHING
    """The value that needs least memory, taken where one is written that is not statically known."""
    evaluation: str = ""
    """The part of a spec's ``evaluation`` that it is."""
    bits: int = 1
    """After how many edits, each read again, a change of it has to be there."""

    @property
    def in_spec(self) -> bool:
        """Whether a spec has it as a key."""
        return self.kind is not OF_FILES

    @property
    def has_lower_bound(self) -> bool:
        return self.lower_bound is not _NOTHING

    @property
    def said(self) -> Said | None:
        """How a change of it is said; None where no plan changes it."""
        return SAID.get(self.name)

    @property
    def option(self) -> str:
        """Its flag, without the dashes."""
        return self.name.replace("_", "-")

    @property
    def placeholder(self) -> str:
        """What stands for a value in a command's help."""
        return self.metavar or metavar(self.kind)


def _spec(name: str, kind: ValueKind, help: str, *, flag: Literal["spec", "hardware"] = "spec", **more: Any) -> Record:
    """A key of a spec that is a flag."""
    return Record(name, kind, help, flag=flag, **more)


_FSDP = Object(
    {
        "version": Choice((1, 2)),
        "strategy": Choice((*FSDP_GATHERS, "_HYBRID_SHARD_ZERO2")),
        "cpu_offload": FLAG,
        "auto_wrap": FLAG,
    },
    nullable=True,
)
_GENERATION = Object(
    {
        "completion_len": TOKENS,
        "vllm_gpu_memory_utilization": Amount(0, 1),
        "gather_weights": FLAG,
        "steps_per_generation": Count(),
        "vllm_sleeps": FLAG,
        "rollout_batch_size": Count(),
        "mini_batches": Count(),
    },
    nullable=True,
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
        'The GPU: "RTX 3090", "A100-SXM4-80GB", …',
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
    ),
    Record("nodes", Count(), "Machines.", "machines", flag="hardware"),
    Record("host_memory_gib", Amount(0, 2**20, exclusive=True), values="memory of one machine in GiB"),
    # What trains, and what of it
    _spec("method", Choice(("full", "lora")), "full or lora (any --lora flag says lora).",
          as_it_is=True, by="script", lower_bound="lora", bits=5),
    _spec("lora_rank", Count(), "Rank of the adapters.", as_it_is=True, by="script"),
    _spec("lora_targets", TARGETS, "q_proj,v_proj,… or all-linear.", as_it_is=True, by="script"),
    _spec("lora_modules_to_save", Names(), "Modules that train whole beside the adapters.",
          as_it_is=True, by="script", lower_bound=()),
    _spec("lora_dropout", Amount(0, 1), "0 and up.", metavar="SHARE", as_it_is=True, by="script"),
    _spec("lora_dtype", DTYPE, "Of the adapters: fp32, bf16 or fp16.", as_it_is=True, by="script"),
    _spec("use_dora", FLAG, "true or false.", as_it_is=True, by="script"),
    _spec("quantization", QUANTIZATIONS, "Of the frozen base: nf4, nf4-double, int8, gptq-int4 or gptq-int8.",
          as_it_is=True, by="script", lower_bound="nf4", bits=3),
    _spec("quantized_experts", FLAG, "Whether experts that are one parameter are quantised, too (axolotl).",
          values="whether bitsandbytes quantises experts that are one parameter, too: axolotl's "
          "`quantize_moe_experts`; `true`, `false`"),
    _spec("kbit_upcast", Choice(("none", "norms", "all")),
          "none, norms or all: what is cast to fp32 beside a four- or eight-bit base.", metavar="PARTS", as_it_is=True,
          values="which weights beside a quantised base were cast to fp32: `none`, `norms`, `all`"),
    # How a micro-batch is computed
    _spec("gradient_checkpointing", Choice((True, False, "selective")), "true, false or selective.", metavar="BOOL",
          as_it_is=True, by="script", lower_bound=True),
    _spec("use_reentrant", FLAG, "true or false.", as_it_is=True, by="script"),
    _spec("activation_offload", FLAG, "true or false.", as_it_is=True, by="script"),
    _spec("attention", Choice(("eager", "sdpa", "flash_attention_2")), "eager, sdpa or flash_attention_2.",
          as_it_is=True, by="script", lower_bound="flash_attention_2"),
    _spec("padded_batches", FLAG, "Whether a padding mask is passed.", as_it_is=True, by="script", lower_bound=False,
          values="whether a padding mask is passed"),
    _spec("loss", Choice(("full", "chunked", "liger")), "full, chunked or liger.",
          as_it_is=True, by="script", lower_bound="liger"),
    _spec("use_cache", FLAG, "true or false.", as_it_is=True, by="script"),
    _spec("loop_outputs", Choice(("dropped", "backward", "held")),
          "What a loop of one's own holds: dropped, backward or held.", as_it_is=True, by="script",
          values="a loop of the script's own: its outputs are `dropped`, or named through the `backward`, or `held` "
          "until the next"),
    _spec("upcast_outputs", FLAG, "Whether autocast's outputs are copied to fp32 (Accelerate).",
          as_it_is=True, by="script", values="whether autocast's outputs become fp32"),
    _spec("zero_grad", Choice(("step", "forward", "backward", "never")),
          "When gradients go: step, forward, backward or never.", as_it_is=True, by="script",
          values="when a loop's gradients go: `step`, `forward`, `backward`, `never`"),
    _spec("weights_dtype", DTYPE, "As loaded: fp32, bf16 or fp16.", as_it_is=True, by="script", lower_bound="bf16",
          values="as loaded: `fp32`, `bf16`, `fp16`"),
    # Trainers, and models beside the trained one
    _spec("trainer", Choice((*TRAINERS, "sft")),
          "causal-lm, classification, sft, dpo, kto, orpo, cpo, reward, grpo, rloo or ppo.", by="script"),
    _spec("reference_model", FLAG, "Whether a frozen copy stands beside the model.", as_it_is=True, by="script",
          values="whether a frozen copy stands beside the model"),
    Record("num_generations", by="script"),
    Record("max_completion_length", by="script"),
    Record("max_prompt_length", by="script"),
    Record("use_vllm", by="script"),
    Record("vllm_mode", by="script"),
    Record("vllm_gpu_memory_utilization", by="script"),
    Record("ds3_gather_for_generation", by="script"),
    Record("vllm_enable_sleep_mode", by="script"),
    Record("steps_per_generation", by="script"),
    _spec("reward_model", NAMED, "PPO's, a Hugging Face id; the model itself where it is not stated.", by="script",
          values="PPO's, as `model` or `model_config`"),
    _spec("value_model", NAMED, "PPO's, a Hugging Face id; the model itself where it is not stated.", by="script",
          values="PPO's, as `model` or `model_config`"),
    Record("response_length", by="script"),
    Record("rollout_batch_size", by="script"),
    Record("mini_batches", by="script"),
    _spec("frozen_modules", Names(),
          "What full fine-tuning leaves as it is: vision_tower, model.layers[:24], *, !lm_head.",
          as_it_is=True, by="script",
          values="what full fine-tuning leaves as it is ([patterns](memory.md#what-is-trained-and-how))"),
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
          "not stated, and one at the low end"),
    _spec("image_max_pixels", TOKENS, "Pixels that the processor leaves of an image at most (its max_pixels).",
          as_it_is=True, by="script", values="pixels of each image at most"),
    Record("eval_graph", by="script"),
    # Saving, and what a script does in its own way
    Record("whole_state_dict", by="script"),
    Record("torch_compile", by="script"),
    _spec("frozen_models", NAMED, "Models on the GPU that are only asked: IDs, or JSON as in a spec.", metavar="IDS",
          by="script",
          values='models that are only asked, a list of `{"model": …}` or `{"model_config": …}`, with '
          "`weights_dtype`, `quantization` and `scores`"),
    _spec("own_loss", FLAG, "Whether the script makes a loss of its own of the logits.", as_it_is=True, by="script",
          values="whether the script makes a loss of its own of the logits"),
    Record("own_attention", by="script"),
    Record("uncounted", by="script"),
    Record("partly_frozen", by="script"),
    _spec("optimizer_in_backward", FLAG, "true or false.", as_it_is=True, by="script",
          values="whether it steps inside the backward pass"),
    _spec("gradient_as_bucket_view", FLAG, "DDP: whether gradients are views of its buckets (default false).",
          as_it_is=True, by="script",
          values="DDP: whether gradients are views of its buckets, not a copy beside them: `true`, `false` (torch's "
          "default)"),
    _spec("saves", FLAG, "Whether it saves checkpoints, or the model at its end (default true).",
          as_it_is=True, by="script",
          values="whether it saves checkpoints, or the model at its end: `true`, `false`; without it a run saves"),
    Record("eval_generates", by="script"),
    Record("eval_new_tokens", by="script"),
    # The engine
    _spec("engine", Choice(("single", "ddp", "deepspeed", "fsdp")), "single, ddp, deepspeed or fsdp.",
          as_it_is=True, lower_bound="deepspeed"),
    _spec("zero_stage", Choice((0, 1, 2, 3)), "0 to 3.", metavar="N", as_it_is=True, lower_bound=3, values="0 to 3"),
    _spec("offload_optimizer", DEVICE, "none, cpu or nvme.", as_it_is=True, lower_bound="cpu"),
    _spec("offload_param", DEVICE, "none, cpu or nvme.", as_it_is=True, lower_bound="cpu"),
    _spec("deepspeed_config", Object(), "The DeepSpeed JSON. What it states counts, but for what other flags say.",
          metavar="FILE", values="the DeepSpeed JSON, for buckets and thresholds"),
    _spec("zero3_init", FLAG,
          "ZeRO-3: whether the model is partitioned as it loads; false: every GPU takes it whole.",
          values="ZeRO-3: whether the model is partitioned as it loads"),
    _spec("fsdp", _FSDP, 'FULL_SHARD, …, or JSON: {"version": 2, "strategy": "FULL_SHARD", "cpu_offload": false}.',
          metavar="STRATEGY", bits=4,
          values='`{"version": 1, "strategy": "FULL_SHARD", "cpu_offload": false, "auto_wrap": true}`, any of these '
          "keys (`auto_wrap` false: the whole model is one unit, as with `NO_WRAP`); also `HYBRID_SHARD`, "
          "`SHARD_GRAD_OP`, `HYBRID_SHARD_ZERO2`, `NO_SHARD`"),
    _spec("tensor_parallel", Count(), "Ranks that share each matrix."),
    _spec("pipeline_parallel", Count(), "Ranks that share the layers."),
    _spec("sequence_parallel", Count(), "Ranks that share a sequence."),
    _spec("expert_parallel", Count(), "Ranks that share the experts."),
    Record("deepspeed_config_file", bits=2),
    Record("reduce_bucket_size", by="zero-section"),
    Record("stage3_prefetch_bucket_size", by="zero-section"),
    Record("stage3_param_persistence_threshold", by="zero-section"),
    Record("stage3_max_live_parameters", by="zero-section"),
    Record("stage3_max_reuse_distance", by="zero-section"),
    Record("sub_group_size", by="zero-section"),
    # Precision, batch, optimizer
    _spec("mixed_precision", Choice(("no", "bf16", "fp16")), "The trainer's flag: no, bf16 or fp16.", metavar="DTYPE",
          as_it_is=True, lower_bound="bf16", values="the trainer's flag: `no`, `bf16`, `fp16`"),
    _spec("micro_batch_size", Count(), "Sequences per GPU and step.", as_it_is=True, lower_bound=1,
          values="sequences per GPU"),
    _spec("gradient_accumulation_steps", Count(), "Micro-batches per step.", as_it_is=True, lower_bound=1,
          values="micro-batches per step"),
    Record("seq_len", TOKENS, "Tokens of a sequence.", "tokens of a sequence", flag="hardware",
           as_it_is=True, lower_bound=64),
    _spec("optimizer", OPTIMIZER, "transformers' name: adamw_torch, adamw_8bit, adafactor, …",
          values="transformers' names (`adamw_torch`, `adamw_8bit`, `paged_adamw_32bit`, `adafactor`, …)"),
    _spec("max_grad_norm", Amount(), "Clipping's norm; 0 for none.", metavar="NORM", as_it_is=True,
          values="clipping's norm; 0 for none"),
    Record("learning_rate", by="script-or-deepspeed"),
    Record("adam_beta1", by="script-or-deepspeed"),
    Record("adam_beta2", by="script-or-deepspeed"),
    Record("adam_epsilon", by="script-or-deepspeed"),
    Record("weight_decay", by="script-or-deepspeed"),
    Record("warmup_steps", by="script-or-deepspeed"),
    # The rest of a spec
    _spec("generation", _GENERATION, 'A rollout: {"completion_len": 512, "vllm_gpu_memory_utilization": 0.3}.',
          values="a rollout: `completion_len`, `vllm_gpu_memory_utilization`, `vllm_sleeps`, `gather_weights`, "
          "`steps_per_generation`, `rollout_batch_size`, `mini_batches`"),
    _spec("evaluation", _EVALUATION, 'What it evaluates with: {"batch_size": 8, "predictions": "kept"}.',
          values="what it evaluates with, loss or answers: [its keys](memory.md#evaluation)"),
    _spec("images", Count(0), "Images of a sample, for vision-language models.",
          values="[images](memory.md#vision-towers) of a sequence"),
    _spec("image_tiles", Count(), "Pictures that an image becomes, for models that cut it into tiles.",
          values="pictures that each becomes"),
    _spec("image_patches", TOKENS, "Patches of an image before they are merged.", values="patches of each"),
    _spec("front_end", Choice(("transformers", "litgpt")), "transformers or litgpt: whose model and loop.",
          as_it_is=True, values="whose models and loop: `transformers`, `litgpt`"),
    _spec("fused_kernels", Names(KERNELS),
          "Kernels in place of the model's own code: rms_norm,rope,cross_entropy,lora, and those of packages: "
          "gated_delta_rule,mamba_ssm,causal_conv1d."),
    _spec("versions", VERSIONS, "transformers=4.48.1,deepspeed=0.19.8: what differs by version follows it.",
          values='`{"transformers": "4.48.1", "deepspeed": "0.19.8"}`; the newest where absent'),
)  # fmt: skip

SETTINGS: Mapping[str, Record] = {record.name: record for record in _RECORDS}
"""All settings by name, in the order in which they are told."""


def named(*, by: By) -> tuple[str, ...]:
    """The settings that are decided in this way."""
    return tuple(record.name for record in _RECORDS if record.by == by)


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
ZERO_SECTION = frozenset(named(by="zero-section"))
"""Sizes that only the DeepSpeed JSON's ``zero_optimization`` states."""
