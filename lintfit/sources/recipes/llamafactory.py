"""LLaMA-Factory's recipes: ``llamafactory-cli train FILE key=value``, its flags, and the scripts that do the same.

Keys, flags and defaults are those of the version that takes them (:mod:`.llamafactory_arguments`); what follows from
them is in :mod:`.llamafactory_model`, :mod:`.llamafactory_trainer` and :mod:`.llamafactory_engine`, which keys are
refused in :mod:`.llamafactory_refused`. Recipes of the rewritten program (``USE_V1=1``) are in
:mod:`.llamafactory_v1`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from lintfit.catalog import llamafactory as catalog
from lintfit.documents.model import DataDocument
from lintfit.documents.patterns import lazy_pattern
from lintfit.errors import CannotWrite
from lintfit.settings.model import Setting
from lintfit.settings.values import AS_LOADED, Adapters, FourBits
from lintfit.sources.data_writer import REMOVE, edits, renamed
from lintfit.sources.recipes import llamafactory_engine as engine
from lintfit.sources.recipes import llamafactory_model as parts
from lintfit.sources.recipes import llamafactory_trainer as steps
from lintfit.sources.recipes.base import OpenFile, Recipe, World
from lintfit.sources.recipes.keys import Keys, OfKeys, spelled
from lintfit.sources.recipes.llamafactory_arguments import LlamaFactoryArguments, read_arguments
from lintfit.sources.recipes.text_datasets import no_images
from lintfit.sources.recipes.trainer import settings_of
from lintfit.sources.training_arguments import TRAINING

if TYPE_CHECKING:
    from lintfit.documents.model import FileEdit
    from lintfit.sources.flag_grammars.model import Refused
    from lintfit.sources.launchers.launch import Launch

_ADJUSTABLE = frozenset({
    "attention", "bf16", "deepspeed", "engine", "eval_batch_size", "fp16", "gradient_accumulation_steps",
    "gradient_checkpointing", "lora_rank", "lora_targets", "loss", "method", "micro_batch_size", "mixed_precision",
    "offload_optimizer", "offload_param", "optimizer", "quantization", "seq_len", "weights_dtype", "zero_stage",
})  # fmt: skip
_FIELDS: Mapping[str, tuple[str, ...]] = {
    **TRAINING,
    "eval_batch_size": ("per_device_eval_batch_size",),
    "seq_len": ("cutoff_len",),
    "lora_rank": ("lora_rank",),
    "prediction_loss_only": ("prediction_loss_only",),
}
"""The fields by which settings are written."""
_WORDS = {"max_length": "cutoff_len", "max_seq_length": "cutoff_len"}
"""LLaMA-Factory's names of TRL's arguments."""
_OWN = frozenset({"max_length", "beta", "use_cache", "gradient_checkpointing"})
"""Fields that mean something else in LLaMA-Factory, or are another's business there."""
_COMMENT = lazy_pattern(r"(?:[ \t]*(?:#.*)?\n)+")
_STARTS = lazy_pattern(r"^\s*(?:\w+=\S+\s+)*(?:accelerate\s+launch|torchrun|llamafactory-cli\s+train|lmf\s+train)\s")
"""How a command line that starts a training begins."""
_ZERO = ("ds_z0_config.json", "ds_z2_config.json", "ds_z3_config.json", "ds_z2_offload_config.json",
         "ds_z3_offload_config.json")  # fmt: skip
"""LLaMA-Factory's own DeepSpeed configs, those that say no more than a stage first."""


def _rung(name: str) -> dict[str, Any]:
    """ZeRO's stage and its offload, as one of LLaMA-Factory's own DeepSpeed configs has them."""
    content = catalog.deepspeed_file(name)
    section = content["zero_optimization"] if content is not None else {}
    said = {key: section.get(key, {}).get("device", "none") for key in ("offload_optimizer", "offload_param")}
    return {"zero_stage": section.get("stage"), **said}


def _packaged(zero: Mapping[str, Any]) -> str | None:
    """The one of these configs that says this, by its path; None for none."""
    return next((f"{engine.FOLDER}/{name}" for name in _ZERO if _rung(name) == dict(zero)), None)


