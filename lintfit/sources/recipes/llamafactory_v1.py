"""Recipes of LLaMA-Factory's rewritten program: ``USE_V1=1 llamafactory-cli train FILE``.

Its arguments are dataclasses of their own, with sections for plugins, and its loop is its own, too. Read in
LLaMA-Factory 0.9.6: ``v1/config``, ``v1/core/base_trainer.py``, ``v1/core/model_engine.py`` and ``v1/plugins``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lintfit.documents.model import DataDocument
from lintfit.settings.model import AUTO, UNKNOWN, Provenance, Setting, is_count
from lintfit.settings.uncounted import CAST_TO_FLOAT
from lintfit.settings.values import AS_LOADED, Adapters, FourBits, Fsdp
from lintfit.sources.recipes.base import OpenFile, World
from lintfit.sources.recipes.keys import Keys, OfKeys, Stated, of_flag, of_node, scalar, spelled
from lintfit.sources.recipes.llamafactory_arguments import named_file
from lintfit.sources.recipes.llamafactory_model import all_but
from lintfit.sources.recipes.vision import facts_of

if TYPE_CHECKING:
    from lintfit.documents.model import FileEdit
    from lintfit.sources.flag_grammars.model import Refused
    from lintfit.sources.launchers.launch import Launch

ACTIONS: Mapping[str, str] = {"train": "causal-lm", "sft": "causal-lm", "dpo": "dpo", "rm": "reward"}
"""The commands that train, and whose step each is (``v1/launcher.py``)."""

DEFAULTS: Mapping[str, Any] = {
    "model": "Qwen/Qwen3-4B-Instruct-2507",
    "flash_attn": "sdpa",
    "micro_batch_size": 1,
    "cutoff_len": 2048,
    "learning_rate": 1e-4,
    "max_grad_norm": 1.0,
    "bf16": True,
    "enable_activation_checkpointing": True,
    "cp_size": 1,
    "mp_replicate_size": 1,
    "pref_loss": "sigmoid",
}
"""What ``v1/config/*.py`` fill in; keys that are not here are None there."""
_LORA: Mapping[str, Any] = {"r": 8, "lora_dropout": 0.05, "target_modules": "all", "use_dora": False}
"""``LoraParams`` of ``v1/plugins/model_plugins/peft.py``."""

_KEYS: Mapping[str, str] = {
    "micro_batch_size": "micro_batch_size",
    "seq_len": "cutoff_len",
    "gradient_checkpointing": "enable_activation_checkpointing",
    "attention": "flash_attn",
}
"""Keys that say a setting as it is."""
_WORDS: Mapping[str, str] = {
    "per_device_train_batch_size": "micro_batch_size",
    "max_length": "cutoff_len",
    "gradient_checkpointing": "enable_activation_checkpointing",
}


@dataclass(frozen=True, eq=False)
class V1Recipe(OfKeys):
    """One launch of the rewritten program with its recipe."""

    launch: Launch
    keys: Keys
    world: World = field(repr=False)
    dialect: str = "llamafactory-v1"
    trains: bool = True
    uses_trainer: bool = False
    uses_trl: bool = False
    arguments_place: None = None
    refused: tuple[Refused, ...] = ()
    adjustable: frozenset[str] = frozenset({*_KEYS, "gradient_accumulation_steps", "lora_rank"})

    # -- writing ----------------------------------------------------------------------------------------------------

    def write(self, name: str, value: Any) -> tuple[FileEdit, ...] | None:
        match name:
            case "weights_dtype" if value == AS_LOADED:
                return ()
            case "gradient_accumulation_steps":
                micro, ranks = self.keys.count("micro_batch_size"), self._ranks
                return self.keys.write("global_batch_size", value * micro * ranks) if micro and ranks else None
            case "lora_rank" if self._inner("peft_config", "r") is not None:
                return self.keys.write("peft_config.r", value)
            case "method" | "quantization" if isinstance(value, Adapters | FourBits):
                return None
            case _ if name in _KEYS:
                return self.keys.write(_KEYS[name], value)
        return None

    def argument(self, *names: str) -> None:
        """None: the loop is no trainer of transformers'."""

    def write_argument(self, name: str, value: Any) -> None:
        """None: the loop is no trainer of transformers'."""

    def spelled(self, argument: str, value: Any) -> str | None:
        """An argument of ``TrainingArguments`` as a key of the recipe, where it has one."""
        key = _WORDS.get(argument)
        return f"{key}: {spelled(value)}" if key is not None else None

    # -- reading ----------------------------------------------------------------------------------------------------

    def _inner(self, section: str, name: str) -> Stated | None:
        """A key of a plugin's section, written in it or as ``section.key=value``."""
        override, found = self.keys.get(f"{section}.{name}"), self.keys.get(section)
        return override or (found.inner(name) if found is not None else None)

    def _plugin(self, section: str) -> Stated | None:
        """Which plugin a section asks for; None without the section."""
        found = self.keys.get(section)
        if found is None or found.value is None:
            return None
        return self._inner(section, "name") or Stated(UNKNOWN, found.provenance)

    @property
    def _ranks(self) -> int | None:
        found = self.world(self.launch.settings.get("gpus"))
        return found.value if found is not None and is_count(found.value) else None

    def _settings(self) -> Iterator[Setting]:
        name = self.keys.found("model")
        yield name.setting("model", name.value if isinstance(name.value, str) else UNKNOWN)
        yield from self._method()
        yield from self._quantization()
        yield from self._engine()
        yield from self._batch()
        yield from self._loss()
        yield from self._optimizer()

    def _method(self) -> Iterator[Setting]:
        plugin = self._plugin("peft_config")
        if plugin is None:
            why = Provenance("derived", "there is no peft_config")
            yield Setting("method", "full", why)
            yield Setting("weights_dtype", "fp32", Provenance("derived", "full tuning casts the model to float32"))
            return
        yield Setting("weights_dtype", AUTO, Provenance.default('LLaMA-Factory loads with dtype "auto"'))
        if plugin.value == "freeze":
            yield plugin.setting("method", "full")
            yield plugin.setting("partly_frozen", True)
            count = self._inner("peft_config", "freeze_trainable_layers") or Stated(2, plugin.provenance)
            modules = self._inner("peft_config", "freeze_trainable_modules")
            plain = modules is None or modules.value == "all"
            facts = facts_of(str(self.keys.found("model").value))
            yield count.setting("frozen_modules", all_but(facts, count.value if plain else None))
            yield plugin.setting("uncounted", CAST_TO_FLOAT)
            return
        yield plugin.setting("method", "lora" if plugin.value == "lora" else UNKNOWN)
        for setting, key in {"lora_rank": "r", "lora_dropout": "lora_dropout", "use_dora": "use_dora"}.items():
            yield self._of_lora(key).setting(setting, self._of_lora(key).value)
        targets = self._of_lora("target_modules")
        listed = tuple(targets.value) if isinstance(targets.value, list) else (targets.value,)
        yield targets.setting("lora_targets", "all-linear" if targets.value == "all" else listed)
        saved = self._inner("peft_config", "modules_to_save")
        if saved is not None and isinstance(saved.value, list):
            yield saved.setting("lora_modules_to_save", tuple(saved.value))

    def _of_lora(self, key: str) -> Stated:
        found = self._inner("peft_config", key)
        return found or Stated(_LORA[key], Provenance.default("LLaMA-Factory's default (LoraParams)"))

    def _quantization(self) -> Iterator[Setting]:
        plugin, bits = self._plugin("quant_config"), self._inner("quant_config", "quantization_bit")
        if plugin is None:
            yield Setting("quantization", None, Provenance("derived", "there is no quant_config"))
            return
        nested, count = self._inner("quant_config", "double_quantization"), bits.value if bits is not None else None
        if plugin.value not in ("bnb", "auto") or count is UNKNOWN:
            yield plugin.setting("quantization", UNKNOWN)
        elif count is None and plugin.value == "auto":
            yield plugin.setting("quantization", None)
        else:
            four = "nf4" if nested is not None and nested.value is False else "nf4-double"
            yield (bits or plugin).setting("quantization", {None: four, 4: four, 8: "int8"}.get(count, UNKNOWN))
            yield plugin.setting("kbit_upcast", "none")

    def _engine(self) -> Iterator[Setting]:
        plugin, half = self._plugin("dist_config"), self.keys.found("bf16")
        if plugin is None:
            # Without FSDP nothing casts: there is no autocast in this loop.
            yield Setting("mixed_precision", "no", Provenance("derived", "without dist_config there is no autocast"))
            return
        if plugin.value == "fsdp2":
            kept, moved = (self._inner("dist_config", key) for key in ("reshard_after_forward", "offload_params"))
            strategy = "SHARD_GRAD_OP" if kept is not None and kept.value is False else "FULL_SHARD"
            offload = moved is not None and moved.value is True
            replicas = self.keys.count("mp_replicate_size") or 1
            yield plugin.setting("fsdp", Fsdp(2, strategy, offload, replicas))
            yield half.setting("mixed_precision", "bf16" if half.value is True else "no")
        elif plugin.value == "deepspeed":
            config = self._inner("dist_config", "config_file")
            yield (config or plugin).setting("deepspeed", config.value if config is not None else UNKNOWN)
        else:
            yield plugin.setting("engine", UNKNOWN)
        shared = self.keys.found("cp_size")
        if shared.value != 1:
            for name in ("sequence_parallel", "context_parallel"):
                yield shared.setting(name, shared.value if is_count(shared.value) else UNKNOWN)

    def _batch(self) -> Iterator[Setting]:
        yield self.keys.number("micro_batch_size", "micro_batch_size")
        yield self.keys.number("seq_len", "cutoff_len")
        micro, total = self.keys.count("micro_batch_size"), self.keys.found("global_batch_size")
        steps: Any = 1
        if total.value is not None:
            known = is_count(total.value) and micro and self._ranks
            steps = max(1, total.value // micro // self._ranks) if known and micro and self._ranks else UNKNOWN
        yield total.setting("gradient_accumulation_steps", steps)
        yield self.keys.number("max_grad_norm", "max_grad_norm")
        yield self.keys.number("learning_rate", "learning_rate")
        on = self.keys.found("enable_activation_checkpointing")
        yield on.setting("gradient_checkpointing", on.value)
        yield Setting("use_reentrant", False, Provenance.default("LLaMA-Factory asks for use_reentrant False"))
        kernel = self.keys.found("flash_attn")
        yield kernel.setting("attention", kernel.value)
        way = self.keys.found("batching_strategy")
        # Both put the samples of a batch into one sequence; the dynamic one takes as many as have room in it.
        yield way.setting("packing", way.value == "dynamic_padding_free")
        if way.value in ("padding_free", "dynamic_padding_free"):
            yield way.setting("padded_batches", False)
            yield way.setting("joins_samples", True)

    def _loss(self) -> Iterator[Setting]:
        action, loss = self.launch.action or "train", self.keys.found("pref_loss")
        place = Provenance("derived", f"llamafactory-cli {action}")
        kind = ACTIONS.get(action, UNKNOWN)
        if action == "dpo" and loss.value != "sigmoid":
            kind = {"orpo": "orpo", "simpo": "cpo"}.get(str(loss.value), UNKNOWN)
        yield Setting("trainer", kind, place)
        whole = self._plugin("peft_config") is None
        needed = action == "dpo" and loss.value == "sigmoid" and whole
        yield Setting("reference_model", needed, place)
        yield Setting("loss", "full", Provenance.default("the loop keeps all logits"))
        yield Setting("use_cache", False, Provenance.default("the loop trains without a cache"))

    def _optimizer(self) -> Iterator[Setting]:
        plugin = self._plugin("optim_config")
        if plugin is None:
            yield Setting("optimizer", "adamw_torch", Provenance.default("LLaMA-Factory's default: torch's AdamW"))
        else:
            yield plugin.setting("optimizer", plugin.value if isinstance(plugin.value, str) else UNKNOWN)


def read_recipe(launch: Launch, open_file: OpenFile, world: World) -> V1Recipe | None:
    """A launch of the rewritten program, with the file that it names."""
    named = named_file(launch)
    if named is None or launch.action not in ACTIONS:
        return None
    keys = Keys(launch, defaults=DEFAULTS, whose="LLaMA-Factory's default (v1)")
    document = open_file(named.value) if isinstance(named.value, str) else None
    root = document.root if isinstance(document, DataDocument) else None
    if not isinstance(document, DataDocument) or root is None or root.shape != "mapping":
        keys.missing = named
    else:
        keys.config = document
        for entry in root.entries:
            keys.put(entry.key, of_node(document, entry.value))
    for override in launch.overrides:
        value = UNKNOWN if override.value is None or "$" in override.value else scalar(override.value)
        keys.put(override.name, Stated(value, of_flag(override), override))
    return V1Recipe(launch, keys, world)
