"""LLaMA-Factory's recipes: ``llamafactory-cli train FILE key=value``, or flags; its scripts under a launcher.

What follows from the arguments was read in LLaMA-Factory 0.9.5 (``src/llamafactory``: ``hparams/parser.py``,
``model/loader.py``, ``model/adapter.py``, ``model/model_utils``, ``train``).
"""

from __future__ import annotations

import posixpath
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from lintfit.documents.model import DataDocument, Document
from lintfit.errors import CannotWrite
from lintfit.settings.model import UNKNOWN, Provenance, Setting
from lintfit.settings.values import AS_LOADED, Adapters, FourBits
from lintfit.sources.recipes import llamafactory_model
from lintfit.sources.recipes.base import OpenFile, World
from lintfit.sources.recipes.keys import spelled
from lintfit.sources.recipes.llamafactory_arguments import LlamaFactoryArguments, read_arguments
from lintfit.sources.recipes.trainer import evaluation_of, settings_of
from lintfit.sources.training_arguments import EVALUATION, TRAINING

if TYPE_CHECKING:
    from lintfit.documents.model import FileEdit
    from lintfit.sources.flag_grammars.model import Refused
    from lintfit.sources.launchers.launch import Launch

_FIELDS: Mapping[str, tuple[str, ...]] = {
    **TRAINING,
    **EVALUATION,
    "seq_len": ("cutoff_len",),
    "lora_rank": ("lora_rank",),
}
_ADJUSTABLE = frozenset({
    "attention", "eval_batch_size", "gradient_accumulation_steps", "gradient_checkpointing", "lora_rank", "loss",
    "method", "micro_batch_size", "mixed_precision", "optimizer", "quantization", "seq_len", "weights_dtype",
})  # fmt: skip
"""Settings that are flags or keys, which the planner may write."""
_KERNELS = {"flash_attention_2": "fa2", "sdpa": "sdpa"}
_LENGTHS = frozenset({"max_length", "max_seq_length"})
_ZERO = frozenset({"zero_stage", "offload_optimizer", "offload_param"})
_FOLDER = "examples/deepspeed"
_CONFIGS: Mapping[tuple[int, str, str], str] = {
    (0, "none", "none"): "ds_z0_config.json",
    (2, "none", "none"): "ds_z2_config.json",
    (2, "cpu", "none"): "ds_z2_offload_config.json",
    (3, "none", "none"): "ds_z3_config.json",
    (3, "cpu", "cpu"): "ds_z3_offload_config.json",
}
"""The files of ``examples/deepspeed`` by ZeRO's stage and what they offload."""


