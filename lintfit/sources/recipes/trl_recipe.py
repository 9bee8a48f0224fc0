"""TRL's command line: ``trl sft --model_name_or_path … --num_processes 8``, with the YAML of its ``--config``.

``trl/scripts/*.py`` of TRL 1.16 all do the same: fill the trainer's config and ``ModelConfig`` from flags over
``--config`` over defaults, and hand the trainer the model's name with the dtype, adapters and quantization of
``ModelConfig``. ``accelerate launch`` gets the options that none of these classes has
(``lintfit/sources/launchers/command_line.py``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from lintfit.catalog import sft
from lintfit.catalog.dating import LENGTH_RENAMED, OLDER_LENGTH
from lintfit.catalog.quantized import by_name
from lintfit.documents.model import DataDocument, Document
from lintfit.errors import CannotWrite
from lintfit.settings.model import AUTO, UNKNOWN, Provenance, Setting, spoken
from lintfit.settings.values import AS_LOADED, Adapters, FourBits
from lintfit.sources.preference_fallback import CONFIGS_SINCE, where_none
from lintfit.sources.recipes.keys import spelled, write_key
from lintfit.sources.recipes.trainer import Arguments, evaluation_of, settings_of
from lintfit.sources.training_arguments import ADAPTERS, EVALUATION, TRAINING
from lintfit.sources.training_words import CHECKPOINTING, LIGER, STRATEGIES, TORCH, dtype_of, kernel_of

if TYPE_CHECKING:
    from lintfit.documents.model import FileEdit
    from lintfit.sources.flag_grammars.model import Refused
    from lintfit.sources.launchers.launch import Launch

_RENAMED = (0, 23)
"""The TRL whose ``ModelConfig`` first has ``dtype`` for ``torch_dtype``."""
_OF_OLDER = ("max_seq_length", "evaluation_strategy", "use_flash_attention_2")
"""Fields that TRL or transformers had under these names before ``dtype`` was one (TRL 0.20, transformers 4.46)."""
_IN_FLOAT32 = (0, 29)
"""The TRL that first loads a model given by name in float32."""

_ADJUSTABLE = frozenset({
    "attention", "eval_batch_size", "gradient_accumulation_steps", "gradient_checkpointing", "lora_rank",
    "lora_targets", "loss", "method", "micro_batch_size", "mixed_precision", "optimizer", "quantization", "seq_len",
    "weights_dtype",
})  # fmt: skip
"""Settings that are flags of the command or keys of its file, which the planner may write."""

_LENGTH = ("max_length", "max_seq_length")
"""The field that cuts sequences, by its name and by the one that SFTConfig had for it before."""

_FIELDS: Mapping[str, tuple[str, ...]] = {
    **TRAINING,
    **EVALUATION,
    "seq_len": _LENGTH,
    "lora_rank": ("lora_r",),
    **{name: (name,) for name in ("prediction_loss_only", "use_cache", "use_liger_kernel")},
}
"""The fields by which settings are written, the one to add where none is stated first."""


@dataclass(frozen=True, eq=False)
class TrlRecipe:
    """One ``trl`` launch."""

    launch: Launch
    arguments: Arguments
    kind: str
    """What the trainer and its config are called: ``SFT`` of ``SFTTrainer``."""
    program: str
    """What a person starts: ``trl sft``, or the script of TRL's that does the same."""
    started: tuple[Setting, ...] = ()
    """What the YAML says to ``accelerate launch``."""
    loads_itself: bool = False
    """Whether a script loads the model and hands it over (alignment-handbook, open-r1 ``utils/model_utils.py``)."""
    dialect: str = "trl"
    trains: bool = True
    uses_trainer: bool = True
    uses_trl: bool = True
    arguments_place: None = None
    """None: the launch line is all that there is."""
    missing: None = None
    """None: a ``--config`` that is not there leaves its settings unknown."""
    adjustable: frozenset[str] = _ADJUSTABLE

    @property
    def document(self) -> Document:
        config = self.arguments.keys.config
        return config if self.launch.assumed and config is not None else self.launch.document

    @cached_property
    def refused(self) -> tuple[Refused, ...]:
        """The flags and keys that neither ``trl`` nor ``accelerate launch`` takes.

        A file without its launch line may be for a script with dataclasses of its own, which takes more of them.
        """
        from lintfit.sources.flag_grammars.programs import of_trl

        if self.launch.launcher != "trl" or self.launch.assumed:
            return ()
        return tuple(of_trl(self.launch, self.arguments.keys.config, self.arguments.versions))

    @property
    def not_of_trl(self) -> tuple[str, ...]:
        """The keys of a file without its launch line that ``trl`` does not take."""
        from lintfit.sources.flag_grammars.programs import of_trl

        if not self.launch.assumed:
            return ()
        return tuple(each.name for each in of_trl(self.launch, self.arguments.keys.config, self.arguments.versions))

    @cached_property
    def settings(self) -> Mapping[str, Setting]:
        return {setting.name: setting for setting in self._settings()}

    # -- writing ----------------------------------------------------------------------------------------------------

    def write(self, name: str, value: Any) -> tuple[FileEdit, ...] | None:
        """Changes or adds the flag, or the key of the ``--config`` file where that decides."""
        match name:
            case "weights_dtype" if value == AS_LOADED:
                return ()
            case "weights_dtype" if value in TORCH and (field := self._dtype_to_write) is not None:
                return self.arguments.write((field,), TORCH[value])
            case "attention":
                if value != "flash_attention_2" and "use_flash_attention_2" in self.arguments.keys:
                    return self.arguments.write(("use_flash_attention_2",), False)
                return self.arguments.write(("attn_implementation",), value)
            case "gradient_checkpointing":
                newer = CHECKPOINTING[0] in self.arguments.keys
                return self.arguments.write(CHECKPOINTING if newer else CHECKPOINTING[1:], value)
            case "method" if isinstance(value, Adapters):
                return self.arguments.write_next(use_peft=True, lora_r=value.rank, lora_target_modules="all-linear")
            case "quantization" if isinstance(value, FourBits):
                return self._quantize(value.name)
            case "kbit_upcast" if value == "all":
                return ()  # TRL prepares a quantized base itself
            case "loss":
                names, said = {"liger": (LIGER, True), "chunked": (("loss_type",), "chunked_nll")}.get(
                    value, ((), None)
                )
                return self.arguments.write(names, said) if names else None
            case _ if name in _FIELDS:
                return self.arguments.write(_FIELDS[name], value)
        return None

    def _quantize(self, wanted: str) -> tuple[FileEdit, ...] | None:
        stated = self.settings.get("quantization")
        if stated is not None and stated.value in ("nf4", "nf4-double"):
            return ()
        if wanted not in ("nf4", "nf4-double") or (stated is not None and stated.value is not None):
            raise CannotWrite("the recipe says already how the base is quantized")
        return self.arguments.write_next(use_bnb_nested_quant=wanted == "nf4-double", load_in_4bit=True)

    def argument(self, *names: str) -> Setting | None:
        """A field of the trainer's config or of ``ModelConfig``: a flag, a key of the config file, or the default."""
        found = self.arguments.get(*names)
        return Setting(names[0], found.value, found.provenance) if found is not None else None

    def write_argument(self, name: str, value: Any) -> tuple[FileEdit, ...] | None:
        """Changes or adds the flag, or the key of the ``--config`` file where that decides."""
        found = self.arguments.stated(name)
        place = found.provenance.place if found is not None else None
        if place is not None and isinstance(place.document, DataDocument):
            return write_key(place.document, name, value)
        return self.launch.set_flag(name, spelled(value, none="None"))

    def spelled(self, argument: str, value: Any) -> str:
        """An argument as a flag: ``--bf16 true``."""
        return f"--{argument} {spelled(value, none='None')}"

    # -- reading ----------------------------------------------------------------------------------------------------

    @property
    def _itself(self) -> Provenance:
        return Provenance("derived", f"{self.program} does so")

    @property
    def _dtype_field(self) -> str:
        return "dtype" if self.arguments.at_least("trl", *_RENAMED) else "torch_dtype"

    @property
    def _dtype_to_write(self) -> str | None:
        """The field that is stated, else that of the version; a recipe in words of older ones that nobody states may be
        of any of them."""
        fields = (self._dtype_field, "dtype", "torch_dtype")
        stated = next((each for each in fields if each in self.arguments.keys), None)
        dated = "trl" in self.arguments.versions or not any(name in self.arguments.keys for name in _OF_OLDER)
        return stated or (self._dtype_field if dated else None)

    def _settings(self) -> Iterator[Setting]:
        name = self.arguments.get("model_name_or_path")
        model = name.setting("model", name.value) if name is not None and isinstance(name.value, str) else None
        if model is not None:
            yield model
        yield self._weights()
        yield from self._attention()
        yield from self._quantization(model)
        yield from self._method(model)
        yield Setting("trainer", "causal-lm" if self.kind == "SFT" else self.kind.lower(), self._itself)
        yield self._reference()
        trainer = settings_of(self.arguments)
        yield from trainer.values()
        yield from self.started
        yield from self._precision(trainer)
        if self.kind == "SFT" and "loss" not in trainer:
            yield from self._loss()
        if self._evaluates():
            yield from evaluation_of(self.arguments).values()
        if self.kind not in ("GRPO", "RLOO"):
            yield from self._length()

    def _length(self) -> Iterator[Setting]:
        trainer, versions = f"{self.kind}Trainer", self.arguments.versions
        stated = self.arguments.stated(*_LENGTH)
        if self.kind in ("DPO", "KTO") and stated is None and not self.arguments.at_least("trl", *CONFIGS_SINCE):
            if self.arguments.complete and (cut := where_none(trainer, versions)) is not None:
                why = f"what {trainer} falls back to where max_length is None"
                yield Setting("seq_len", cut, Provenance.default(why))
            return
        older = self.kind == "SFT" and "trl" in versions and not self.arguments.at_least("trl", *LENGTH_RENAMED)
        length = self.arguments.known(*(_LENGTH[1:] if older else _LENGTH))
        if length is not None and not (older and length.value is None):
            yield length.setting("seq_len", length.value)
        elif older and self.arguments.complete:
            yield Setting("seq_len", OLDER_LENGTH, Provenance.default(f"trl {versions['trl']} default"))

    def _weights(self) -> Setting:
        """The dtype that the model is loaded in: TRL's own default where ``ModelConfig`` has none."""
        # A recipe that names the field as the other versions do is one of theirs.
        stated = self.arguments.stated(self._dtype_field, "dtype", "torch_dtype")
        found = stated or self.arguments.get(self._dtype_field)
        if found is None:
            return Setting("weights_dtype", UNKNOWN, self._itself)
        dtype, versions = dtype_of(found.value), self.arguments.versions
        if dtype is not None:
            return found.setting("weights_dtype", AUTO if dtype == "auto" else dtype)
        if self.arguments.at_least("trl", *_IN_FLOAT32) and not self.loads_itself:
            whose = f"TRL {versions.get('trl') or '0.29'} default for a model given by name"
        elif self.arguments.at_least("transformers", 5):
            whose = f"transformers {versions.get('transformers') or '5'} default: the checkpoint's dtype"
            return Setting("weights_dtype", AUTO, Provenance.default(whose))
        else:
            whose = f"transformers {versions.get('transformers')} default"
        return Setting("weights_dtype", "fp32", Provenance.default(whose))

    def _attention(self) -> Iterator[Setting]:
        found, older = self.arguments.get("attn_implementation"), self.arguments.stated("use_flash_attention_2")
        if older is not None and older.value is True and "attn_implementation" not in self.arguments.keys:
            yield older.setting("attention", "flash_attention_2")
        elif found is None:
            yield Setting("attention", UNKNOWN, self._itself)
        elif found.value is not None:
            yield found.setting("attention", kernel_of(found.value))

    def _quantization(self, model: Setting | None) -> Iterator[Setting]:
        """What ``get_quantization_config`` makes of ``ModelConfig``, else what the checkpoint's name says."""
        four, eight = self.arguments.truth("load_in_4bit"), self.arguments.truth("load_in_8bit")
        if four is not False or eight is not False:
            asked = (self.arguments.stated(f"load_in_{bits}bit") for bits in (4, 8))
            place = next((each.provenance for each in asked if each is not None and each.value is True), self._itself)
            yield Setting("quantization", self._bits(four, eight), place)
        elif model is not None and (stored := by_name(model.value)) is not None:
            why = "the checkpoint's name says that it is quantized"
            provenance = Provenance("derived", why, model.provenance.place)
            yield Setting("quantization", stored.method or UNKNOWN, provenance)

    def _bits(self, four: bool | None, eight: bool | None) -> Any:
        if four:
            nested = self.arguments.truth("use_bnb_nested_quant")
            return UNKNOWN if nested is None else "nf4-double" if nested else "nf4"
        return UNKNOWN if four is None or eight is None else "int8"

    def _method(self, model: Setting | None) -> Iterator[Setting]:
        adapts = self.arguments.truth("use_peft")
        if adapts is False:
            if model is not None:
                yield Setting("method", "full", Provenance("derived", "no adapter is applied"))
            return
        yield Setting("method", "lora" if adapts else UNKNOWN, self._itself)
        for name, fields in ADAPTERS.items():
            found = self.arguments.get(*fields)
            if found is not None and found.value is not None:
                yield found.setting(name, found.value)

    def _reference(self) -> Setting:
        """Whether a second, frozen copy of the model is held."""
        adapted = self.arguments.truth("use_peft") is not False
        off = "the adapter is switched off for it"
        needed: Any = False
        if self.kind in ("GRPO", "RLOO"):
            found = self.arguments.get("beta")
            beta = found.value if found is not None else 0.0
            needed = UNKNOWN if beta is UNKNOWN else bool(beta) and not adapted
            why = f"beta is {spoken(beta)}" + (f", and {off}" * adapted)
        elif self.kind == "DPO" and self.loads_itself:
            needed = True
            why = f"{self.program} loads one beside the model"
        elif self.kind in ("DPO", "KTO"):
            needed = not adapted
            why = off if adapted else f"{self.kind}Trainer makes one where none is handed in"
        else:
            why = f"{self.kind}Trainer needs none"
        return Setting("reference_model", needed, Provenance("derived", why))

    def _precision(self, trainer: Mapping[str, Setting]) -> Iterator[Setting]:
        """TRL's configs leave ``bf16`` None, which becomes true unless ``fp16`` is set (TRL 0.19 and up)."""
        bf16, fp16 = trainer.get("bf16"), trainer.get("fp16")
        if bf16 is not None and bf16.value is None:
            on = fp16 is None or fp16.value in (None, False)
            yield Setting("bf16", on, Provenance.default("TRL's default: bf16 unless fp16"))

    def _loss(self) -> Iterator[Setting]:
        """TRL's SFT loss: fused with the head for every model since 1.16, in chunks by default since 1.8."""
        asked, version = self.arguments.stated("loss_type"), self.arguments.versions.get("trl")
        if asked is not None and asked.value is UNKNOWN:
            return
        if self.arguments.at_least("trl", *sft.FUSES_LOSS):
            whose = Provenance.default(f"TRL {version or '1.16'} computes the loss together with the head")
            yield Setting("loss", "chunked", whose)
        elif asked is not None and asked.value is not None:
            yield asked.setting("loss", "chunked" if asked.value == "chunked_nll" else "full")
        elif self.arguments.complete:
            yield Setting("loss", sft.loss(version), Provenance.default(f"TRL {version} default"))

    def _evaluates(self) -> bool:
        """Whether the trainer evaluates between its steps: it is handed data unless ``eval_strategy`` is ``no``."""
        strategy, first = self.arguments.get("eval_strategy"), self.arguments.get("eval_on_start")
        if strategy is not None and strategy.value == "no":
            return False
        asked = self.arguments.stated("eval_strategy", "evaluation_strategy")
        between = asked is not None and isinstance(asked.value, str) and asked.value.lower() in STRATEGIES
        return between or (first is not None and first.value is True)
