"""LLaMA-Factory's arguments: the keys of a YAML or JSON, ``key=value`` words over them, or flags alone.

``read_args`` of ``hparams/parser.py`` (0.9.5) merges the words behind a file into it; without a file the command line
is flags. ``HfArgumentParser`` fills the dataclasses from the one or from the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lintfit.documents.model import DataDocument
from lintfit.settings.model import UNKNOWN, Provenance, Setting
from lintfit.sources.recipes.base import OpenFile
from lintfit.sources.recipes.keys import Keys, Stated, of_flag, of_node
from lintfit.sources.recipes.trainer import Arguments
from lintfit.sources.training_arguments import flag_value, of_text

if TYPE_CHECKING:
    from lintfit.sources.launchers.launch import Launch

VERSION = "0.9.5"
DEFAULTS: Mapping[str, Any] = {
    "stage": "sft", "finetuning_type": "lora", "cutoff_len": 2048, "packing": None, "neat_packing": False,
    "lora_rank": 8, "lora_dropout": 0.0, "lora_target": "all", "additional_target": None, "use_dora": False,
    "pure_bf16": False, "quantization_bit": None, "quantization_method": "bnb", "quantization_type": "nf4",
    "double_quantization": True, "upcast_layernorm": False, "upcast_lmhead_output": False,
    "disable_gradient_checkpointing": False, "use_reentrant_gc": True, "use_unsloth_gc": False, "flash_attn": "auto",
    "enable_liger_kernel": False, "use_unsloth": False, "freeze_vision_tower": True,
    "freeze_multi_modal_projector": True, "freeze_language_model": False, "image_max_pixels": 768 * 768,
    "pref_loss": "sigmoid", "use_galore": False, "galore_layerwise": False, "use_apollo": False,
    "apollo_layerwise": False, "use_badam": False, "badam_mode": "layer", "use_adam_mini": False, "use_muon": False,
    "val_size": 0.0, "reward_model_type": "lora", "freeze_trainable_layers": 2, "fp8": False, "use_llama_pro": False,
}  # fmt: skip
"""Of ``hparams/*.py``; before 0.9.1 ``cutoff_len`` was 1024."""
_FILES = (".yaml", ".yml", ".json")


class LlamaFactoryArguments(Arguments):
    """The fields of LLaMA-Factory's dataclasses, which stand over those of transformers."""

    __slots__ = ()

    def get(self, *names: str) -> Stated | None:
        """A field under the first of these names that is stated, else LLaMA-Factory's default, else transformers'."""
        found = self.stated(*names)
        if found is not None or not self.complete:
            return found
        own = next((name for name in names if name in DEFAULTS), None)
        if own is not None:
            return Stated(DEFAULTS[own], Provenance.default(f"LLaMA-Factory {VERSION} default"))
        return super().get(*names)

    def value(self, name: str) -> Any:
        """What a field comes to; UNKNOWN where that is not statically known, None where there is no such field."""
        found = self.get(name)
        if found is None:
            return None if self.complete else UNKNOWN
        return found.value


def read_arguments(launch: Launch, open_file: OpenFile, versions: Mapping[str, str]) -> LlamaFactoryArguments:
    """The arguments of one launch, with the file that it names."""
    keys = Keys(launch)
    named = named_file(launch)
    if named is None:
        for flag in launch.flags:
            value = flag_value(flag)
            keys.put(flag.name, Stated(value, of_flag(flag), flag))
    else:
        _read_file(keys, named, open_file)
        for flag in launch.overrides:
            known = flag.value is not None and "$" not in flag.value
            keys.put(flag.name, Stated(of_text(flag.value or "") if known else UNKNOWN, of_flag(flag), flag))
    classes = ("transformers.TrainingArguments",)
    return LlamaFactoryArguments(keys, classes, versions, open_file, keys.missing is None)


def named_file(launch: Launch) -> Setting | None:
    """The file that stands first behind the command."""
    first = launch.invocation.positional[:1]
    if not first or not (first[0].value is None or first[0].value.endswith(_FILES)):
        return None
    word, place = first[0], Provenance.at(launch.document, first[0].span)
    if launch.assumed:
        place = Provenance("file", "", launch.place)
    return Setting("config", UNKNOWN if word.value is None else word.value, place)


def _read_file(keys: Keys, named: Setting, open_file: OpenFile) -> None:
    document = open_file(named.value) if isinstance(named.value, str) else None
    root = document.root if isinstance(document, DataDocument) else None
    if not isinstance(document, DataDocument) or root is None or root.shape != "mapping":
        keys.missing = named
        return
    keys.config = document
    for entry in root.entries:
        keys.put(entry.key, of_node(document, entry.value))
