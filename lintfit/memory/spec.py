"""The input of the memory model: one training run as plain values, in the words of ``estimate --spec``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from lintfit.catalog.facts import Gpu, ModelFacts
from lintfit.catalog.quantized import loaded_whole
from lintfit.frozen import field, frozen
from lintfit.settings.registry import LOWER_BOUNDS, default
from lintfit.settings.values import Fsdp

GIB = 2**30

Engine = Literal["single", "ddp", "deepspeed", "fsdp"]
Dtype = Literal["fp32", "bf16", "fp16"]
Device = Literal["none", "cpu", "nvme"]
FrontEnd = Literal["transformers", "litgpt", "torchtune"]
ZeroGrad = Literal["step", "forward", "backward", "never"]
Trainer = Literal["causal-lm", "classification", "dpo", "kto", "orpo", "cpo", "reward", "grpo", "rloo", "ppo"]
OWN_LOSS = frozenset({"causal-lm", "classification"})
"""Of these what the model's own forward computes the loss of: with transformers' Trainer, or in a loop."""
SCORING = frozenset({"classification", "reward"})
"""Trainers of a model with a few scores in the place of the output layer (``AutoModelForSequenceClassification``)."""

DTYPE_BYTES: Mapping[str, int] = {"fp32": 4, "bf16": 2, "fp16": 2}

Stage = Literal["first", "last"]
STAGES: tuple[Stage, Stage] = ("first", "last")
"""Stages of a pipeline that may need most; those between have neither embedding nor head."""


@frozen
class Generation:
    """What a GRPO/PPO-like trainer adds: rollouts, on the training GPU or elsewhere. Tokens are per sequence."""

    completion_len: int
    vllm_gpu_memory_utilization: float = default("generation", "vllm_gpu_memory_utilization")
    """Share of the GPU that a colocated vLLM reserves; 0 for none."""
    gather_weights: bool = default("generation", "gather_weights")
    """Whether the full weights are gathered on every rank to generate, where they are sharded (ZeRO-3)."""
    steps_per_generation: int | None = default("generation", "steps_per_generation")
    """Micro-batches that are generated at once; None for TRL's default, the steps of accumulation."""
    vllm_sleeps: bool = default("generation", "vllm_sleeps")
    """Whether a colocated vLLM gives its memory back while the model trains (``vllm_enable_sleep_mode``)."""
    vllm_server: bool = default("generation", "vllm_server")
    """Whether a vLLM on other GPUs generates, so that no keys and values are kept on the trainer's."""
    rollout_batch_size: int = default("generation", "rollout_batch_size")
    """PPO: sequences that are generated and scored at once (``local_rollout_forward_batch_size``)."""
    mini_batches: int = default("generation", "mini_batches")
    """PPO: parts that a rank's batch is trained on one after the other (``num_mini_batches``)."""


@frozen
class Evaluation:
    """What a run evaluates with between its steps: the Trainer (``Trainer.evaluation_loop``), or a loop of its own.

    ``batch_size``: sequences of one batch on a rank; 0 for a run that never evaluates.
    """

    batch_size: int
    predictions: Literal["none", "dropped", "gathered", "kept", "held", "listed"] = default("evaluation", "predictions")
    """What becomes of the logits: none are given back (``prediction_loss_only``, or no ``compute_metrics``); they are
    reduced on each rank (``preprocess_logits_for_metrics``); a batch's are gathered and go after it
    (``batch_eval_metrics``); they are gathered and kept for ``compute_metrics``. In a loop of the script's own: its
    variable holds a batch's while the next is computed; a list holds those of all batches."""
    accumulation_steps: int | None = default("evaluation", "accumulation_steps")
    """Batches after which what is kept goes to the host (``eval_accumulation_steps``); None for the whole set's."""
    concat_batches: bool = default("evaluation", "concat_batches")
    """Whether every batch is put together with those before it (``eval_do_concat_batches``)."""
    samples: int | None = default("evaluation", "samples")
    """Samples of the evaluation set; None where nobody says."""
    generates: bool | Literal["only"] = default("evaluation", "generates")
    """Whether an answer is generated to each sample (``predict_with_generate``), beside the loss or without it."""
    beams: int = default("evaluation", "beams")
    """Beams of that (``generation_num_beams``)."""
    graph: bool = default("evaluation", "graph")
    """Whether gradients are on, so that each batch makes its graph, which nothing checkpoints in evaluation mode."""
    prompt_len: int | None = default("evaluation", "prompt_len")
    """Tokens of a prompt at the most; None where nobody says: as long as the training's sequences."""
    new_tokens: int | None = default("evaluation", "new_tokens")
    """Tokens of an answer at the most (``max_new_tokens``)."""


