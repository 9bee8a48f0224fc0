"""LitGPT's launches as settings: ``litgpt finetune_lora CHECKPOINT --flags`` with ``--config`` files below them.

Keys, defaults and what follows from them are those of LitGPT 0.5.13 (``litgpt/args.py``, ``litgpt/finetune/*.py``,
``litgpt/pretrain.py``, ``litgpt/utils.py``). jsonargparse takes flags and config files in the order of the command
line, each over what stands before it.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from lintfit.documents.model import DataDocument
from lintfit.settings.model import UNKNOWN, Provenance, Setting, is_count
from lintfit.settings.values import Fsdp
from lintfit.sources.recipes.base import OpenFile, World
from lintfit.sources.recipes.keys import Keys, OfKeys, Stated, of_flag, spelled
from lintfit.sources.recipes.litgpt_refused import refused
from lintfit.versions import before

if TYPE_CHECKING:
    from lintfit.documents.model import FileEdit
    from lintfit.sources.flag_grammars.model import Refused
    from lintfit.sources.launchers.launch import Launch

METHODS: Mapping[str, str] = {"finetune": "lora", "finetune_lora": "lora", "finetune_full": "full", "pretrain": "full"}
"""The method by command; the adapters of ``finetune_adapter`` are none that lintfit counts."""

DEFAULTS: Mapping[str, Any] = {
    "precision": "bf16-mixed", "quantize": None, "devices": 1, "num_nodes": 1, "optimizer": "AdamW",
    "lora_r": 8, "lora_dropout": 0.05, "lora_query": True, "lora_key": False, "lora_value": True,
    "lora_projection": False, "lora_mlp": False, "lora_head": False, "train.global_batch_size": 16,
    "train.micro_batch_size": 1, "train.max_seq_length": None, "train.max_norm": None,
}  # fmt: skip
"""Of fine-tuning. ``get_default_supported_precision`` takes ``bf16-mixed`` wherever bfloat16 works."""

PRETRAINING: Mapping[str, Any] = {
    **DEFAULTS, "devices": "auto", "train.global_batch_size": 512, "train.micro_batch_size": 4, "train.max_norm": 1.0,
}  # fmt: skip

KEYS = (*DEFAULTS, "checkpoint_dir", "model_name", "model_config")

PRECISIONS: Mapping[str, tuple[str, str]] = {
    "bf16-true": ("bf16", "no"),
    "16-true": ("fp16", "no"),
    "32-true": ("fp32", "no"),
    "bf16-mixed": ("fp32", "bf16"),
    "16-mixed": ("fp32", "fp16"),
}
"""dtype of the weights (adapters as well) and of autocast, by Fabric's precision."""

_TRUE = {dtype: name for name, (dtype, _) in PRECISIONS.items() if name in ("bf16-true", "16-true")}

QUANTIZERS: Mapping[str, str] = {
    "bnb.nf4": "nf4",
    "bnb.nf4-dq": "nf4-double",
    "bnb.fp4": "nf4",
    "bnb.fp4-dq": "nf4-double",
    "bnb.int8-training": "int8",
}
"""fp4 differs from nf4 in its code, not in its bytes."""

TARGETS: Mapping[str, tuple[str, ...]] = {
    "lora_query": ("q_proj",),
    "lora_key": ("k_proj",),
    "lora_value": ("v_proj",),
    "lora_projection": ("o_proj", "dense", "out_proj", "c_proj"),
    "lora_mlp": ("gate_proj", "up_proj", "down_proj", "gate_up_proj", "fc1", "fc2", "dense_h_to_4h", "dense_4h_to_h"),
    "lora_head": ("lm_head",),
}
"""The modules of transformers' models that LitGPT's switches adapt. A model has some of each row."""

FUSED = ("query_key_value", "qkv_proj", "Wqkv", "c_attn")
"""What query, key and value are in models that transformers keeps in one projection."""

OPTIMIZERS: Mapping[str, str] = {
    "adamw": "adamw_torch", "adam": "adamw_torch", "sgd": "sgd", "adagrad": "adagrad", "rmsprop": "rmsprop",
    "adafactor": "adafactor", "adamw8bit": "adamw_8bit", "pagedadamw": "paged_adamw_32bit",
    "pagedadamw8bit": "paged_adamw_8bit", "grokadamw": "grokadamw",
}  # fmt: skip
"""transformers' names by the class's own."""

