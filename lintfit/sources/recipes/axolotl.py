"""axolotl's recipes: ``axolotl train recipe.yml --flags``, ``accelerate launch -m axolotl.cli.train recipe.yml``.

What the YAML and the flags come to is in :mod:`.axolotl_config`, what follows from it in :mod:`.axolotl_settings` and
:mod:`.axolotl_engine`, which keys axolotl refuses or drops in :mod:`.axolotl_refused`. A setting is written back where
it stands: on the launch line where a flag decides, else in the YAML.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from lintfit.catalog import axolotl as catalog
from lintfit.documents.model import DataDocument
from lintfit.errors import CannotWrite
from lintfit.settings.model import UNKNOWN, Provenance, Setting
from lintfit.settings.values import AS_LOADED, Adapters, FourBits, Fsdp
from lintfit.sources.data_writer import renamed
from lintfit.sources.recipes.axolotl_config import ADAPTERS, Config, read_config, recipe_word
from lintfit.sources.recipes.axolotl_engine import FOLDER, packaged, parallel
from lintfit.sources.recipes.axolotl_settings import settings
from lintfit.sources.recipes.base import OpenFile, World
from lintfit.sources.recipes.keys import Keys, OfKeys, spelled

if TYPE_CHECKING:
    from lintfit.documents.model import FileEdit
    from lintfit.sources.flag_grammars.model import Refused
    from lintfit.sources.launchers.launch import Launch

_KEYS: Mapping[str, str] = {
    "micro_batch_size": "micro_batch_size",
    "eval_batch_size": "eval_batch_size",
    "gradient_accumulation_steps": "gradient_accumulation_steps",
    "gradient_checkpointing": "gradient_checkpointing",
    "optimizer": "optimizer",
    "seq_len": "sequence_len",
    "lora_rank": "lora_r",
    "deepspeed": "deepspeed",
}
"""Keys that say a setting as it is."""

_WORDS: Mapping[str, str] = {
    "per_device_train_batch_size": "micro_batch_size",
    "per_device_eval_batch_size": "eval_batch_size",
    "max_length": "sequence_len",
    "max_seq_length": "sequence_len",
    "optim": "optimizer",
    "eval_strategy": "eval_strategy",
    "save_strategy": "save_strategy",
    **{
        name: name
        for name in ("adam_beta1", "adam_beta2", "bf16", "deepspeed", "fp16", "gradient_accumulation_steps",
                     "gradient_checkpointing", "gradient_checkpointing_kwargs", "learning_rate", "lora_dropout",
                     "max_grad_norm", "torch_compile", "weight_decay")
    },
}  # fmt: skip
"""axolotl's keys by names of ``TrainingArguments``, and its own that bear these."""

_ADJUSTABLE = frozenset({
    "attention", "bf16", "deepspeed", "engine", "eval_batch_size", "fp16", "fsdp", "gradient_accumulation_steps",
    "gradient_checkpointing", "lora_rank", "lora_targets", "loss", "method", "micro_batch_size", "mixed_precision",
    "offload_optimizer", "offload_param", "optimizer", "quantization", "seq_len", "zero_stage",
})  # fmt: skip

_CUT = "axolotl.integrations.cut_cross_entropy.CutCrossEntropyPlugin"
_LIGER = "axolotl.integrations.liger.LigerPlugin"

_STOCK = ("zero1.json", "zero3_bf16.json", "zero3.json", "zero3_bf16_cpuoffload_params.json",
          "zero3_bf16_cpuoffload_all.json", "zero2.json")  # fmt: skip
"""axolotl's own DeepSpeed files, those that say no more than a stage first."""