@dataclass(frozen=True, eq=False)
class LlamaFactoryRecipe(OfKeys):
    """One launch of LLaMA-Factory with the file that it names."""

    launch: Launch
    arguments: LlamaFactoryArguments
    dialect: str = "llamafactory"
    uses_trainer: bool = True
    arguments_place: None = None
    adjustable: frozenset[str] = _ADJUSTABLE

    @property
    def trains(self) -> bool:
        """Whether ``do_train`` is set; a recipe that predicts or prepares its data alone does not."""
        train, predicts = self.arguments.value("do_train"), self.arguments.value("do_predict") is True
        idle = train == 0 or (train is None and predicts) or self._prepares_data
        return not idle or not self.arguments.complete

    @property
    def _prepares_data(self) -> bool:
        """Whether the recipe has its data tokenized and says nothing of a training, as the project's
        ``llama3_preprocess.yaml``: LLaMA-Factory ends when they are saved (``data/loader.py:get_dataset``)."""
        said = (self.arguments.stated(name) for name in _OF_TRAINING)
        return self.arguments.stated("tokenized_path") is not None and all(each is None for each in said)

    @property
    def uses_trl(self) -> bool:
        """Whether TRL's trainers run the loop: LLaMA-Factory's own inherit from them in these stages."""
        return self.arguments.value("stage") in ("dpo", "kto", "ppo", "orpo")

    @property
    def keys(self) -> Keys:
        return self.arguments.keys

    @property
    def elsewhere(self) -> str | None:
        """What is not counted where KTransformers, Megatron or HyperParallel trains in LLaMA-Factory's place."""
        return (
            "what the backend holds that LLaMA-Factory hands the model to"
            if engine.other_backend(self.arguments)
            else None
        )

    @cached_property
    def refused(self) -> tuple[Refused, ...]:
        """The flags and keys that the parser of this version does not take."""
        from lintfit.sources.recipes.llamafactory_refused import refused_by

        return tuple(refused_by(self.arguments))

    def _settings(self) -> Iterator[Setting]:
        arguments = self.arguments
        trainer = settings_of(arguments)
        for replaced in ("deepspeed", "optimizer", "gradient_checkpointing", "use_reentrant", "loss", *_OWN):
            trainer.pop(replaced, None)
        yield from trainer.values()
        yield parts.model(arguments)
        yield from parts.weights(arguments)
        yield from parts.quantization(arguments)
        yield from parts.method(arguments)
        images = parts.pixels(arguments)
        if images is not None:
            yield images
        text = no_images(arguments.stated("dataset"))
        if text is not None:
            yield text
        yield from steps.trainer(arguments)
        yield from steps.batch(arguments)
        yield steps.attention(arguments)
        yield from steps.checkpointing(arguments)
        yield steps.loss(arguments)
        yield steps.optimizer(arguments)
        yield from engine.spread(arguments)
        yield from steps.evaluation(arguments)

    # -- writing ----------------------------------------------------------------------------------------------------

    def write(self, name: str, value: Any) -> tuple[FileEdit, ...] | None:
        """Changes the key, the word or the flag that decides, else adds one where the others stand."""
        match name:
            case "weights_dtype" if value == AS_LOADED:
                return ()
            case "weights_dtype" if value == "bf16" and self.arguments.value("finetuning_type") == "full":
                return self.arguments.write(("pure_bf16",), True)
            case "bf16" | "fp16" if value is True and self.arguments.on("pure_bf16"):
                return self._out_of_pure(name)
            case "kbit_upcast":
                return ()  # LLaMA-Factory casts what it trains itself
            case "gradient_checkpointing":
                return self._write_checkpointing(value)
            case "attention":
                return self._write_attention(value)
            case "method" if isinstance(value, Adapters):
                return self._next(finetuning_type="lora", lora_rank=value.rank)
            case "lora_targets" if value == "all-linear":
                return self.arguments.write(("lora_target",), "all")
            case "quantization" if isinstance(value, FourBits):
                return self._quantize(value.name)
            case "loss" | "use_liger_kernel":
                return self._write_liger() if value in ("liger", True) else None
            case "packaged_deepspeed":
                return self._write_packaged(value)
            case "packaged_zero_stage" | "packaged_offload_optimizer" | "packaged_offload_param":
                return self._write_other(name.removeprefix("packaged_"), value)
            case _ if name in _FIELDS:
                return self.arguments.write(_FIELDS[name], value)
        return None

    def _out_of_pure(self, half: str) -> tuple[FileEdit, ...] | None:
        """Mixed precision in the place of ``pure_bf16``, which is no switch beside it: ZeRO-3 refuses it, and GPUs
        without bf16 do."""
        document, pure = self.document, "pure_bf16"
        stated = self.arguments.stated(pure)
        if not isinstance(document, DataDocument) or stated is None or stated.flag is not None:
            return None
        return edits(document, {(pure,): REMOVE}) if self.arguments.on(half) else renamed(document, pure, half)

    def _next(self, **fields: Any) -> tuple[FileEdit, ...] | None:
        """The edits of the first of several fields that says something else; a plan asks again after each."""
        for name, value in fields.items():
            if self.arguments.value(name) != value:
                return self.arguments.write((name,), value)
        return ()

    def _write_checkpointing(self, value: Any) -> tuple[FileEdit, ...] | None:
        """The switch is the other way round, and off where nobody says anything."""
        if "disable_gradient_checkpointing" not in self.arguments.fields:
            return () if value is True else None
        if value is True and not self.arguments.on("disable_gradient_checkpointing"):
            return ()
        return self.arguments.write(("disable_gradient_checkpointing",), value is not True)

    def _write_attention(self, value: Any) -> tuple[FileEdit, ...] | None:
        declared = self.arguments.fields.get("flash_attn")
        if declared is None or declared.kind.startswith("flag"):
            return self.arguments.write(("flash_attn",), value == "flash_attention_2")
        word = next((word for word, kernel in steps.KERNELS.items() if kernel == value), None)
        return self.arguments.write(("flash_attn",), word) if word is not None else None

    def _quantize(self, wanted: str) -> tuple[FileEdit, ...] | None:
        stated = self.settings.get("quantization")
        if stated is not None and stated.value in ("nf4", "nf4-double"):
            return ()
        if wanted not in ("nf4", "nf4-double") or (stated is not None and stated.value is not None):
            raise CannotWrite("the recipe says already how the base is quantized")
        nested = {} if wanted == "nf4-double" else {"double_quantization": False}
        return self._next(**nested, quantization_bit=4)

    def _write_liger(self) -> tuple[FileEdit, ...] | None:
        takes = "enable_liger_kernel" in self.arguments.fields and self.arguments.value("stage") in ("pt", "sft")
        return self.arguments.write(("enable_liger_kernel",), True) if takes else None

    def zero_config(self, zero: Mapping[str, Any]) -> str | None:
        """The config of LLaMA-Factory's that says this; empty for a new one, where none of them is at hand."""
        at_hand = any(isinstance(self.arguments.open_file(f"{engine.FOLDER}/{n}"), DataDocument) for n in _ZERO)
        return _packaged(zero) if at_hand else ""

    def _write_packaged(self, zero: Mapping[str, Any]) -> tuple[FileEdit, ...] | None:
        """One of LLaMA-Factory's own DeepSpeed configs, where it is at hand and says what is asked."""
        path = _packaged(zero)
        at_hand = path is not None and isinstance(self.arguments.open_file(path), DataDocument)
        return self.arguments.write(("deepspeed",), path) if at_hand else None

    def _write_other(self, name: str, value: Any) -> tuple[FileEdit, ...] | None:
        """Another of these configs in the place of the one that is named; stage 3 offloads both or nothing."""
        stated = self.arguments.value("deepspeed")
        folder, slash, named = stated.rpartition("/") if isinstance(stated, str) else ("", "", "")
        if named not in _ZERO:
            return None
        wanted = {**_rung(named), name: value}
        if wanted["zero_stage"] == 3 and "cpu" in wanted.values():
            wanted |= {"offload_optimizer": "cpu", "offload_param": "cpu"}
        path = _packaged(wanted)
        if path is None or isinstance(self.arguments.open_file(str(stated)), DataDocument):
            return self._write_packaged(wanted)
        # It is known by its name, in a checkout of LLaMA-Factory: the others lie beside it there.
        return self.arguments.write(("deepspeed",), f"{folder}{slash}{path.rpartition('/')[2]}")

    def argument(self, *names: str) -> Setting | None:
        """A field of ``TrainingArguments``: a key, a word, a flag, or the default."""
        if names[0] == "gradient_checkpointing":
            return self.settings.get("gradient_checkpointing")
        stated = self.arguments.get(*(_WORDS.get(name, name) for name in names))
        return Setting(names[0], stated.value, stated.provenance) if stated is not None else None

    def write_argument(self, name: str, value: Any) -> tuple[FileEdit, ...] | None:
        if name == "gradient_checkpointing":
            return self._write_checkpointing(value)
        return self.arguments.write((_WORDS.get(name, name),), value)

    def spelled(self, argument: str, value: Any) -> str | None:
        """An argument as a key of the recipe, ``bf16: true``; as a flag where there is no recipe."""
        name = _WORDS.get(argument, argument)
        if name == "gradient_checkpointing":
            name, value = "disable_gradient_checkpointing", value is not True
        if self.arguments.keys.config is None:
            return f"--{name} {spelled(value)}"
        return f"{name}: {spelled(value)}"


