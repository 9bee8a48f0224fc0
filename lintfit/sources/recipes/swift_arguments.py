"""ms-swift's arguments: flags over the keys of a YAML or JSON file, over the defaults of the version that takes them.

``swift/cli/main.py`` of ms-swift 4.1 turns a file that stands first behind the command into flags in front of the
others, and its ``ENV`` into environment variables that are not set yet. ``HfArgumentParser`` fills the dataclasses.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from lintfit.catalog import swift
from lintfit.documents.model import DataDocument
from lintfit.settings.model import UNKNOWN, Provenance, Setting
from lintfit.sources.flag_grammars.kinds import SEVERAL
from lintfit.sources.recipes.base import OpenFile
from lintfit.sources.recipes.keys import Keys, Stated, of_flag, of_node
from lintfit.sources.recipes.trainer import Arguments
from lintfit.sources.training_arguments import of_text
from lintfit.sources.training_defaults import fields_of

if TYPE_CHECKING:
    from lintfit.documents.model import Entry, FileEdit
    from lintfit.sources.launchers.flags import Flag
    from lintfit.sources.launchers.launch import Launch

OLDER_COMMANDS = ("dpo", "orpo", "simpo")
"""Commands of ms-swift 2 that hand themselves on as ``--rlhf_type`` (``swift/cli/main.py`` of 2.6)."""
ENVIRONMENT = "ENV"
"""The key of a file that holds environment variables."""
_FILES = (".yaml", ".yml", ".json")
_BY_NAME = (swift.first_of(3, 10), swift.first_of(4, 1))
"""Between these versions ``--config FILE`` puts the file's keys behind the flags, which they then beat
(``swift/cli/main.py:prepare_config_args``)."""
_OF_TRANSFORMERS = ("transformers.TrainingArguments",)
SEQ2SEQ = frozenset({
    "sortish_sampler", "predict_with_generate", "generation_max_length", "generation_num_beams", "generation_config"
})  # fmt: skip
"""The fields that ``Seq2SeqTrainingArguments`` has besides (transformers 4.33 to 5.23)."""


_MODELS = ("model_type", "model_id_or_path", "model")
_WITHOUT = ("cogagent", "cogvlm", "molmo", "phi2-", "phi-2", "phi3-small", "phi-3-small")
"""Models of ms-swift 2.6.1 without ``support_gradient_checkpointing`` (``swift/llm/utils/model.py``)."""


class SwiftArguments(Arguments):
    """The fields of the dataclass of one command at one version of ms-swift."""

    __slots__ = ("at", "command", "environment", "fields")

    def __init__(
        self, keys: Keys, command: str, at: int, versions: Mapping[str, str], open_file: OpenFile, complete: bool
    ) -> None:
        classes = _OF_TRANSFORMERS if swift.inherits(command, at) else ()
        super().__init__(keys, classes, versions, open_file, complete)
        self.command, self.at = command, at
        self.fields = swift.fields(command, at)
        self.environment: dict[str, Setting] = {}

    @property
    def version(self) -> str:
        return swift.versions()[self.at]

    def since(self, major: int, minor: int = 0) -> bool:
        """Whether the version is no older than this one."""
        return self.at >= swift.first_of(major, minor)

    def get(self, *names: str) -> Stated | None:
        """A field under the first of these names that is stated, else ms-swift's default, else transformers'."""
        found = self.stated(*names)
        if found is not None or not self.complete:
            return found
        own = next((self.fields[name] for name in names if name in self.fields), None)
        if own is not None and own.default is None and "gradient_checkpointing" in names:
            return Stated(self._checkpoints_by_itself(), self.by_default)
        if own is not None and own.default != {}:
            return Stated(own.default, self.by_default)
        return super().get(*names)

    def _checkpoints_by_itself(self) -> Any:
        """What ms-swift 2 makes of no word for checkpointing: what the model can (``SftArguments.__post_init__``)."""
        asked = [found.value for name in _MODELS if (found := self.stated(name)) is not None]
        if any(not isinstance(value, str) for value in asked):
            return UNKNOWN
        return not any(word in value.lower().replace("_", "-") for value in asked for word in _WITHOUT)

    @property
    def by_default(self) -> Provenance:
        return Provenance.default(f"ms-swift {self.version} default")

    def value(self, *names: str) -> Any:
        """What a field comes to; UNKNOWN where that is not statically known, None where there is no such field."""
        found = self.get(*names)
        if found is None:
            return None if self.complete else UNKNOWN
        return found.value

    def name_of(self, *names: str) -> str:
        """The first of these names that is stated, else that this version has."""
        stated = next((name for name in names if name in self.keys), None)
        return stated or next((name for name in names if name in self.fields), names[0])

    def write(self, names: Sequence[str], value: Any) -> tuple[FileEdit, ...] | None:
        """The edits that make the field say a value, by the name that is stated or that this version has."""
        return super().write((self.name_of(*names),), value)


def read_arguments(launch: Launch, open_file: OpenFile, versions: Mapping[str, str]) -> SwiftArguments:
    """The arguments of one launch, with the file that it names."""
    action = launch.action or "sft"
    keys, command = Keys(launch), "rlhf" if action in OLDER_COMMANDS else action
    if action in OLDER_COMMANDS:
        keys.put("rlhf_type", Stated(action, Provenance("file", "", launch.place)))
    named = _named_file(launch)
    document = open_file(named.value) if named is not None and isinstance(named.value, str) else None
    root = document.root if isinstance(document, DataDocument) else None
    entries: tuple[Entry, ...] = ()
    if isinstance(document, DataDocument) and root is not None and root.shape == "mapping":
        keys.config = document
        entries = tuple(entry for entry in root.entries if entry.key != ENVIRONMENT)
    elif named is not None:
        keys.missing = named
    flags = [flag for flag in launch.flags if flag.name != "config"]
    given = [entry.key for entry in entries] + [flag.name for flag in flags]
    others = fields_of(_OF_TRANSFORMERS[0]) | SEQ2SEQ
    at = swift.version_of(command, given, others, versions.get(swift.PACKAGE), _versions_with(launch, named))
    found = SwiftArguments(keys, command, at, versions, open_file, keys.missing is None)
    by_name = launch.flag("config") is not None
    for part in ("flags", "file") if by_name else ("file", "flags"):
        for entry in entries if part == "file" else ():
            assert isinstance(document, DataDocument)
            keys.put(entry.key, of_node(document, entry.value))
        for flag in flags if part == "flags" else ():
            keys.put(flag.name, Stated(_of_flag(flag, found), of_flag(flag), flag))
    found.environment.update(_environment(launch, keys.config))
    return found


def _named_file(launch: Launch) -> Setting | None:
    """The file that stands first behind the command, or that ``--config`` names."""
    flag = launch.flag("config")
    if flag is not None:
        known = flag.value is not None and "$" not in flag.value
        return Setting("config", flag.value if known else UNKNOWN, of_flag(flag))
    first = launch.invocation.positional[:1]
    if not first or not (first[0].value is None or first[0].value.endswith(_FILES)):
        return None
    word, place = first[0], Provenance.at(launch.document, first[0].span)
    if launch.assumed:
        place = Provenance("file", "", launch.place)
    return Setting("config", UNKNOWN if word.value is None else word.value, place)


def _versions_with(launch: Launch, named: Setting | None) -> Sequence[int]:
    """The versions that take such a line: ms-swift 3.10 to 4.0 with ``--config``, newer ones with a file as their first
    word, ms-swift 2 with a command for each loss."""
    if launch.action in OLDER_COMMANDS:
        return range(swift.first_of(3))
    if launch.flag("config") is not None:
        return range(*_BY_NAME)
    return range(_BY_NAME[1], len(swift.versions())) if named is not None else ()


def _of_flag(flag: Flag, arguments: SwiftArguments) -> Any:
    field = arguments.fields.get(flag.name)
    if flag.value is None:
        return True
    words = flag.words or (flag.value,)
    if field is not None and field.kind.endswith(SEVERAL):
        return [UNKNOWN if "$" in word else of_text(word) for word in words]
    return UNKNOWN if "$" in flag.value else of_text(flag.value)


def _environment(launch: Launch, document: DataDocument | None) -> Iterator[tuple[str, Setting]]:
    """The variables that the program sees: of the launch line, then those of the file that are not set."""
    root = document.root if document is not None else None
    node = root.get(ENVIRONMENT) if root is not None else None
    if document is not None and node is not None and node.shape == "mapping":
        for entry in node.entries:
            at = of_node(document, entry.value)
            yield entry.key, Setting(entry.key, str(at.value), at.provenance)
    for name, value in launch.environment.items():
        yield name, Setting(name, value, Provenance("file", "", launch.place))


def as_mapping(value: Any) -> Mapping[str, Any] | None:
    """An object that is handed as JSON in a word (``json_parse_to_dict``); None for a name or a path."""
    if isinstance(value, Mapping):
        return value
    if isinstance(value, str) and value.lstrip().startswith("{"):
        with suppress(ValueError):
            found = json.loads(value)
            return found if isinstance(found, Mapping) else None
    return None