@frozen
class FrozenModel:
    """A model that lies beside the trained one and is only asked: a teacher, a judge, GRPO's reward model."""

    facts: ModelFacts
    weights_dtype: Dtype = "bf16"
    quantization: Literal["nf4", "nf4-double", "int8", "gptq-int4", "gptq-int8"] | None = None
    scores: bool = False
    """Whether it has a few scores in the place of the output layer (``AutoModelForSequenceClassification``)."""
    prepared: bool = False
    """Whether Accelerate prepares it as it does the trained one (no ``evaluation_mode``)."""


@frozen
class Encoded:
    """What an encoder reads: tokens of a sequence, and whether a mask is passed with them."""

    seq_len: int
    padded: bool


@frozen
class Spec:
    """One rank of one run. Field names are the contract's keys; sizes are bytes, sequences are tokens.

    ``gpus`` counts all ranks over all nodes. ``capacity_bytes`` is what torch sees of one GPU, None where
    the hardware is unknown. ``stated`` names the fields that somebody stated; the estimate lists the others
    that mattered as assumptions. ``deepspeed_config`` is the JSON as DeepSpeed will see it ("auto" filled).
    """

    facts: ModelFacts
    gpu: Gpu | None = None
    capacity_bytes: int | None = None
    gpus: int = default("gpus")
    nodes: int = default("nodes")
    host_memory_bytes: int | None = None
    engine: Engine = default("engine")
    zero_stage: Literal[0, 1, 2, 3] = default("zero_stage")
    offload_optimizer: Device = default("offload_optimizer")
    offload_param: Device = default("offload_param")
    deepspeed_config: Mapping[str, Any] = field(default_factory=dict)
    fsdp: Fsdp | None = default("fsdp")
    tensor_parallel: int = default("tensor_parallel")
    pipeline_parallel: int = default("pipeline_parallel")
    pipeline_stage: Stage | None = None
    """Of a pipeline the stage that is counted; None for the one that needs most (:func:`.estimator.estimate`)."""
    sequence_parallel: int = default("sequence_parallel")
    expert_parallel: int = default("expert_parallel")
    weights_dtype: Dtype = default("weights_dtype")
    mixed_precision: Literal["no", "bf16", "fp16"] = default("mixed_precision")
    method: Literal["full", "lora"] = default("method")
    lora_rank: int = default("lora_rank")
    lora_targets: tuple[str, ...] | Literal["all-linear"] | None = default("lora_targets")
    lora_modules_to_save: tuple[str, ...] = default("lora_modules_to_save")
    lora_dtype: Dtype = default("lora_dtype")
    lora_dropout: float = default("lora_dropout")
    use_dora: bool = default("use_dora")
    quantization: Literal["nf4", "nf4-double", "int8", "gptq-int4", "gptq-int8"] | None = default("quantization")
    quantized_experts: bool = default("quantized_experts")
    """Whether bitsandbytes quantises experts that are one parameter, too (axolotl's ``quantize_moe_experts``)."""
    optimizer: str = default("optimizer")
    optimizer_in_backward: bool = default("optimizer_in_backward")
    micro_batch_size: int = LOWER_BOUNDS["micro_batch_size"]
    """Of a run that nobody states it for the least; a JSON spec without it has the Trainer's (:mod:`.reading`)."""
    gradient_accumulation_steps: int = default("gradient_accumulation_steps")
    seq_len: int = default("seq_len")
    mean_seq_len: int | None = default("mean_seq_len")
    """Tokens of a sample in the mean, where ``seq_len`` is that of the longest."""
    decoder_seq_len: int | None = default("decoder_seq_len")
    """Tokens that a decoder gets where an encoder reads ``seq_len``; None where nobody says: as many."""
    encoded: Encoded | None = None
    """What the encoder has read, where this is what its decoder runs (:mod:`.micro_batch.encoder_decoder`)."""
    gradient_checkpointing: bool | Literal["selective"] = default("gradient_checkpointing")
    use_reentrant: bool = default("use_reentrant")
    activation_offload: bool = default("activation_offload")
    attention: Literal["eager", "sdpa", "flash_attention_2"] = default("attention")
    padded_batches: bool = default("padded_batches")
    loss: Literal["full", "chunked", "liger"] = default("loss")
    use_cache: bool = default("use_cache")
    loop_outputs: Literal["dropped", "backward", "held"] = default("loop_outputs")
    """What becomes of the model's outputs in the loop that trains: gone before the backward pass, as in the Trainer;
    held by a function's variable through it; or by the loop's until the next micro-batch has its own."""
    zero_grad: ZeroGrad = default("zero_grad")
    """When a loop of the script's own lets go of its gradients: behind the optimizer's step, as the Trainer; in front
    of the forward pass, or of the backward pass; or never, where they are filled with zeros."""
    upcast_outputs: bool = default("upcast_outputs")
    """Whether Accelerate, or Fabric, hands on in fp32 what comes out of autocast."""
    max_grad_norm: float = default("max_grad_norm")
    trainer: Trainer = default("trainer")
    front_end: FrontEnd = default("front_end")
    """Whose models and training loop run: LitGPT writes its own."""
    fused_kernels: tuple[str, ...] = default("fused_kernels")
    """Kernels in the place of the model's own code: of :data:`lintfit.settings.registry.KERNELS`."""
    kbit_upcast: Literal["none", "norms", "all"] | None = default("kbit_upcast")
    """bitsandbytes bases: which unquantised weights were cast to fp32.

    ``all``: PEFT's ``prepare_model_for_kbit_training``; ``norms``: TRL, which casts embeddings and head back; None
    where nobody knows.
    """
    reference_model: bool = default("reference_model")
    reward_model: ModelFacts | None = default("reward_model")
    """PPO: the model that scores answers; None for one of the policy's architecture."""
    value_model: ModelFacts | None = default("value_model")
    """PPO: the model that is trained beside the policy; None for one of the reward model's architecture."""
    frozen_models: tuple[FrozenModel, ...] = default("frozen_models")
    """Models beside the trained one that nobody has named yet, on every rank's GPU."""
    own_loss: bool = default("own_loss")
    """Whether the script makes a loss of its own of the logits, in the place of the model's or beside it."""
    uncounted: tuple[str, ...] = ()
    """What runs in a step beside one pass of the model, in words: nobody has counted it, so no verdict stands on it."""
    generation: Generation | None = default("generation")
    evaluation: Evaluation | None = default("evaluation")
    """What the run evaluates with; None where nobody says: a batch of the training's size is counted."""
    frozen_modules: tuple[str, ...] = default("frozen_modules")
    """What a full fine-tuning leaves as it is, as patterns (``vision_tower``; :mod:`.tensors.frozen_parts`)."""
    images: int | None = default("images")
    """Images in each sequence of a vision-language model; None where nobody knows."""
    image_patches: int | None = default("image_patches")
    """Patches of each, where images are not all of the config's size."""
    image_max_pixels: int | None = default("image_max_pixels")
    """Pixels of each at the most, where images keep their size: the processor's bound; None for the published one."""
    image_tiles: int | None = default("image_tiles")
    """Pictures that the encoder gets of each, where the model cuts images into tiles (the whole beside them counts)."""
    zero3_init: bool = default("zero3_init")
    """ZeRO-3: whether the model is partitioned while it loads (False: every rank loads a full copy first)."""
    loaded_on_gpu: bool = False
    """Whether a full, unsharded copy is moved to the GPU before the engine shards it."""
    placed_by_tensor: bool = False
    """Whether each tensor goes to the GPU as it is read (``device_map``), not the model when it is whole."""
    sync_each_batch: bool = default("sync_each_batch")
    gradient_as_bucket_view: bool = default("gradient_as_bucket_view")
    """DDP: whether gradients are views of its buckets, not a copy beside them."""
    saves: bool = default("saves")
    """Whether it ever saves a checkpoint, or the model behind the training."""
    resumes: bool = default("resumes")
    """Whether it goes on from a checkpoint, with its optimizer's states."""
    merges: bool = default("merges")
    """Whether the adapters are merged into the model, on the host."""
    saves_on_gpu: bool = False
    """FSDP 1: whether the script takes the whole state dict as it is, a copy of the model on each GPU."""
    full_load_dtype: Dtype | None = None
    """dtype of the copy that each rank holds before the engine casts it, where it is not ``weights_dtype``."""
    versions: Mapping[str, str] = field(default_factory=dict)
    stated: frozenset[str] = frozenset()

    @property
    def made_in_parts(self) -> bool:
        """Whether ``zero.Init`` makes the model, a shard on each rank: not a quantized one, nor one that is stored so.

        Of that every rank has the whole on the host (transformers ``get_init_context``, ``is_quantized``).
        """
        partitions = self.engine == "deepspeed" and self.zero_stage == 3 and self.zero3_init
        return partitions and self.quantization is None and not loaded_whole(self.facts.name)

    @property
    def data_parallel(self) -> int:
        """Ranks that hold different samples and share (or shard) the same parameters."""
        return max(1, self.gpus // (self.tensor_parallel * self.pipeline_parallel * self.sequence_parallel))

    @property
    def sharding_ranks(self) -> int:
        """Ranks that ZeRO and FSDP share the states over: those that share a sequence among them, too."""
        return self.data_parallel * self.sequence_parallel

    @property
    def gathers_to_generate(self) -> bool:
        """Whether a rank has all weights of a sharded model to generate with (``ds3_gather_for_generation``)."""
        asked = self.generation is not None and self.generation.gather_weights
        return asked and self.engine == "deepspeed" and self.zero_stage == 3

    @property
    def local_seq(self) -> int:
        """Tokens of a sequence on one rank: those that share sequences have a part each, the largest rounded up."""
        return -(-self.seq_len // self.sequence_parallel)

    @property
    def tokens(self) -> int:
        """Tokens of one micro-batch on one rank."""
        return self.micro_batch_size * self.seq_len

    @property
    def eval_batch_size(self) -> int | None:
        """Sequences of one batch of the evaluation on a rank; None where nobody says."""
        return self.evaluation.batch_size if self.evaluation is not None else None

    @property
    def eval_accumulation_steps(self) -> int | None:
        """Batches after which the evaluation's logits go to the host; None for never, or where nobody says."""
        return self.evaluation.accumulation_steps if self.evaluation is not None else None

    @property
    def eval_predictions(self) -> str | None:
        """What becomes of the evaluation's logits; None where nobody says."""
        return self.evaluation.predictions if self.evaluation is not None else None

    @property
    def effective_batch(self) -> int:
        """Samples that one update sees."""
        return self.micro_batch_size * self.gradient_accumulation_steps * self.data_parallel


def section(config: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A section of a config; an empty one where it is missing, or no section."""
    found = config.get(name)
    return found if found is not None and isinstance(found, Mapping) else {}