_OF_TRAINING = ("learning_rate", "num_train_epochs", "max_steps", "per_device_train_batch_size")
"""Keys without which no recipe that trains is written."""


def usual_command(document: DataDocument) -> str | None:
    """``llamafactory-cli train FILE``; None for a file that exports, predicts or chats."""
    root = document.root
    if root is None:
        return None
    name = shlex.quote(document.path.as_posix())
    if root.get("model") is not None and root.get("model_name_or_path") is None:
        if root.get("train_dataset") is None:
            return None
        prefers = "dpo" in re.split(r"[/_.-]", document.path.stem.lower()) or root.get("pref_beta") is not None
        return f"USE_V1=1 llamafactory-cli {'dpo' if prefers else 'train'} {name}"
    idle = ("export_dir", "infer_backend", "task", "n_shot")
    trains = root.get("do_train")
    if root.get("model_name_or_path") is None or any(root.get(key) is not None for key in idle):
        return None
    if trains is None and root.get("do_predict") is not None:
        return None
    if trains is not None and trains.plain() == 0:
        return None
    return _in_comment(document) or f"llamafactory-cli train {name}"


def _in_comment(document: DataDocument) -> str | None:
    """The command that a comment at the file's top says that it is started with, where it names this file."""
    said = _COMMENT.match(document.text)
    lines = re.sub(r"(?m)^#[ \t]?", "", said[0]) if said is not None else ""
    commands = re.sub(r"(?<!\s)\s*+\\\n\s*", " ", lines).splitlines()
    names = (f" {document.path.name}", f"/{document.path.name}")
    found = next((each.strip() for each in commands if _STARTS.search(each) and each.rstrip().endswith(names)), None)
    if found is None:
        return None
    return f"{found.rpartition(' ')[0]} {shlex.quote(document.path.as_posix())}"


def read_recipe(
    launch: Launch, open_file: OpenFile, world: World, versions: Mapping[str, str] | None = None
) -> Recipe | None:
    """A launch of LLaMA-Factory that trains, with the file that it names."""
    if launch.environment.get("USE_V1", "0").lower() in engine.TRUE:
        from lintfit.sources.recipes import llamafactory_v1

        return llamafactory_v1.read_recipe(launch, open_file, world)
    if launch.action != "train":
        return None
    return LlamaFactoryRecipe(launch, read_arguments(launch, open_file, {} if versions is None else versions))
