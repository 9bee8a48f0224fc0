"""The keys of a front end: which flags and config files state them, one over the other, and how one is restated.

A front end brings its own names, defaults and order; what a key that is stated remembers and how it is written back is
the same for all of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from lintfit.documents.model import DataDocument, Document, Node, Span
from lintfit.frozen import frozen
from lintfit.settings.model import UNKNOWN, Place, Provenance, Setting, is_count
from lintfit.sources.launchers.flags import Flag
from lintfit.sources.training_arguments import field_of, flag_value

if TYPE_CHECKING:
    from lintfit.documents.model import FileEdit
    from lintfit.sources.launchers.launch import Launch
    from lintfit.sources.recipes.base import OpenFile


@frozen(eq=False)
class Stated:
    """One key's value and where it stands: on the command line (``flag``), in a config file (``node``), nowhere."""

    value: Any
    provenance: Provenance
    flag: Flag | None = None
    beaten: tuple[Stated, ...] = ()
    node: Node | None = None

    def setting(self, name: str, value: Any) -> Setting:
        """The setting that follows from the key, and what the key stands over."""
        beaten = tuple(Setting(name, other.value, other.provenance) for other in self.beaten)
        return Setting(name, value, self.provenance, beaten)

    def inner(self, *path: str) -> Stated | None:
        """What a mapping of a config file says at a path below this key; None where it says nothing."""
        node, place = self.node.get(*path) if self.node is not None else None, self.provenance.place
        return of_node(place.document, node) if node is not None and place is not None else None


@dataclass(eq=False)
class Keys:
    """What a launch states key by key; nested keys have dots. What is put later stands over what is there."""

    launch: Launch
    stated: dict[str, Stated] = field(default_factory=dict)
    config: DataDocument | None = None
    """The config file that is edited, the last one that was read."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    whose: str = ""
    """Who has these defaults, for their provenance."""
    missing: Setting | None = None
    """What names a config file that is not at hand: a key that nothing else states is not known then."""

    @property
    def document(self) -> Document:
        """The config file, or the launch's own where everything stands on the command line."""
        return self.config if self.config is not None else self.launch.document

    def __contains__(self, key: str) -> bool:
        return key in self.stated

    def get(self, key: str) -> Stated | None:
        return self.stated.get(key)

    def found(self, key: str) -> Stated:
        """What a key comes to: stated, else by default."""
        return self.stated.get(key) or self.default(key)

    def default(self, key: str) -> Stated:
        """What a key comes to where nothing states it."""
        if self.missing is not None:
            return Stated(UNKNOWN, self.missing.provenance)
        return Stated(self.defaults.get(key), Provenance.default(self.whose))

    def count(self, key: str) -> int | None:
        """The number of things that a key comes to; None where it is no such number, or not known."""
        value = self.found(key).value
        return value if is_count(value) else None

    def number(self, name: str, key: str) -> Setting:
        """A setting that is what a key comes to, a number."""
        found = self.found(key)
        known = isinstance(found.value, (int, float)) and not isinstance(found.value, bool)
        return found.setting(name, found.value if known else UNKNOWN)

    def put(self, key: str, value: Stated) -> None:
        """Let a value stand over those before it."""
        before = self.stated.get(key)
        beaten = (before, *before.beaten) if before is not None else ()
        self.stated[key] = Stated(value.value, value.provenance, value.flag, beaten, value.node)

    def read(self, document: DataDocument, names: Iterable[str]) -> None:
        """Take these keys from a config file."""
        self.config = document
        for key, value in _entries(document, names):
            self.put(key, value)

    def read_flags(self, flags: Iterable[Flag], fields: Collection[str]) -> tuple[Flag, ...]:
        """Take the flags that are fields of a class, as HfArgumentParser reads them; the others come back."""
        others = []
        for flag in flags:
            field = field_of(flag.name, fields)
            if field is None:
                others.append(flag)
            else:
                value = False if flag.name == f"no_{field}" else flag_value(flag)
                self.put(field, Stated(value, of_flag(flag), flag))
        return tuple(others)

    def read_in_order(self, open_file: OpenFile, names: Collection[str], suffix: str = "") -> None:
        """Take flags, and config files among them (``--config``), each over what stands before it.

        This is jsonargparse's order. It reads a flag's value as a YAML scalar; ``suffix`` is what the name of a flag
        may have behind that of its key.
        """
        for flag in self.launch.flags:
            if flag.name != "config":
                value = UNKNOWN if flag.value is None or "$" in flag.value else scalar(flag.value)
                self.put(flag.name.removesuffix(suffix), Stated(value, of_flag(flag), flag))
                continue
            document = open_file(flag.value) if flag.value is not None and "$" not in flag.value else None
            root = document.root if isinstance(document, DataDocument) else None
            if isinstance(document, DataDocument) and root is not None and root.shape == "mapping":
                self.missing = None
                self.read(document, names)
            else:
                self.missing = Setting("config", flag.value, of_flag(flag))

    def write(self, key: str, value: Any, text: str | None = None) -> tuple[FileEdit, ...] | None:
        """Changes the flag where a flag decides, else the config file, else adds a flag.

        ``text`` is the flag's word for the value where that is not :func:`spelled`'s.
        """
        found, word = self.stated.get(key), spelled(value) if text is None else text
        if found is not None and found.flag is not None:
            return found.flag.write(word) if found.flag.write is not None else None
        if self.config is not None and (found is None or found.provenance.place is not None):
            beside = None
            if found is None or found.node is None:
                from lintfit.sources.recipes.beside import beside_relatives

                beside = beside_relatives(self.config, key, value)
            return beside if beside is not None else write_key(self.config, key, value)
        return self.launch.set_flag(key, word)


class _HasKeys(Protocol):
    @property
    def keys(self) -> Keys: ...

    def _settings(self) -> Iterator[Setting]: ...


class OfKeys:
    """What every recipe that is read into :class:`Keys` answers in the same way."""

    @property
    def document(self: _HasKeys) -> Document:
        return self.keys.document

    @property
    def missing(self: _HasKeys) -> Setting | None:
        return self.keys.missing

    @cached_property
    def settings(self: _HasKeys) -> Mapping[str, Setting]:
        return {setting.name: setting for setting in self._settings()}


def write_key(document: DataDocument, key: str, value: Any) -> tuple[FileEdit, ...] | None:
    """The edits that give a config file's key, nested ones with dots, a value."""
    from lintfit.sources.data_writer import edits

    return edits(document, {tuple(key.split(".")): value})


def of_node(document: Document, node: Node) -> Stated:
    """What a value of a config file states."""
    return Stated(node.plain(), Provenance("file", "", Place(document, _shown(node.span))), node=node)


def of_flag(flag: Flag) -> Provenance:
    return Provenance("file", "", flag.origin)


def scalar(text: str) -> Any:
    """A word as YAML has it: a truth value, nothing, a number, else itself."""
    plain = {"true": True, "false": False, "null": None, "none": None}
    if text.lower() in plain:
        return plain[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def spelled(value: Any, none: str = "null") -> str:
    """A value as the words of a flag."""
    return none if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _entries(document: DataDocument, names: Iterable[str]) -> Iterator[tuple[str, Stated]]:
    root = document.root
    assert root is not None
    for key in names:
        node = root.get(*key.split("."))
        if node is not None:
            yield key, of_node(document, node)


def _shown(span: Span) -> Span:
    """A span to point at, also where a value is empty (``quantize:``)."""
    return span if span.end > span.start else Span(max(0, span.start - 1), span.start)
