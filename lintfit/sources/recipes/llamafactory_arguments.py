"""LLaMA-Factory's arguments: ``key=value`` words or flags over the keys of a YAML or JSON file, over the defaults of
the version that takes them.

``hparams/parser.py:read_args`` takes a file that stands first, with OmegaConf's ``key=value`` words over it (0.9.2 and
up), else flags; ``HfArgumentParser`` fills the dataclasses from either.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from lintfit.catalog import llamafactory as catalog
from lintfit.documents.model import DataDocument, Edit, FileEdit
from lintfit.frozen import replace
from lintfit.settings.model import UNKNOWN, Provenance, Setting
from lintfit.sources.recipes.base import OpenFile
from lintfit.sources.recipes.keys import Keys, Stated, of_flag, of_node, scalar, spelled
from lintfit.sources.recipes.trainer import Arguments
from lintfit.sources.training_arguments import field_of, of_text
from lintfit.sources.training_defaults import fields_of
from lintfit.versions import FLOOR, FORK

if TYPE_CHECKING:
    from lintfit.sources.launchers.flags import Flag
    from lintfit.sources.launchers.launch import Launch

TRAINING = "transformers.TrainingArguments"
SEQ2SEQ = frozenset({
    "sortish_sampler", "predict_with_generate", "generation_max_length", "generation_num_beams", "generation_config"
})  # fmt: skip
"""The fields that ``Seq2SeqTrainingArguments`` has besides (transformers 4.33 to 5.23)."""
_FILES = (".yaml", ".yml", ".json")
_WORDS = ("flash_attn", "quantization_method", "stage", "finetuning_type", "pref_loss")
"""Keys whose words came and went."""
_COMMAND = "0.7.0"
"""The release that first has ``llamafactory-cli``; it is also the last with ``src/train_bash.py``."""
_LAST_SCRIPT = "0.7.0"
_OPEN = "${"
"""Begins what OmegaConf fills in from elsewhere."""


class LlamaFactoryArguments(Arguments):
    """The fields of the dataclasses of a training at one version of LLaMA-Factory."""

    __slots__ = ("at", "fields")

    def __init__(self, keys: Keys, at: int, versions: Mapping[str, str], open_file: OpenFile, complete: bool) -> None:
        super().__init__(keys, (TRAINING,), versions, open_file, complete)
        self.at = at
        self.fields = catalog.fields(at)

    @property
    def version(self) -> str:
        return catalog.versions()[self.at]

    @property
    def dated(self) -> bool:
        """Whether somebody states the release. A copy of the front end in the tree says one, too, but lies before or
        after it."""
        return self.versions.get(catalog.PACKAGE) is not None and catalog.PACKAGE + FORK not in self.versions

    @property
    def floored(self) -> bool:
        """Whether somebody states the oldest version that will do, and no other."""
        return not self.dated and catalog.PACKAGE + FLOOR in self.versions

    def since(self, version: str) -> bool:
        """Whether the version is no older than this one."""
        return self.at >= catalog.first_of(version)

    @property
    def by_default(self) -> Provenance:
        return Provenance.default(f"LLaMA-Factory {self.version} default")

    def get(self, *names: str) -> Stated | None:
        """A field under the first of these names that is stated, else LLaMA-Factory's default, else transformers'."""
        found = self.stated(*names)
        if found is not None or not self.complete:
            return found
        own = next((self.fields[name] for name in names if name in self.fields), None)
        if own is not None and own.default != {}:
            return Stated(own.default, self.by_default)
        return super().get(*names)

    def found(self, *names: str) -> Stated:
        """The same, with nothing known of what is neither stated nor has a default."""
        found = self.get(*names)
        if found is not None:
            return found
        missing = self.keys.missing
        where = missing.provenance if missing is not None else self.by_default
        return Stated(None if self.complete else UNKNOWN, where)

    def value(self, *names: str) -> Any:
        """What a field comes to; UNKNOWN where that is not statically known, None where there is no such field."""
        return self.found(*names).value

    def on(self, *names: str) -> bool:
        """Whether a field is statically known to be true."""
        return self.value(*names) is True

    def name_of(self, *names: str) -> str:
        """The first of these names that is stated, else that this version has."""
        stated = next((name for name in names if name in self.keys), None)
        return stated or next((name for name in names if name in self.fields), names[0])

    def write(self, names: Sequence[str], value: Any) -> tuple[FileEdit, ...] | None:
        """The edits that make the field say a value, by the name that is stated or that this version has."""
        name = self.name_of(*names)
        now = self.keys.get(name)
        if now is not None and type(now.value) is type(value) and now.value == value:
            return ()
        return self.keys.write(name, value, spelled(value))


def read_arguments(launch: Launch, open_file: OpenFile, versions: Mapping[str, str]) -> LlamaFactoryArguments:
    """The arguments of one launch, with the file that it names."""
    keys, named = Keys(launch, whose="LLaMA-Factory's default"), named_file(launch)
    document = open_file(named.value) if named is not None and isinstance(named.value, str) else None
    root = document.root if isinstance(document, DataDocument) else None
    if isinstance(document, DataDocument) and root is not None and root.shape == "mapping":
        keys.config = document
        for entry in root.entries:
            stated = of_node(document, entry.value)
            is_open = isinstance(stated.value, str) and _OPEN in stated.value
            keys.put(entry.key, Stated(UNKNOWN, stated.provenance, node=stated.node) if is_open else stated)
    elif named is not None:
        keys.missing = named
    if named is not None:
        for override in launch.overrides:
            word = replace(override, write=partial(_rewritten, override))
            keys.put(word.name, Stated(_override(word.value), of_flag(word), word))
    else:
        _read_flags(launch, keys)
    given = list(keys.stated)
    words = {name: keys.stated[name].value for name in _WORDS if name in keys}
    known = {name: word for name, word in words.items() if isinstance(word, str)}
    at = catalog.version_of(given, versions.get(catalog.PACKAGE), _within(launch), known)
    return LlamaFactoryArguments(keys, at, versions, open_file, keys.missing is None)


def named_file(launch: Launch) -> Setting | None:
    """The file that stands first behind the command; its value is UNKNOWN where only the shell knows it."""
    first = launch.invocation.positional[:1]
    if not first:
        return None
    word = first[0]
    if word.value is not None and not word.value.endswith(_FILES):
        return None
    place = Provenance("file", "", launch.place) if launch.assumed else Provenance.at(launch.document, word.span)
    return Setting("config", UNKNOWN if word.value is None or "$" in word.value else word.value, place)


def _read_flags(launch: Launch, keys: Keys) -> None:
    every = fields_of(TRAINING) | SEQ2SEQ | catalog.every()
    for flag in launch.flags:
        name = flag.name if flag.name in every else field_of(flag.name, every) or flag.name
        negated = flag.name == f"no_{name}"
        if negated:
            value: Any = False
        elif flag.value is None:
            value = True
        else:
            value = UNKNOWN if "$" in flag.value else of_text(flag.value)
        keys.put(name, Stated(value, of_flag(flag), flag))


def _rewritten(word: Flag, text: str) -> tuple[FileEdit, ...] | None:
    """The edit that gives a ``key=value`` word another value."""
    if word.value_place is None:
        return None
    document = word.value_place.document
    return (FileEdit(document.path, Edit(word.value_place.span, text), document),)


def _override(text: str | None) -> Any:
    return UNKNOWN if text is None or "$" in text else scalar(text)


def _within(launch: Launch) -> Sequence[int]:
    """The versions that are started so."""
    script = launch.script or ""
    if script.endswith("train_bash.py"):
        return range(catalog.first_of(_LAST_SCRIPT) + 1)
    return range(catalog.first_of(_COMMAND), len(catalog.versions())) if launch.script is None else ()
