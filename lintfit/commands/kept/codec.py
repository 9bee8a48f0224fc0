"""Records as JSON, and back: what a kept part of a check is written as.

A record is its class and its fields; what stands in several places is written once and is one object again. A document
is its path and kind, to be asked of a workspace; one that a shell script writes itself is told by its number and
by the run that reads it. Only records and words of lintfit's own are made again, whatever somebody has written into a
file; what is neither those nor plain data is not kept at all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Set
from enum import Enum
from importlib import import_module
from pathlib import Path, PosixPath
from typing import Any

from lintfit.documents.here_files import HereName
from lintfit.documents.later import written_later
from lintfit.documents.model import Document, Kind
from lintfit.documents.workspace import Workspace
from lintfit.findings.model import Plan
from lintfit.frozen import names
from lintfit.memory.result import Moment
from lintfit.run.model import ANY_OF_THE_CONFIG, ANY_OF_THE_MACHINE, BY_NAME_OF_THE_CONFIG, OF_THE_MACHINE
from lintfit.settings.model import LatePlace, Place
from lintfit.versions import Versions


class NotKept(Exception):
    """Something that has no form in JSON: what holds it is worked out anew."""


_BY_IDENTITY: tuple[object, ...] = (
    OF_THE_MACHINE,
    ANY_OF_THE_MACHINE,
    ANY_OF_THE_CONFIG,
    BY_NAME_OF_THE_CONFIG,
)
"""Records that are told from others by being these very ones."""
_SLOTTED: frozenset[Any] = frozenset({Moment})
"""Classes that are no records and are all in their slots."""
_NAME = re.compile(r"lintfit(?:\.[a-z_][a-z0-9_]*)+:_?[A-Z]\w*")
_DEEPEST = 60
_PLAIN = frozenset({str, int, bool, type(None)})


class Encoder:
    """Writes what belongs together. ``facts``: with what is known of documents that have no entry of their own."""

    def __init__(self, workspace: Workspace, facts: bool = True) -> None:
        self.workspace, self._facts = workspace, facts
        self._known: dict[int, int] = {}
        self._kept: list[object] = []
        """What is known, so that nothing else gets its identity."""

    def plain(self, value: Any, depth: int = 0) -> Any:
        """The value as JSON. Raises NotKept."""
        kind = type(value)
        if kind in _PLAIN:
            return value
        if depth > _DEEPEST:
            raise NotKept("too deep")
        if kind is float:
            return ["f", value.hex()]
        if kind is tuple:
            return ["t", *[self.plain(each, depth + 1) for each in value]]
        if kind is list:
            return ["l", *[self.plain(each, depth + 1) for each in value]]
        if kind is PosixPath or isinstance(value, Path):
            return ["p", str(value)]
        if isinstance(value, Enum):
            return ["e", _class(kind), value.name]
        if kind is dict or (isinstance(value, Mapping) and kind.__name__ == "mappingproxy"):
            return ["d", *[self.plain(each, depth + 1) for pair in value.items() for each in pair]]
        if kind in (frozenset, set):
            return ["s" if kind is frozenset else "S", *self._set(value, depth)]
        return self._object(value, depth)

    def _set(self, value: Set[Any], depth: int) -> list[Any]:
        found = [self.plain(each, depth + 1) for each in value]
        if any(isinstance(each, list) and each[0] not in ("e", "p") for each in found):
            raise NotKept("a set of records")  # which are numbered in their order
        return sorted(found, key=str)

    def _object(self, value: Any, depth: int) -> Any:
        for index, one in enumerate(_BY_IDENTITY):
            if value is one:
                return ["i", index]
        known = self._known.get(id(value))
        if known is not None:
            return ["#", known]
        if isinstance(value, Document):
            found: list[Any] = self._document(value, depth)
        elif isinstance(value, Plan):
            found = self._record(value, {"proves": None}, depth)
            found.append(value.proof)
        else:
            found = self._record(value, {}, depth)
        # After what is in it: so does the reader number it.
        self._known[id(value)] = len(self._kept)
        self._kept.append(value)
        return found

    def _document(self, value: Document, depth: int) -> list[Any]:
        if self.workspace.holds(value):
            return ["D", str(value.path), str(value.kind)]
        name = self.workspace.here.name_of(value)
        if name is None or value.problems or not self.workspace.holds(self.workspace.read(name.path, Kind.SHELL)):
            raise NotKept(f"a document of its own: {value.path}")
        facts = value.facts if self._facts else {}
        return ["H", self.plain(name.owner, depth + 1), str(name.path), name.index, str(name.kind), facts]

    def _record(self, value: Any, instead: Mapping[str, object], depth: int) -> list[Any]:
        kind: Any = Place if type(value) is LatePlace else type(value)
        if kind is Versions:
            parts = [dict(value), dict(value.sources), tuple(sorted(value.asked))]
            return ["v", *[self.plain(each, depth + 1) for each in parts]]
        if kind in _SLOTTED:
            slots = (getattr(value, name) for name in kind.__slots__)
            return ["o", _class(kind), *[self.plain(each, depth + 1) for each in slots]]
        if not hasattr(kind, "__match_args__") or not hasattr(kind, "__dataclass_fields__"):
            raise NotKept(f"no record: {kind.__name__}")
        fields = [instead[name] if name in instead else getattr(value, name) for name in names(kind)]
        return ["r", _class(kind), *[self.plain(each, depth + 1) for each in fields]]


def _class(kind: type) -> str:
    name = f"{kind.__module__}:{kind.__qualname__}"
    if not _NAME.fullmatch(name):
        raise NotKept(f"none of lintfit's own: {name}")
    return name


class Decoder:
    """Makes what belongs together again, the documents those of a workspace. Raises ValueError for what no encoder has
    written, and whatever odd content makes go wrong."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._known: list[object] = []

    def value(self, found: Any) -> Any:
        if not isinstance(found, list):
            return found
        tag, *rest = found
        return self._BY_TAG[tag](self, rest)

    def _all(self, found: list[Any]) -> list[Any]:
        return [self.value(each) for each in found]

    def _mapping(self, found: list[Any]) -> dict[Any, Any]:
        flat = self._all(found)
        return dict(zip(flat[::2], flat[1::2], strict=True))

    def _document(self, found: list[Any]) -> object:
        path, kind = found
        return self._made(self._workspace.read(Path(path), Kind(kind)))

    def _written(self, found: list[Any]) -> object:
        """What a shell script writes itself, for the run that has read it."""
        owner, path, index, kind, facts = found
        name = HereName(self.value(owner), Path(path), index, Kind(kind))
        document = self._workspace.read(name.path, Kind.SHELL)
        made = self._workspace.here.get(name, lambda: written_later(document, name.index, name.kind))
        made.facts.update(facts)
        return self._made(made)

    def _record(self, found: list[Any]) -> object:
        name, *fields = found
        kind = _named(name)
        if kind is Plan:
            proof = fields.pop()
            values = self._all(fields)
            values[names(Plan).index("proves")] = lambda: proof
            return self._made(Plan(*values))
        return self._made(kind(*self._all(fields)))

    def _slotted(self, found: list[Any]) -> object:
        kind = _named(found[0])
        value: object = object.__new__(kind)
        for name, each in zip(kind.__slots__, self._all(found[1:]), strict=True):  # type: ignore[attr-defined]
            setattr(value, name, each)
        return self._made(value)

    def _made(self, value: object) -> object:
        self._known.append(value)
        return value

    def _word(self, found: list[Any]) -> object:
        kind = _named(found[0])
        if not issubclass(kind, Enum):
            raise ValueError("no word")
        return kind[found[1]]

    _BY_TAG: Mapping[str, Callable[[Decoder, list[Any]], Any]] = {
        "f": lambda _, found: float.fromhex(found[0]),
        "t": lambda self, found: tuple(self._all(found)),
        "l": _all,
        "p": lambda _, found: Path(found[0]),
        "e": _word,
        "d": _mapping,
        "s": lambda self, found: frozenset(self._all(found)),
        "S": lambda self, found: set(self._all(found)),
        "i": lambda _, found: _BY_IDENTITY[found[0]],
        "#": lambda self, found: self._known[found[0]],
        "D": _document,
        "H": _written,
        "r": _record,
        "o": _slotted,
        "v": lambda self, found: self._made(Versions(*self._all(found))),
    }


_CLASSES: dict[str, type] = {}


def _named(name: str) -> type:
    """A record or a word of lintfit's own by its name."""
    found = _CLASSES.get(name)
    if found is None:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise ValueError("no class")
        module, _, cls = name.partition(":")
        found = getattr(import_module(module), cls)
        whole = isinstance(found, type) and found.__module__ == module
        if not whole or not (issubclass(found, Enum) or found in _SLOTTED or hasattr(found, "__dataclass_fields__")):
            raise ValueError("no record")
        _CLASSES[name] = found
    return found