_LONGEST_BLOCK = 8192
"""Positions up to which ``litgpt/config.py`` has the ``block_size`` of the checkpoint's own config (Mistral's is 4096
there, of 32768)."""

_FSDP2 = "0.5.11"
"""The LitGPT whose ``finetune/lora.py`` first has ``ModelParallelStrategy``, which shards with FSDP 2."""

_KEYS = {"micro_batch_size": "train.micro_batch_size", "seq_len": "train.max_seq_length", "lora_rank": "lora_r"}
"""Keys that say a setting as it is."""

_WORDS = {"per_device_train_batch_size": "train.micro_batch_size", "max_length": "train.max_seq_length"}
"""LitGPT's keys by names of ``TrainingArguments``."""

_MIXED = {"bf16": "bf16-mixed", "fp16": "16-mixed"}
_OF_DTYPE = {"bfloat16": "bf16-true", "float16": "16-true", "float32": "32-true"}


@dataclass(frozen=True, eq=False)
class LitGptRecipe(OfKeys):
    """One launch of LitGPT with the config files that it names."""

    launch: Launch
    keys: Keys
    world: World = field(repr=False)
    dialect: str = "litgpt"
    trains: bool = True
    uses_trainer: bool = False
    uses_trl: bool = False
    arguments_place: None = None
    versions: Mapping[str, str] = field(default_factory=dict, repr=False)

    @cached_property
    def refused(self) -> tuple[Refused, ...]:
        return tuple(refused(self.launch, self.keys.config))

    @property
    def method(self) -> str | None:
        """``lora`` or ``full``, None for LitGPT's own adapters."""
        return METHODS.get(self.launch.action or "")

    @property
    def adjustable(self) -> frozenset[str]:
        # Keys of a recipe that the planner may write.
        names = {"micro_batch_size", "gradient_accumulation_steps", "seq_len", "mixed_precision"}
        precision = self._asked.value
        if precision in PRECISIONS:
            names.add("weights_dtype")
        true = isinstance(precision, str) and precision.endswith("-true")
        if true and self.method == "lora" and self._ranks == 1:
            names.add("quantization")
        return frozenset(names)

    def write(self, name: str, value: Any) -> tuple[FileEdit, ...] | None:
        """Changes the flag where a flag decides, else the config file, else adds a flag.

        LitGPT has no word for accumulation: it follows from ``train.global_batch_size``.
        """
        match name:
            case _ if name in _KEYS:
                return self.keys.write(_KEYS[name], value)
            case "gradient_accumulation_steps":
                return self._write_samples(value)
            case "quantization" if name in self.adjustable:
                word = next((word for word, known in QUANTIZERS.items() if known == value), None)
                return self.keys.write("quantize", word) if word is not None else None
            case "weights_dtype" if name in self.adjustable and value in _TRUE:
                return self.keys.write("precision", _TRUE[value])
            case "no":
                return ()  # said by the precision that has the weights in 16 bits
            case "bf16" | "fp16" if value is True:
                return self.keys.write("precision", _MIXED[name])
            case "gpus" if self.keys.count("num_nodes") == 1:
                return self.keys.write("devices", value)
        return None

    def argument(self, *names: str) -> None:
        """None: LitGPT has no trainer with arguments."""

    def write_argument(self, name: str, value: Any) -> None:
        """None: LitGPT has no trainer with arguments."""

    def spelled(self, argument: str, value: Any) -> str | None:
        """LitGPT's own word for an argument of ``TrainingArguments``, where it has one."""
        if argument in ("bf16", "fp16"):
            return f"--precision {_MIXED[argument]}" if value is True else None
        if argument == "dtype":
            return f"--precision {_OF_DTYPE[value]}" if value in _OF_DTYPE else None
        key = _WORDS.get(argument)
        return f"--{key} {spelled(value)}" if key is not None else None

    def _write_samples(self, steps: int) -> tuple[FileEdit, ...] | None:
        micro = self.keys.count("train.micro_batch_size")
        if micro is None or self._ranks is None:
            return None
        samples = steps * micro * self._ranks
        same = self.keys.found("train.global_batch_size").value == samples
        return () if same else self.keys.write("train.global_batch_size", samples)

    # -- reading ----------------------------------------------------------------------------------------------------

    @cached_property
    def _gpus(self) -> Setting | None:
        """All processes, after lintfit's own options have had their say."""
        return self.world(self._devices())

    @property
    def _ranks(self) -> int | None:
        value = self._gpus.value if self._gpus is not None else None
        return value if isinstance(value, int) else None

    @property
    def _asked(self) -> Stated:
        """The precision; ``null`` asks for the default."""
        found = self.keys.found("precision")
        return found if found.value is not None else self.keys.default("precision")

    def _devices(self) -> Setting:
        devices, nodes = self.keys.found("devices"), self.keys.count("num_nodes")
        value = devices.value
        if value in (-1, "auto"):
            visible = self.launch.settings.get("visible_devices")
            listed = visible.value if visible is not None and isinstance(visible.value, str) else None
            value = len([one for one in listed.split(",") if one.strip()]) if listed is not None else UNKNOWN
            if visible is not None and listed is not None:
                devices = Stated(value, visible.provenance)
        known = is_count(value) and nodes is not None
        return devices.setting("gpus", value * nodes if known and nodes is not None else UNKNOWN)

    def _settings(self) -> Iterator[Setting]:
        yield from self._model()
        yield from self._precision()
        yield from self._method()
        yield from self._batch()
        yield from self._parallel()
        yield from self._optimizer()
        yield Setting("attention", "sdpa", Provenance.default("LitGPT calls scaled_dot_product_attention"))
        yield Setting("padded_batches", False, Provenance.default("LitGPT hands over no padding mask"))
        yield Setting("front_end", "litgpt", Provenance.default("LitGPT trains models of its own"))
        yield Setting("use_cache", False, Provenance.default("LitGPT trains without a cache"))
        # The logits of every chunk and their log-softmax stay until the backward pass, so that all of them are held.
        yield Setting("loss", "full", Provenance.default("chunked_cross_entropy keeps the logits of every chunk"))

    def _model(self) -> Iterator[Setting]:
        config = self.keys.get("model_config")
        if self.launch.action == "pretrain" and config is not None and config.value is not None:
            yield config.setting("model", UNKNOWN)
            return
        for key in ("model_name", "checkpoint_dir") if self.launch.action == "pretrain" else ("checkpoint_dir",):
            found = self.keys.get(key)
            if found is not None:
                yield found.setting("model", found.value if isinstance(found.value, str) else UNKNOWN)
                return
        if self.keys.missing is not None:
            yield Setting("model", UNKNOWN, self.keys.missing.provenance)

    def _precision(self) -> Iterator[Setting]:
        found = self._asked
        weights, autocast = PRECISIONS.get(str(found.value), (UNKNOWN, UNKNOWN))
        yield found.setting("weights_dtype", weights)
        yield found.setting("mixed_precision", autocast)
        if self.method == "lora":
            yield found.setting("lora_dtype", weights)
        quantize = self.keys.found("quantize")
        if self.method == "lora" and quantize.value is not None:
            yield quantize.setting("quantization", QUANTIZERS.get(str(quantize.value), UNKNOWN))

    def _method(self) -> Iterator[Setting]:
        place = Provenance("file", f"litgpt {self.launch.action}", self.launch.place)
        yield Setting("method", self.method or UNKNOWN, place)
        if self.method != "lora":
            return
        yield self.keys.number("lora_rank", "lora_r")
        yield self.keys.number("lora_dropout", "lora_dropout")
        switches = {key: self.keys.found(key) for key in TARGETS}
        targets = tuple(module for key, one in switches.items() if one.value is True for module in TARGETS[key])
        if any(switches[key].value is True for key in ("lora_query", "lora_key", "lora_value")):
            targets += FUSED
        told = all(isinstance(one.value, bool) for one in switches.values())
        stated = next((one for key, one in switches.items() if key in self.keys), switches["lora_query"])
        yield stated.setting("lora_targets", targets if told else UNKNOWN)

    def _batch(self) -> Iterator[Setting]:
        yield self.keys.number("micro_batch_size", "train.micro_batch_size")
        size, total = self.keys.count("train.micro_batch_size"), self.keys.count("train.global_batch_size")
        steps = max(1, total // self._ranks // size) if size and total and self._ranks else UNKNOWN
        yield self.keys.found("train.global_batch_size").setting("gradient_accumulation_steps", steps)
        if self.keys.found("train.max_seq_length").value is not None:
            yield self.keys.number("seq_len", "train.max_seq_length")
        elif self.launch.action == "pretrain" and self.keys.missing is None:
            yield from self._whole_blocks()
        if self.launch.action != "pretrain":
            yield Setting("packing", False, Provenance.default("LitGPT's fine-tuning pads each batch"))
            yield Setting("max_grad_norm", 0.0, Provenance.default("LitGPT's fine-tuning does not clip"))
        elif (norm := self.keys.found("train.max_norm")).value is None:
            yield norm.setting("max_grad_norm", 0.0)
        else:
            yield self.keys.number("max_grad_norm", "train.max_norm")

    def _whole_blocks(self) -> Iterator[Setting]:
        """Pretraining fills the model's ``block_size``, which is the checkpoint's positions where these are few."""
        config, name = self.keys.get("model_config"), self.keys.get("model_name")
        if config is not None and config.value is not None:
            size = config.inner("block_size")
            if size is not None and is_count(size.value):
                yield size.setting("seq_len", size.value)
            return
        from lintfit.catalog import models

        facts = models.find(name.value) if name is not None and isinstance(name.value, str) else None
        if facts is not None and facts.max_positions is not None and facts.max_positions <= _LONGEST_BLOCK:
            why = Provenance("derived", "pretraining fills the model's block_size")
            yield Setting("seq_len", facts.max_positions, why)

    def _parallel(self) -> Iterator[Setting]:
        gpus = self._devices()
        yield gpus
        if self.keys.found("num_nodes").value != 1:
            yield self.keys.number("nodes", "num_nodes")
        why = self._gpus.provenance if self._gpus is not None else gpus.provenance
        if self._ranks is None:
            yield Setting("gradient_checkpointing", UNKNOWN, why)
        elif self._ranks > 1:
            # Fine-tuning wraps each Block and checkpoints it; pretraining shards without checkpointing.
            tunes = self.launch.action != "pretrain"
            newer = self.method == "lora" and before(self.versions.get("litgpt"), _FSDP2) is not True
            fsdp = Fsdp(2 if newer else 1, "FULL_SHARD" if tunes else "HYBRID_SHARD")
            yield Setting("fsdp", fsdp, Provenance("derived", "LitGPT shards over more than one device"))
            yield Setting("gradient_checkpointing", tunes, Provenance("derived", "more than one device"))
        else:
            yield Setting("gradient_checkpointing", False, Provenance("derived", "LitGPT recomputes only under FSDP"))

    def _optimizer(self) -> Iterator[Setting]:
        found = self.keys.found("optimizer")
        name = found.value.get("class_path") if isinstance(found.value, Mapping) else found.value
        known = OPTIMIZERS.get(name.rpartition(".")[2].lower(), UNKNOWN) if isinstance(name, str) else UNKNOWN
        if known == "adamw_torch" and self.keys.found("quantize").value is not None and self.method == "lora":
            why = Provenance("derived", "LitGPT pages AdamW under bitsandbytes")
            yield Setting("optimizer", "paged_adamw_32bit", why)
        elif known == "adamw_torch" and self.launch.action == "pretrain":
            yield found.setting("optimizer", "adamw_torch_fused")
        else:
            yield found.setting("optimizer", known)


def usual_command(document: DataDocument) -> str | None:
    """``litgpt finetune_lora --config FILE``, or the command whose keys the file has."""
    root = document.root
    if root is None or root.get("train") is None:
        return None
    if any(entry.key.startswith("lora_") for entry in root.entries):
        action = "finetune_lora"
    elif root.get("checkpoint_dir") is None and (root.get("model_name") or root.get("model_config")) is not None:
        action = "pretrain"
    else:
        action = "finetune_full"
    return f"litgpt {action} --config {shlex.quote(document.path.as_posix())}"


def read_recipe(
    launch: Launch, open_file: OpenFile, world: World, versions: Mapping[str, str] | None = None
) -> LitGptRecipe:
    """A LitGPT launch with the files of its ``--config`` options, the last of which is the one that is edited."""
    pretrains = launch.action == "pretrain"
    keys = Keys(launch, defaults=PRETRAINING if pretrains else DEFAULTS, whose="LitGPT's default")
    model = "model_name" if pretrains else "checkpoint_dir"
    if launch.invocation.positional:
        word = launch.invocation.positional[0]
        value = word.value if word.value is not None else UNKNOWN
        keys.put(model, Stated(value, Provenance.at(launch.document, word.span)))
    keys.read_in_order(open_file, KEYS, ".class_path")
    for flag in launch.flags:  # every flag of LitGPT takes one value: what stands behind it is the positional argument
        if len(flag.words) > 1 and model not in keys:
            keys.put(model, Stated(flag.words[1] if "$" not in flag.words[1] else UNKNOWN, of_flag(flag)))
    return LitGptRecipe(launch, keys, world, versions=versions or {})
