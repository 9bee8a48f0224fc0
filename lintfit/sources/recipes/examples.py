"""Example scripts of transformers and TRL that are launched and not at hand: what their flags say takes their place.

What such a script does is known (:mod:`lintfit.catalog.examples`); what it is started with stands on the launch line. A
launch with a flag that the script never had is one of another script of its name, and is not read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from lintfit.catalog import examples, models
from lintfit.catalog.config import CatalogError
from lintfit.catalog.examples import Example
from lintfit.documents.model import DataDocument, Document
from lintfit.settings.model import AUTO, UNKNOWN, Provenance, Setting, is_count
from lintfit.settings.values import AS_LOADED
from lintfit.sources.recipes import trl
from lintfit.sources.recipes.base import OpenFile, Recipe
from lintfit.sources.recipes.keys import Keys, Stated, spelled
from lintfit.sources.recipes.trainer import Arguments, evaluation_of, settings_of
from lintfit.sources.training_arguments import EVALUATION, TRAINING
from lintfit.sources.training_defaults import fields_of
from lintfit.sources.training_words import CHECKPOINTING, STRATEGIES, TORCH, dtype_of

if TYPE_CHECKING:
    from lintfit.documents.model import FileEdit
    from lintfit.sources.launchers.launch import Launch

_DTYPE = ("dtype", "torch_dtype")
"""The argument for the dtype, by the name that it has since transformers 4.56 and by the one before."""
_RENAMED = (4, 56)
_SEQ2SEQ = "Seq2SeqLM"
_OF_LOOPS = ("micro_batch_size", "gradient_accumulation_steps", "learning_rate", "weight_decay", "eval_batch_size")
"""Settings that the loops with Accelerate have arguments for."""
_ADJUSTABLE = frozenset({
    "eval_batch_size", "gradient_accumulation_steps", "micro_batch_size", "seq_len"
})  # fmt: skip
"""Settings that are flags of every example, which the planner may write."""


def read_example(launch: Launch, open_file: OpenFile, versions: Mapping[str, str]) -> Recipe | None:
    """The recipe that a launch of an example script is; None for a script or a flag that no library's examples have."""
    path = (launch.script or "").replace("\\", "/")
    of_trl = examples.of_trl(path)
    if of_trl is not None:
        return trl.read_script(launch, of_trl.kind, path.rpartition("/")[2], of_trl.arguments, open_file, versions)
    example = examples.of_transformers(path)
    return _read(launch, example, open_file, versions) if example is not None else None


def _read(launch: Launch, example: Example, open_file: OpenFile, versions: Mapping[str, str]) -> ExampleRecipe | None:
    classes = ("transformers.TrainingArguments",) if example.runs == "trainer" else ()
    fields = frozenset(example.arguments).union(*map(fields_of, classes))
    if example.loads == _SEQ2SEQ:
        fields |= frozenset(
            {"predict_with_generate", "generation_max_length", "generation_num_beams", "sortish_sampler"}
        )
    if example.has_dtype:
        fields |= frozenset(_DTYPE)
    keys = Keys(launch)
    if launch.positional and not _read_file(keys, launch, example, open_file, fields):
        return None
    if keys.read_flags(launch.flags, fields):
        return None
    return ExampleRecipe(launch, example, Arguments(keys, classes, versions, open_file))


def _read_file(keys: Keys, launch: Launch, example: Example, open_file: OpenFile, fields: frozenset[str]) -> bool:
    """Read the JSON that a script with a Trainer takes as its only word; False for any other word."""
    name = launch.positional[0]
    if example.runs != "trainer" or len(launch.positional) > 1 or not name or not name.endswith(".json"):
        return False
    document = open_file(name)
    if not isinstance(document, DataDocument) or document.root is None or document.root.shape != "mapping":
        return False
    keys.read(document, fields)
    return True


