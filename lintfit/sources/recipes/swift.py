"""ms-swift's launches as settings: ``swift sft --flags``, ``swift rlhf FILE.yaml``, ``torchrun … swift/cli/sft.py``.

Flags and their defaults are those of the version that takes them (:mod:`lintfit.catalog.swift`). What follows from
them was read in ms-swift 2.6, 3.0 to 3.12 and 4.0 to 4.6: ``swift/arguments``, ``swift/pipelines/train``,
``swift/trainers`` and the older ``swift/llm/argument`` and ``swift/llm/utils/argument.py``.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from lintfit.catalog import swift
from lintfit.catalog.facts import ModelFacts
from lintfit.documents.model import DataDocument
from lintfit.errors import CannotWrite
from lintfit.settings.model import UNKNOWN, Provenance, Setting, is_count
from lintfit.settings.uncounted import SMALL_TUNER
from lintfit.settings.values import AS_LOADED, Adapters, FourBits
from lintfit.sources.recipes import swift_engine, swift_model, swift_trainer, swift_writing, vision
from lintfit.sources.recipes.base import OpenFile, World
from lintfit.sources.recipes.keys import Keys, OfKeys, Stated, spelled
from lintfit.sources.recipes.swift_arguments import OLDER_COMMANDS, SwiftArguments, as_mapping, read_arguments
from lintfit.sources.recipes.swift_trainer import TUNER, itself
from lintfit.sources.recipes.text_datasets import no_images
from lintfit.sources.recipes.trainer import settings_of
from lintfit.sources.training_arguments import TRAINING
from lintfit.sources.training_words import TORCH, kernel_of
from lintfit.versions import before

if TYPE_CHECKING:
    from lintfit.documents.model import FileEdit
    from lintfit.sources.flag_grammars.model import Refused
    from lintfit.sources.launchers.launch import Launch

LORA = frozenset({"lora", "longlora", "adalora"})
"""Ways to train that are LoRA's adapters; AdaLoRA's begin with ``adalora_init_r`` ranks."""
_SAMPLES = 16
"""What a step is filled up to where nobody says how many micro-batches it has."""
_ADJUSTABLE = frozenset({
    "attention", "eval_batch_size", "gradient_accumulation_steps", "gradient_checkpointing", "lora_rank",
    "lora_targets", "method", "micro_batch_size", "optimizer", "quantization", "seq_len", "weights_dtype",
})  # fmt: skip
"""Settings that are flags or keys, which the planner may write."""
_FIELDS: Mapping[str, tuple[str, ...]] = {
    **TRAINING,
    "micro_batch_size": ("per_device_train_batch_size", "batch_size"),
    "eval_batch_size": ("per_device_eval_batch_size", "eval_batch_size"),
    "seq_len": ("max_length",),
    "gradient_checkpointing": ("gradient_checkpointing",),
    "lora_rank": ("lora_rank",),
    "use_liger_kernel": ("use_liger_kernel", "use_liger"),
}
_OF_MEGATRON = ("global_batch_size", "micro_batch_size", "tensor_model_parallel_size", "lr")
"""Keys of ``megatron sft`` alone (``swift/megatron/arguments/megatron_args.py``)."""
_KERNELS: Mapping[str, str] = {"flash_attn": "flash_attention_2", "flash_attention_4": "flash_attention_2"}
"""FlashAttention by ms-swift's own name, and its fourth version, which saves what the others save."""