@dataclass(frozen=True, eq=False)
class LlamaFactoryRecipe:
    """One launch of LLaMA-Factory with the file that it names."""

    launch: Launch
    arguments: LlamaFactoryArguments
    open_file: OpenFile = field(repr=False)
    dialect: str = "llamafactory"
    trains: bool = True
    uses_trainer: bool = True
    uses_trl: bool = False
    arguments_place: None = None

    @property
    def document(self) -> Document:
        config = self.arguments.keys.config
        return config if config is not None else self.launch.document

    @property
    def missing(self) -> Setting | None:
        return self.arguments.keys.missing

    @cached_property
    def settings(self) -> Mapping[str, Setting]:
        return {setting.name: setting for setting in self._settings()}

    @property
    def refused(self) -> tuple[Refused, ...]:
        return ()

    @property
    def elsewhere(self) -> str | None:
        """What is not counted where KTransformers, Megatron or another trains in LLaMA-Factory's place."""
        return llamafactory_model.elsewhere(self.arguments)

    @property
    def adjustable(self) -> frozenset[str]:
        return _ADJUSTABLE | _ZERO if self._folder is not None else _ADJUSTABLE

    # -- writing ----------------------------------------------------------------------------------------------------

    def write(self, name: str, value: Any) -> tuple[FileEdit, ...] | None:
        """Changes the flag or the key where it stands, else adds what the other arguments are."""
        arguments = self.arguments
        match name:
            case "weights_dtype" if value == AS_LOADED:
                return ()
            case "weights_dtype" if value == "bf16":
                return arguments.write(("pure_bf16",), True)
            case "gradient_checkpointing":
                return arguments.write(("disable_gradient_checkpointing",), not value)
            case "method" if isinstance(value, Adapters):
                return arguments.write_next(finetuning_type="lora", lora_rank=value.rank)
            case "quantization" if isinstance(value, FourBits):
                return self._quantize(value.name)
            case "kbit_upcast":
                return ()
            case "attention" if value in _KERNELS:
                return arguments.write(("flash_attn",), _KERNELS[value])
            case "loss":
                return arguments.write(("enable_liger_kernel",), True) if value == "liger" else None
            case _ if name in _ZERO:
                return self._write_zero(name, value)
            case _ if name in _FIELDS:
                return arguments.write(_FIELDS[name], value)
        return None

    def _quantize(self, wanted: str) -> tuple[FileEdit, ...] | None:
        """The next key that a base in four bits takes; LLaMA-Factory quantises the scales, too, unless told not to."""
        now = self.settings["quantization"].value
        if now in ("nf4", "nf4-double"):
            return ()
        if wanted not in ("nf4", "nf4-double") or now is not None:
            raise CannotWrite("the recipe says already how the base is quantized")
        nested = {} if wanted == "nf4-double" else {"double_quantization": False}
        return self.arguments.write_next(**nested, quantization_bit=4)

    @property
    def _folder(self) -> str | None:
        """The folder of LLaMA-Factory's DeepSpeed files, where it is at hand."""
        stated = self.arguments.stated("deepspeed")
        named = stated.value if stated is not None and isinstance(stated.value, str) else ""
        folder = posixpath.dirname(named) if posixpath.basename(named) in _CONFIGS.values() else _FOLDER
        return folder if self.open_file(f"{folder}/ds_z3_config.json") is not None else None

    def zero_config(self, zero: Mapping[str, Any]) -> str | None:
        """The path of LLaMA-Factory's DeepSpeed file with these settings; None where it has none, or is not at hand."""
        name = _CONFIGS.get((zero["zero_stage"], zero["offload_optimizer"], zero["offload_param"]))
        return f"{self._folder}/{name}" if name is not None and self._folder is not None else None

    @property
    def zero_now(self) -> Mapping[str, Any] | None:
        """ZeRO as the named file of LLaMA-Factory's has it; None for another file."""
        stated = self.arguments.stated("deepspeed")
        named = posixpath.basename(stated.value) if stated is not None and isinstance(stated.value, str) else ""
        rung = next((rung for rung, name in _CONFIGS.items() if name == named), None)
        return dict(zip(("zero_stage", "offload_optimizer", "offload_param"), rung, strict=True)) if rung else None

    def _write_zero(self, name: str, value: Any) -> tuple[FileEdit, ...] | None:
        """Another of LLaMA-Factory's files in the place of the one that is named; stage 3 offloads both or nothing."""
        if self.zero_now is None:
            return None
        rung = {**self.zero_now, name: value}
        if rung["zero_stage"] == 3 and "cpu" in (rung["offload_optimizer"], rung["offload_param"]):
            rung |= {"offload_optimizer": "cpu", "offload_param": "cpu"}
        wanted = self.zero_config(rung)
        if wanted is None:
            raise CannotWrite("LLaMA-Factory brings no DeepSpeed config for that")
        return self.arguments.write(("deepspeed",), wanted)

    def argument(self, *names: str) -> Setting | None:
        """A field of the dataclasses: a flag, a key of the file, or the default."""
        if names[0] == "eval_strategy" and not self._evaluates():
            return Setting(names[0], "no", Provenance("derived", "there is no data to evaluate with"))
        wanted = ("cutoff_len",) if not _LENGTHS.isdisjoint(names) else names
        found = self.arguments.get(*wanted)
        return Setting(names[0], found.value, found.provenance) if found is not None else None

    def write_argument(self, name: str, value: Any) -> tuple[FileEdit, ...] | None:
        """Changes or adds the flag, or the key of the file where that decides."""
        return self.arguments.keys.write(name, value, spelled(value, none="None"))

    def spelled(self, argument: str, value: Any) -> str:
        """An argument as it stands in the recipe: ``bf16: true``, or as a flag."""
        if self.arguments.keys.config is not None:
            return f"{argument}: {spelled(value)}"
        return f"--{argument} {spelled(value, none='None')}"

    # -- reading ----------------------------------------------------------------------------------------------------

    def _settings(self) -> Iterator[Setting]:
        arguments = self.arguments
        name = arguments.stated("model_name_or_path")
        model = name.setting("model", name.value if isinstance(name.value, str) else UNKNOWN) if name else None
        if model is not None:
            yield model
        elif self.missing is not None:
            yield Setting("model", UNKNOWN, self.missing.provenance)
        trainer = settings_of(arguments)
        trainer.pop("loss", None)
        yield from trainer.values()
        yield from self._checkpointing(trainer)
        facts = llamafactory_model.facts_of(model)
        yield from llamafactory_model.precision(arguments, self._zero3)
        yield from llamafactory_model.quantization(arguments, model)
        yield from llamafactory_model.method(arguments, facts)
        yield from llamafactory_model.attention(arguments, facts)
        yield from self._length()
        yield from llamafactory_model.optimizer(arguments)
        yield from llamafactory_model.kernels(arguments)
        yield from llamafactory_model.stage(arguments)
        yield from self._processes()
        if self._evaluates():
            yield from evaluation_of(arguments).values()

    @cached_property
    def _zero3(self) -> bool | None:
        """Whether DeepSpeed partitions the model; None where its file is not at hand."""
        stated = self.arguments.stated("deepspeed")
        if stated is None or not stated.value:
            return False
        if self.zero_now is not None:
            return bool(self.zero_now["zero_stage"] == 3)
        document = self.open_file(stated.value) if isinstance(stated.value, str) else None
        root = document.root if isinstance(document, DataDocument) else None
        if root is None:
            return None
        stage = root.get("zero_optimization", "stage")
        return stage is not None and stage.value == 3

    def _checkpointing(self, trainer: Mapping[str, Setting]) -> Iterator[Setting]:
        """LLaMA-Factory switches it on itself, reentrant, unless it is told not to."""
        off, asked = self.arguments.get("disable_gradient_checkpointing"), trainer.get("gradient_checkpointing")
        by_trainer = asked is not None and asked.value is True
        if off is not None and not by_trainer:
            yield off.setting("gradient_checkpointing", UNKNOWN if off.value is UNKNOWN else not off.value)
        reentrant, unsloth = self.arguments.get("use_reentrant_gc"), self.arguments.get("use_unsloth_gc")
        if reentrant is not None:
            yield reentrant.setting("use_reentrant", reentrant.value)
        if unsloth is not None and unsloth.value is True:
            yield unsloth.setting("activation_offload", True)

    def _length(self) -> Iterator[Setting]:
        found = self.arguments.get("cutoff_len")
        if found is not None:
            yield found.setting("seq_len", found.value)
        packed = self.arguments.get("packing")
        neat = self.arguments.stated("neat_packing")
        if neat is not None and neat.value is True:
            yield neat.setting("packing", True)
        elif packed is not None and packed.value is not None:
            yield packed.setting("packing", packed.value)
        elif packed is not None:
            why = Provenance("derived", "samples are packed in pretraining alone, unless packing says so")
            yield Setting("packing", self.arguments.value("stage") == "pt", why)

    def _processes(self) -> Iterator[Setting]:
        if self.launch.launcher == "llamafactory":
            stated = self.launch.settings.get("gpus")
            why = Provenance("derived", "llamafactory-cli starts one process on each GPU of the machine")
            yield stated if stated is not None else Setting("gpus", UNKNOWN, why)
            nodes = self.launch.settings.get("nodes")
            if nodes is not None:
                yield nodes
        elif self.launch.assumed:
            named = self.launch.settings.get("accelerate_config")
            if named is not None and isinstance(named.value, str) and self.open_file(named.value) is not None:
                yield named

    def _evaluates(self) -> bool:
        """Whether it evaluates between its steps: it needs data for it, and a strategy."""
        share, data = self.arguments.get("val_size"), self.arguments.stated("eval_dataset")
        has_data = data is not None or (share is not None and share.value not in (None, 0, 0.0))
        asked = self.arguments.stated("eval_strategy", "evaluation_strategy")
        return has_data and asked is not None and asked.value not in ("no", False, None)


def usual_command(document: DataDocument) -> str | None:
    """``llamafactory-cli train FILE`` for a recipe that trains."""
    root = document.root
    if root is None or root.get("model_name_or_path") is None:
        return None
    trains = root.get("do_train")
    if trains is not None and trains.value is not True:
        return None
    return f"llamafactory-cli train {shlex.quote(document.path.as_posix())}"


def read_recipe(
    launch: Launch, open_file: OpenFile, world: World, versions: Mapping[str, str] | None = None
) -> LlamaFactoryRecipe | None:
    """A launch of LLaMA-Factory with the file that it names, or with flags alone."""
    if launch.action != "train":
        return None
    arguments = read_arguments(launch, open_file, {} if versions is None else versions)
    return LlamaFactoryRecipe(launch, arguments, open_file)