@dataclass(frozen=True, eq=False)
class AxolotlRecipe(OfKeys):
    """One launch of axolotl with its recipe."""

    launch: Launch
    config: Config
    open_file: OpenFile = field(repr=False)
    dialect: str = "axolotl"
    trains: bool = True
    uses_trainer: bool = True
    arguments_place: None = None
    adjustable: frozenset[str] = _ADJUSTABLE

    @property
    def keys(self) -> Keys:
        return self.config.keys

    @property
    def uses_trl(self) -> bool:
        return bool(self.config.get("rl").value)

    @cached_property
    def refused(self) -> tuple[Refused, ...]:
        """Keys that stop axolotl, and those that it drops."""
        from lintfit.sources.recipes.axolotl_refused import refused

        return tuple(refused(self.config))

    def _settings(self) -> Iterator[Setting]:
        yield from settings(self.config)
        yield from parallel(self.config, self.open_file)

    # -- writing ----------------------------------------------------------------------------------------------------

    def write(self, name: str, value: Any) -> tuple[FileEdit, ...] | None:
        """Changes the key where it stands, else adds it to the recipe."""
        match name:
            case "weights_dtype" if value == AS_LOADED:
                return ()
            case "kbit_upcast":
                return ()  # axolotl prepares a quantized base itself
            case "bf16" | "fp16" if value is True:
                return self._write_half(name)
            case "fsdp" if isinstance(value, Fsdp):
                return self._write_fsdp(value)
            case "packaged_deepspeed":
                return self._write_stock(value)
            case "packaged_zero_stage" | "packaged_offload_optimizer" | "packaged_offload_param":
                return self._write_of_stock(name.removeprefix("packaged_"), value)
            case "attention" if isinstance(value, str):
                return self._write_attention(value)
            case "method" if isinstance(value, Adapters):
                return self._next({"adapter": "lora", "lora_r": value.rank, "lora_alpha": 2 * value.rank,
                                   "lora_dropout": 0.05, "lora_target_linear": True})  # fmt: skip
            case "quantization" if isinstance(value, FourBits):
                return self._quantize(value.name)
            case "lora_targets" if value == "all-linear":
                return self.write_key("lora_target_linear", True)
            case "loss" | "use_liger_kernel" if value in ("liger", True):
                return self._write_liger()
            case "prediction_loss_only":
                return ()  # AxolotlTrainer gathers no predictions
            case _ if name in _KEYS:
                return self.write_key(_KEYS[name], value)
        return None

    def write_key(self, key: str, value: Any) -> tuple[FileEdit, ...] | None:
        """The edits that make a key say a value; none where it does so already."""
        now = self.keys.get(key)
        if now is not None and type(now.value) is type(value) and now.value == value:
            return ()
        return self.keys.write(key, value)

    def _next(self, values: Mapping[str, Any]) -> tuple[FileEdit, ...] | None:
        """The same of the first of several keys that says something else; a plan asks again after each."""
        for key, value in values.items():
            if self.config.get(key).value != value:
                return self.write_key(key, value)
        return ()

    def _write_attention(self, value: str) -> tuple[FileEdit, ...] | None:
        from lintfit.sources.recipes.axolotl_config import ATTENTIONS

        switches = [key for key in ATTENTIONS if self.config.states(key)]
        if self.config.get("attn_implementation").value is not None or self.config.range.all_since("0.12"):
            return self.write_key("attn_implementation", value) if not switches else None
        key = next((key for key, kernel in ATTENTIONS.items() if kernel == value), None)
        if len(switches) == 1 and key is not None and self.config.get(switches[0]).value is True:
            return renamed(self.document, switches[0], key) if isinstance(self.document, DataDocument) else None
        return self.write_key(key, True) if key is not None and not switches else None

    def _quantize(self, wanted: str) -> tuple[FileEdit, ...] | None:
        stated = self.settings.get("quantization")
        if stated is not None and stated.value in ("nf4", "nf4-double"):
            return ()
        if wanted not in ("nf4", "nf4-double") or (stated is not None and stated.value is not None):
            raise CannotWrite("the recipe says already how the base is quantized")
        if self.config.adapter not in ADAPTERS:
            raise CannotWrite("axolotl quantizes only beneath an adapter")
        if self.config.states("load_in_8bit"):
            return self.write_key("load_in_8bit", False)
        # qlora without load_in_4bit does not validate, load_in_4bit beside lora quantizes nothing
        return self._next({"load_in_4bit": True, "adapter": "qlora"})

    def _write_liger(self) -> tuple[FileEdit, ...] | None:
        """Cut Cross Entropy's plugin where it is listed, else Liger's, which is put on the list first."""
        if self.uses_trl:
            return None
        plugins = self.config.get("plugins").value
        listed = list(plugins) if isinstance(plugins, list) else []
        if plugins is UNKNOWN or _CUT in listed:
            return None if plugins is UNKNOWN else self.write_key("cut_cross_entropy", True)
        if _LIGER not in listed:
            return self.write_key("plugins", [*listed, _LIGER])
        return self.write_key("liger_fused_linear_cross_entropy", True)

    def _write_half(self, name: str) -> tuple[FileEdit, ...] | None:
        """One half precision, and the other switched off where it is asked for."""
        other = "fp16" if name == "bf16" else "bf16"
        off = self.write_key(other, False) if self.config.get(other).value is True else ()
        on, named = self.write_key(name, True), self._stock_in_half(name)
        return None if off is None or on is None or named is None else (*off, *on, *named)

    def _stock_in_half(self, name: str) -> tuple[FileEdit, ...] | None:
        """The file of axolotl's that leaves the precision to the trainer, in the place of one that says the other."""
        stated = self.config.get("deepspeed").value
        content = packaged(stated) if isinstance(stated, str) else None
        other = content.get("fp16" if name == "bf16" else "bf16") if content is not None else None
        if content is None or other is None or other.get("enabled") is not True:
            return ()
        path = _stock_of(_zero_of(content), either=True)
        if path is None:
            raise CannotWrite(
                f"{stated} is for another precision than {name}, and axolotl brings none like it for that"
            )
        return self.write_key("deepspeed", _beside(stated, path))

    def _write_fsdp(self, value: Fsdp) -> tuple[FileEdit, ...] | None:
        """The next key of ``fsdp_config`` that says something else; empty where none does."""
        stated = self.settings.get("fsdp")
        now = stated.value if stated is not None else None
        if not isinstance(now, Fsdp) or not isinstance(self.config.get("fsdp_config").value, Mapping):
            return None
        if now.version != value.version or (now.version == 1 and now.strategy != value.strategy):
            return None
        if now.cpu_offload != value.cpu_offload:
            return self._write_of_fsdp("offload_params", value.cpu_offload)
        if now.strategy != value.strategy:
            return self._write_of_fsdp("reshard_after_forward", value.strategy == "FULL_SHARD")
        if now.auto_wrap != value.auto_wrap and value.auto_wrap:
            return self._write_of_fsdp("auto_wrap_policy", "TRANSFORMER_BASED_WRAP")
        return ()

    def _write_of_fsdp(self, name: str, value: Any) -> tuple[FileEdit, ...] | None:
        """A key of ``fsdp_config``, with the prefix where it has one."""
        section = self.config.get("fsdp_config")
        prefixed = any(str(key).startswith("fsdp_") and key != "fsdp_version" for key in section.value)
        key = f"fsdp_{name}" if f"fsdp_{name}" in section.value or prefixed else name
        return self.keys.write(f"fsdp_config.{key}", value) if self.keys.config is not None else None

    def zero_config(self, zero: Mapping[str, Any]) -> str | None:
        """The file of axolotl's that says this; empty for a new one, where the project has none of axolotl's."""
        path = _stock_of(zero)
        at_hand = any(isinstance(self.open_file(f"{FOLDER}/{name}"), DataDocument) for name in _STOCK)
        return path if at_hand else ""

    def _write_stock(self, zero: Mapping[str, Any]) -> tuple[FileEdit, ...] | None:
        """One of axolotl's own DeepSpeed files by name, where the project has it and it says what is asked."""
        path = _stock_of(zero)
        here = path is not None and isinstance(self.open_file(path), DataDocument)
        return self.write_key("deepspeed", path) if here else None

    def _write_of_stock(self, name: str, value: Any) -> tuple[FileEdit, ...] | None:
        """Another of these files in the place of the one that is named."""
        stated = self.config.get("deepspeed").value
        content = packaged(stated) if isinstance(stated, str) else None
        if content is None:
            return None
        path = _stock_of({**_zero_of(content), name: value})
        if path is None and name == "zero_stage":  # the one of stage 2 offloads its optimizer, too
            path = _stock_of({**_zero_of(content), name: value, "offload_optimizer": "cpu"})
        return self.write_key("deepspeed", _beside(stated, path)) if path is not None else None

    def argument(self, *names: str) -> Setting | None:
        """A field of ``TrainingArguments`` that a key of axolotl states, or leaves to its default."""
        for name in names:
            key = _WORDS.get(name)
            if key is not None:
                found = self.config.get(key)
                return Setting(name, found.value, found.provenance)
        return None

    def write_argument(self, name: str, value: Any) -> tuple[FileEdit, ...] | None:
        if name in ("bf16", "fp16") and value is True:
            return self._write_half(name)
        key = _WORDS.get(name)
        return self.write_key(key, value) if key is not None else None

    def spelled(self, argument: str, value: Any) -> str | None:
        """An argument as a key of the recipe: ``bf16: true``; as a flag where it is given as one."""
        key = "liger_fused_linear_cross_entropy" if argument == "use_liger_kernel" else _WORDS.get(argument)
        if key is None:
            return None
        now = self.keys.get(key)
        by_flag = now is not None and now.flag is not None
        return f"--{key.replace('_', '-')} {spelled(value)}" if by_flag else f"{key}: {spelled(value)}"