@dataclass(frozen=True, eq=False)
class SwiftRecipe(OfKeys):
    """One launch of ms-swift with the file that it names."""

    launch: Launch
    arguments: SwiftArguments
    world: World = field(repr=False)
    dialect: str = "swift"
    trains: bool = True
    uses_trainer: bool = True
    uses_trl: bool = False
    arguments_place: None = None

    @property
    def keys(self) -> Keys:
        return self.arguments.keys

    @cached_property
    def refused(self) -> tuple[Refused, ...]:
        """The flags and keys that the command of this version does not take."""
        from lintfit.sources.recipes.swift_refused import refused_by

        return tuple(refused_by(self.arguments))

    @property
    def adjustable(self) -> frozenset[str]:
        names = set(_ADJUSTABLE)
        if not self.spreads_layers:
            names.add("loss")
            if self.spread.distributed:
                names |= {"engine", "zero_stage", "offload_optimizer", "offload_param", "mixed_precision"}
        return frozenset(names)

    @property
    def method(self) -> Stated | None:
        """How the model is trained: ``lora``, ``full``, another tuner."""
        return self.arguments.get(*TUNER)

    @property
    def kind(self) -> str:
        """The ``rlhf_type``, else the command."""
        return swift_trainer.kind_of(self.arguments)

    @cached_property
    def spread(self) -> swift_engine.Spread:
        """How the run is spread over GPUs."""
        return swift_engine.spread(self.arguments, self.world)

    @property
    def spreads_layers(self) -> bool:
        """Whether a process has several GPUs, over which device_map spreads the layers of the model."""
        return swift_engine.spreads_layers(self.spread)

    def leaves_logits_out(self, facts: ModelFacts) -> bool:
        """``get_use_logits_to_keep`` in ``swift/trainers/mixin.py``: from 3.5 on for models of text, from 4.2 on beside
        transformers 5 for multimodal ones as well; ``loss_scale`` of ``all`` labels every token."""
        arguments = self.arguments
        if self.kind != "sft" or arguments.value("loss_scale") == "all":
            return False
        stated = arguments.stated("use_logits_to_keep")
        if stated is not None and stated.value is not None:
            return stated.value is not False
        shared = arguments.value("sequence_parallel_size")
        if is_count(shared) and shared > 1:
            return False
        if not vision.sees(facts):
            return arguments.since(3, 5)
        return arguments.since(4, 2) and before(arguments.versions.get("transformers"), "5.0") is not True

    # -- writing ----------------------------------------------------------------------------------------------------

    def write(self, name: str, value: Any) -> tuple[FileEdit, ...] | None:
        """Changes the flag where a flag decides, else the key of the file, else adds what the other has most of."""
        match name:
            case "weights_dtype" if value == AS_LOADED:
                return ()
            case "weights_dtype" if value in TORCH:
                return self.arguments.write(
                    ("torch_dtype", "dtype"), TORCH[value] if self.arguments.since(3) else value
                )
            case "method" if isinstance(value, Adapters):
                return swift_writing.adapt(self.arguments, value.rank)
            case "quantization" if isinstance(value, FourBits):
                return swift_writing.quantize(self.arguments, self.settings["quantization"].value, value.name)
            case "kbit_upcast":
                return ()
            case "attention":
                return swift_writing.attend(self.arguments, value)
            case "loss":
                return self.arguments.write(_FIELDS["use_liger_kernel"], True) if value == "liger" else None
            case "zero_stage" | "offload_optimizer" | "offload_param":
                return self._write_zero(name, value)
            case "packaged_deepspeed":
                wanted = self.zero_config(value)
                return self.arguments.write(("deepspeed",), wanted) if wanted is not None else None
            case "deepspeed" if isinstance(value, str):
                return self.arguments.write(("deepspeed",), value)
            case "bf16" | "fp16" if value is True:
                now = self.settings.get(name)
                return () if now is not None and now.value is True else swift_writing.halve(self.arguments, name)
            case _ if name in _FIELDS:
                return self.arguments.write(_FIELDS[name], value)
        return None

    def zero_config(self, zero: Mapping[str, Any]) -> str | None:
        """The name of the package's DeepSpeed config with these settings; None where it has none."""
        rung = (zero["zero_stage"], zero["offload_optimizer"], zero["offload_param"])
        return swift_engine.name_of(*rung, self.arguments)

    def _write_zero(self, name: str, value: Any) -> tuple[FileEdit, ...] | None:
        """Another config of the package in the place of the one that is named.

        They have no optimizer offloaded without the parameters at stage 3: the one that offloads both is taken.
        """
        stated = self.arguments.stated("deepspeed")
        if stated is None or not isinstance(stated.value, str) or self.zero_now is None:
            return None
        rung = {**self.zero_now, name: value}
        if rung["zero_stage"] == 3 and "cpu" in (rung["offload_optimizer"], rung["offload_param"]):
            rung |= {"offload_optimizer": "cpu", "offload_param": "cpu"}
        wanted = self.zero_config(rung)
        if wanted is None:
            raise CannotWrite("ms-swift brings no DeepSpeed config for that")
        return self.arguments.write(("deepspeed",), wanted)

    @property
    def zero_now(self) -> Mapping[str, Any] | None:
        """ZeRO as the named config of the package has it; None for another's config."""
        stated = self.arguments.stated("deepspeed")
        if stated is None or swift_engine.config_of(str(stated.value), self.arguments) is None:
            return None
        return {name: self.settings[name].value for name in ("zero_stage", "offload_optimizer", "offload_param")}

    def argument(self, *names: str) -> Setting | None:
        """A field of the dataclasses: a flag, a key of the file, or the default."""
        if names[0] == "eval_strategy" and not swift_trainer.evaluates(self.arguments):
            return Setting(names[0], "no", Provenance("derived", "there is no data to evaluate with"))
        found = self.arguments.get(*names)
        return Setting(names[0], found.value, found.provenance) if found is not None else None

    def write_argument(self, name: str, value: Any) -> tuple[FileEdit, ...] | None:
        """Changes or adds the flag, or the key of the file where that decides."""
        return self.arguments.keys.write(name, value, spelled(value, none="None"))

    def spelled(self, argument: str, value: Any) -> str:
        """An argument as a flag: ``--torch_dtype bfloat16`` for ``bf16``."""
        if argument in ("bf16", "fp16") and value is True and self.arguments.since(3):
            return f"--torch_dtype {'bfloat16' if argument == 'bf16' else 'float16'}"
        return f"--{argument} {spelled(value, none='None')}"

    # -- reading ----------------------------------------------------------------------------------------------------

    def _settings(self) -> Iterator[Setting]:
        arguments = self.arguments
        name = swift_model.model(arguments)
        if name is not None:
            yield name
        elif self.missing is not None:
            yield Setting("model", UNKNOWN, self.missing.provenance)
        trainer = settings_of(arguments)
        for replaced in ("deepspeed", "fsdp", "fsdp_auto_wrap", "optimizer", "bf16", "fp16", "vllm_mode"):
            trainer.pop(replaced, None)
        yield from trainer.values()
        yield from swift_model.precision(arguments, name)
        yield swift_model.quantization(arguments, name)
        yield from self._attention()
        yield from self._batch()
        yield from self._length()
        yield self._optimizer()
        yield from self._method(name)
        images = swift_model.pixels(arguments)
        if images is not None:
            yield images
        text = no_images(arguments.stated("dataset"))
        if text is not None:
            yield text
        yield from swift_trainer.trainer(arguments, self.kind)
        yield from self._engine()
        yield from swift_trainer.evaluation(arguments)

    def _attention(self) -> Iterator[Setting]:
        found = self.arguments.stated("attn_impl")
        if found is not None and found.value not in (None, "None"):
            yield found.setting("attention", kernel_of(_KERNELS.get(str(found.value), found.value)))
        elif (asked := self.arguments.stated("use_flash_attn")) is not None and asked.value is not None:
            kernels = {True: "flash_attention_2", False: "sdpa"}
            yield asked.setting("attention", kernels.get(asked.value, UNKNOWN))
        elif self.arguments.complete:
            yield Setting("attention", "sdpa", Provenance.default("transformers takes sdpa where nothing is asked for"))
        packs = [self.arguments.get(name) for name in ("packing", "padding_free")]
        if packs[0] is not None:
            yield packs[0].setting("packing", packs[0].value)
        whole = next((each for each in packs if each is not None and each.value is True), None)
        if whole is not None:
            yield whole.setting("padded_batches", False)
            yield whole.setting("joins_samples", True)

    def _batch(self) -> Iterator[Setting]:
        arguments = self.arguments
        size = arguments.get("per_device_train_batch_size", "batch_size")
        if size is not None and size.value is None:
            size = arguments.get("batch_size")  # ms-swift 2, where the first is another name of it
        if size is not None:
            yield size.setting("micro_batch_size", size.value)
        steps = arguments.stated("gradient_accumulation_steps")
        if steps is not None and steps.value not in (None, "None"):
            yield steps.setting("gradient_accumulation_steps", steps.value)
            return
        if self.kind == "grpo":
            yield Setting("gradient_accumulation_steps", 1, arguments.by_default)
            return
        declared = arguments.fields.get("gradient_accumulation_steps")
        if declared is None:  # ms-swift 3.0 and 3.1 leave it to transformers
            return
        ranks, micro = self.spread.processes, size.value if size is not None else None
        value: Any = UNKNOWN
        if is_count(ranks) and is_count(micro):
            value = max(1, math.ceil(_SAMPLES / micro / ranks))
        why = f"as many as make {_SAMPLES} samples, which is ms-swift's default"
        yield Setting("gradient_accumulation_steps", value, Provenance("derived", why))

    def _length(self) -> Iterator[Setting]:
        arguments = self.arguments
        found = arguments.get("max_length")
        packed = arguments.stated("packing_length") if arguments.value("packing") is True else None
        if self.kind in ("grpo", "ppo"):
            if (stated := arguments.stated("max_length")) is not None:
                yield stated.setting("max_prompt_length", stated.value)
            yield from self._most_of_vllm()
            return
        found = packed or found
        if found is not None and found.value not in (None, "None", -1):
            yield found.setting("seq_len", found.value)

    def _most_of_vllm(self) -> Iterator[Setting]:
        """vLLM generates no sample that is longer than it was told: the last tokens of a completion are not asked for
        (``swift/infer_engine/vllm_engine.py``: ``max_tokens`` up to ``max_model_len``)."""
        arguments = self.arguments
        most, prompt = arguments.stated("vllm_max_model_len"), arguments.stated("max_length")
        completion = arguments.get("max_completion_length")
        if most is None or prompt is None or completion is None or arguments.value("use_vllm") is not True:
            return
        counts = all(is_count(each.value) for each in (most, prompt, completion))
        if counts and prompt.value + completion.value > most.value:
            yield most.setting("seq_len", most.value)

    def _optimizer(self) -> Setting:
        arguments = self.arguments
        plugin, galore = arguments.stated("optimizer"), arguments.get("use_galore")
        if galore is not None and galore.value is True:
            base = arguments.value("optim")
            name = "galore_adamw_8bit" if isinstance(base, str) and "8bit" in base else "galore_adamw"
            return galore.setting("optimizer", name)
        if plugin is not None and plugin.value not in (None, "None", "lorap", "multimodal", "default"):
            return plugin.setting("optimizer", plugin.value)
        found = arguments.get("optim")
        if found is None:
            return Setting("optimizer", UNKNOWN, itself(self.arguments))
        return found.setting("optimizer", found.value)

    def _method(self, name: Setting | None) -> Iterator[Setting]:
        arguments, found = self.arguments, self.method
        value = found.value if found is not None else UNKNOWN
        facts = vision.facts_of(name.value) if name is not None and isinstance(name.value, str) else None
        provenance = found.provenance if found is not None else itself(self.arguments)
        if value == "full":
            yield Setting("method", "full", provenance)
            yield from self._frozen(facts)
            return
        yield Setting("method", "lora" if value in LORA else UNKNOWN, provenance)
        if value not in LORA:
            if isinstance(value, str):
                yield Setting("uncounted", SMALL_TUNER.format(value), provenance)
                yield from swift_model.width(arguments, value)
            return
        rank = arguments.get("adalora_init_r" if value == "adalora" else "lora_rank")
        if rank is not None:
            yield rank.setting("lora_rank", rank.value)
        targets = swift_model.targets(arguments, facts)
        if targets is not None:
            yield targets
        for setting, names in {
            "lora_dropout": ("lora_dropout", "lora_dropout_p"),
            "use_dora": ("use_dora",),
        }.items():
            each = arguments.get(*names)
            if each is not None:
                yield each.setting(setting, each.value)
        yield from self._saved_modules()

    def _saved_modules(self) -> Iterator[Setting]:
        found = self.arguments.get("modules_to_save", "lora_modules_to_save")
        if found is None or not found.value:
            return
        named = found.value if isinstance(found.value, list) else [found.value]
        words = {"all-embedding": "embed_tokens", "EMBEDDING": "embed_tokens"}
        known = all(isinstance(each, str) and each not in ("all-norm", "LN") for each in named)
        value = tuple(words.get(each, each) for each in named) if known else UNKNOWN
        yield found.setting("lora_modules_to_save", value)

    def _frozen(self, facts: Any) -> Iterator[Setting]:
        """What full fine-tuning leaves as it is."""
        ratio, named = self.arguments.get("freeze_parameters_ratio"), self.arguments.stated("freeze_parameters")
        lisa = self.arguments.stated("lisa_activated_layers")  # so many layers train at a time
        partly = next((each for each in (named, ratio, lisa) if each is not None and each.value), None)
        if partly is not None:
            yield partly.setting("partly_frozen", True)
            yield partly.setting("frozen_modules", ("*",) if partly is lisa else (str(partly.value),))
        elif vision.sees(facts):
            found = swift_model.frozen(self.arguments, facts)
            if found is not None:
                yield found

    def _engine(self) -> Iterator[Setting]:
        arguments, found = self.arguments, self.spread
        yield found.gpus
        nodes = swift_engine.nodes(arguments)
        if nodes is not None:
            yield nodes
        sharding = {**swift_engine.deepspeed(arguments), **swift_engine.fsdp(arguments, arguments.open_file)}
        yield from sharding.values()
        sharded = not sharding.keys().isdisjoint(("deepspeed", "engine"))
        if not sharded and not found.distributed:
            yield Setting("engine", "single", Provenance("derived", "one process without NPROC_PER_NODE or NNODES"))
        if self.spreads_layers and not sharded:
            why = "device_map spreads the layers over the GPUs that a process sees"
            yield Setting("pipeline_parallel", found.stages, Provenance("derived", why, found.gpus.provenance.place))
        shared = arguments.get("sequence_parallel_size")
        if shared is not None and is_count(shared.value) and shared.value > 1:
            for name in ("sequence_parallel", "context_parallel"):
                yield shared.setting(name, shared.value)
        yield from self._reentrant(sharded)

    def _reentrant(self, sharded: bool) -> Iterator[Setting]:
        """``_fix_gradient_checkpointing``: not reentrant in DDP alone, from ms-swift 3.6 on."""
        stated = self.arguments.stated("gradient_checkpointing_kwargs")
        given = as_mapping(stated.value) if stated is not None else {}
        if stated is not None and (given is None or given.get("use_reentrant") is not None):
            yield stated.setting("use_reentrant", given["use_reentrant"] if given is not None else UNKNOWN)
        elif self.arguments.since(3, 6):
            plain = self.spread.distributed and not sharded
            yield Setting("use_reentrant", not plain, self.arguments.by_default)


def usual_command(document: DataDocument) -> str | None:
    """``swift sft FILE``, ``swift rlhf FILE`` of keys that it alone takes, or ``swift pt FILE`` of one so called."""
    root = document.root
    if root is None or root.get("model") is None or root.get("infer_backend") is not None:
        return None
    if root.get("dataset") is None and root.get("cached_dataset") is None:
        return None
    if any(root.get(key) is not None for key in _OF_MEGATRON):
        return None
    name = document.path.as_posix()
    pretrains = document.path.stem.lower() in ("pt", "pretrain")
    prefers = any(root.get(key) is not None for key in ("rlhf_type", "reward_funcs", "num_generations", "rpo_alpha"))
    action = "rlhf" if prefers else "pt" if pretrains else "sft"
    return f"swift {action} {shlex.quote(name)}"


def read_recipe(
    launch: Launch, open_file: OpenFile, world: World, versions: Mapping[str, str] | None = None
) -> SwiftRecipe | None:
    """A launch of ms-swift with the file of its first word or of ``--config``."""
    if launch.action not in (*swift.COMMANDS, *OLDER_COMMANDS):
        return None
    return SwiftRecipe(launch, read_arguments(launch, open_file, {} if versions is None else versions), world)