@dataclass(frozen=True, eq=False)
class ExampleRecipe:
    """One launch of an example of transformers."""

    launch: Launch
    example: Example
    arguments: Arguments
    dialect: str = "example"
    trains: bool = True
    uses_trl: bool = False
    arguments_place: None = None
    missing: None = None
    refused: tuple[()] = ()
    """None: a launch with a flag that the script never had is no launch of it."""

    @property
    def uses_trainer(self) -> bool:
        return self.example.runs == "trainer"

    @property
    def document(self) -> Document:
        return self.launch.document

    @property
    def adjustable(self) -> frozenset[str]:
        own = {"gradient_checkpointing", "optimizer"} if self.uses_trainer else set()
        return _ADJUSTABLE | own | ({"weights_dtype"} if self.example.has_dtype else set())

    @property
    def program(self) -> str:
        """What a person calls it."""
        return self.example.name

    @cached_property
    def settings(self) -> Mapping[str, Setting]:
        return {setting.name: setting for setting in self._settings()}

    # -- writing ----------------------------------------------------------------------------------------------------

    def write(self, name: str, value: Any) -> tuple[FileEdit, ...] | None:
        """Changes or adds the flag, or the key of the JSON where that decides."""
        fields = {**TRAINING, **EVALUATION, "seq_len": (self.example.length,)}
        match name:
            case "weights_dtype" if value == AS_LOADED:
                return ()
            case "weights_dtype" if value in TORCH and self.example.has_dtype:
                newer = self.arguments.at_least("transformers", *_RENAMED)
                return self.arguments.write(_DTYPE if newer else _DTYPE[1:], TORCH[value])
            case "gradient_checkpointing":
                return self.arguments.write(CHECKPOINTING[1:], value)
            case _ if name in fields:
                return self.arguments.write(fields[name], value)
        return None

    def argument(self, *names: str) -> Setting | None:
        """An argument of the script or of ``TrainingArguments``, as stated or by default."""
        found = self._get(*names)
        return Setting(names[0], found.value, found.provenance) if found is not None else None

    def write_argument(self, name: str, value: Any) -> tuple[FileEdit, ...] | None:
        """Changes or adds the flag, or the key of the JSON where that decides."""
        return self.arguments.keys.write(name, value, spelled(value, none="None"))

    def spelled(self, argument: str, value: Any) -> str:
        """An argument as a flag: ``--bf16 true``."""
        return f"--{argument} {spelled(value, none='None')}"

    # -- reading ----------------------------------------------------------------------------------------------------

    @property
    def _itself(self) -> Provenance:
        return Provenance("derived", f"{self.example.name} of {self.example.publisher} does so")

    def _get(self, *names: str) -> Stated | None:
        """The first of these arguments that is stated, else the default of the script, else of the Trainer's class."""
        found = self.arguments.stated(*names)
        if found is not None:
            return found
        own = next((name for name in names if name in self.example.arguments), None)
        if own is None:
            return self.arguments.get(*names)
        return Stated(self.example.arguments[own], Provenance.default(f"default of {self.example.name}"))

    def _settings(self) -> Iterator[Setting]:
        name = self._get("model_name_or_path")
        shape = name if name is not None and isinstance(name.value, str) else self._from_scratch()
        if shape is not None and isinstance(shape.value, str):
            yield shape.setting("model", shape.value)
        theirs = f"the one that {self.example.publisher} publishes"
        whose = f"{self.example.name} is not among these files and is taken for {theirs}"
        yield Setting("method", "full", Provenance("assumed", whose, self.launch.script_place))
        yield self._weights(name)
        if self.example.loads == "CausalLM":
            yield Setting("text_only", AUTO, self._itself)
        yield from self._lengths(shape)
        yield from self._of_trainer() if self.uses_trainer else self._of_loop()

    def _from_scratch(self) -> Stated | None:
        """The model whose config a new one is made from, where nothing of it is changed."""
        return self._get("config_name") if self.arguments.stated("config_overrides") is None else None

    def _weights(self, name: Stated | None) -> Setting:
        """The dtype that the model is loaded in: what is asked for, else transformers' own default."""
        if name is None or not isinstance(name.value, str):
            return Setting("weights_dtype", UNKNOWN, Provenance("derived", "the model is made from a config"))
        found = self.arguments.stated(*_DTYPE)
        dtype = dtype_of(found.value) if found is not None else None
        if found is not None and dtype is not None:
            return found.setting("weights_dtype", AUTO if dtype == "auto" else dtype)
        version = self.arguments.versions.get("transformers")
        if self.arguments.at_least("transformers", 5):
            whose = Provenance.default(f"transformers {version or '5'} default: the checkpoint's dtype")
            return Setting("weights_dtype", AUTO, whose)
        return Setting("weights_dtype", "fp32", Provenance.default(f"transformers {version} default"))

    def _lengths(self, name: Stated | None) -> Iterator[Setting]:
        example, found = self.example, self._get(self.example.length)
        positions = _positions(name.value) if name is not None and isinstance(name.value, str) else None
        if found is not None and found.value is not None:
            cut = (
                positions is not None and is_count(found.value) and found.value > positions and example.decoder is None
            )
            yield found.setting("seq_len", positions if cut else found.value)
        elif example.most is not None:
            yield self._by_tokenizer(example.most, positions)
        answers = self._get(example.decoder) if example.decoder is not None else None
        if answers is not None:
            yield answers.setting("decoder_seq_len", answers.value)

    def _by_tokenizer(self, most: int, positions: int | None) -> Setting:
        """What the script takes where nobody states a length: as much as the tokenizer says, up to its own limit."""
        if positions is not None and positions <= most:
            why = f"{self.example.length} is not stated: the model has {positions} positions"
            return Setting("seq_len", positions, Provenance("derived", why))
        why = f"{self.example.length} is not stated: {self.example.name} takes at most {most:,}"
        if not self.example.or_positions:
            return Setting("seq_len", most, Provenance("derived", why))
        why += " unless the tokenizer names a limit that the model has positions for"
        return Setting("seq_len", most, Provenance("assumed", why))

    def _of_trainer(self) -> Iterator[Setting]:
        kind = "classification" if self.example.loads == "SequenceClassification" else "causal-lm"
        yield Setting("trainer", kind, self._itself)
        yield Setting("reference_model", False, Provenance("derived", "Trainer needs none"))
        yield from settings_of(self.arguments).values()
        strategy = self.arguments.stated("eval_strategy", "evaluation_strategy")
        between = strategy is not None and str(strategy.value).lower() in STRATEGIES
        if self.arguments.truth("do_eval") is not True and not between:
            return
        yield from evaluation_of(self.arguments).values()
        if self.example.loads in ("CausalLM", "MaskedLM"):
            yield Setting("eval_predictions", "dropped", self._itself)
        elif self.example.loads == _SEQ2SEQ and self.arguments.truth("predict_with_generate"):
            yield Setting("eval_predictions", "kept", self._itself)

    def _of_loop(self) -> Iterator[Setting]:
        """A loop with Accelerate: AdamW of torch, losses that are gathered, an evaluation after each epoch."""
        for name, fields in {**TRAINING, **EVALUATION}.items():
            found = self._get(*fields) if name in _OF_LOOPS else None
            if found is not None:
                yield found.setting(name, found.value)
        for name, value in _LOOP.items():
            yield Setting(name, value, self._itself)


_LOOP: Mapping[str, Any] = {
    "optimizer": "adamw_torch",
    "gradient_checkpointing": False,
    "eval_predictions": "held",
    "loop_outputs": "held",
    "upcast_outputs": True,
    "zero_grad": "step",
}
"""What every loop of the examples does: outputs are held until the next, Accelerate copies them to float32."""


def _positions(model: str) -> int | None:
    """Tokens that a model has positions for; None for a model that is not known, or that counts none."""
    try:
        facts = models.find(model)
    except CatalogError:
        return None
    return facts.last_position or facts.max_positions if facts is not None else None