def _zero_of(content: Mapping[str, Any]) -> dict[str, Any]:
    """What a DeepSpeed config that comes with axolotl says of ZeRO."""
    section = content["zero_optimization"]
    devices = {key: section.get(key, {}).get("device", "none") for key in ("offload_optimizer", "offload_param")}
    return {"zero_stage": section.get("stage"), **devices}


def _stock_of(zero: Mapping[str, Any], *, either: bool = False) -> str | None:
    """The path of the one that says just this of ZeRO; with ``either`` one that leaves the precision to the trainer."""
    wanted = dict(zero)
    for name in _STOCK:
        content = catalog.deepspeed_file(name)
        fixed = content is not None and any(content.get(half, {}).get("enabled") is True for half in ("bf16", "fp16"))
        if content and _zero_of(content) == wanted and not (either and fixed):
            return f"{FOLDER}/{name}"
    return None


def _beside(named: str, path: str) -> str:
    """Another of these files, in the folder in which one is named."""
    return f"{named.rpartition('/')[0]}/{path.rpartition('/')[2]}"


def usual_command(document: DataDocument) -> str | None:
    """``axolotl train FILE``; None for a file that says no more than which model."""
    root = document.root
    if root is None or root.get("base_model") is None or root.get("merge_method") is not None:
        return None
    if (
        root.get("datasets") is None
        and root.get("pretraining_dataset") is None
        and root.get("micro_batch_size") is None
    ):
        return None
    return f"axolotl train {shlex.quote(document.path.as_posix())}"


def read_recipe(
    launch: Launch, open_file: OpenFile, world: World, versions: Mapping[str, str] | None = None
) -> AxolotlRecipe | None:
    """A launch of axolotl with the recipe that it names."""
    keys = Keys(launch, whose="axolotl's default")
    named = recipe_word(launch)
    document = open_file(named[0]) if named is not None and "$" not in named[0] else None
    if not isinstance(document, DataDocument) or document.root is None or document.root.shape != "mapping":
        document = None
        place = Provenance("file", "", named[1] if named is not None else launch.place)
        keys.missing = Setting("config", named[0] if named is not None else UNKNOWN, place)
    read_config(launch, document, keys)
    return AxolotlRecipe(launch, Config(keys, catalog.range_of(versions or {})), open_file)
