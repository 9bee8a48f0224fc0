"""Collects settings while they are read from a script: values become settings with provenance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeGuard

import libcst as cst

from lintfit.documents.python_walk import walk
from lintfit.frozen import frozen, replace
from lintfit.settings.model import UNKNOWN, Place, Provenance, Setting
from lintfit.sources.script.interpreter.origins import Origin
from lintfit.sources.script.interpreter.state import Walk
from lintfit.sources.script.interpreter.values import (
    Const,
    Object,
    Record,
    Table,
    Unknown,
    Value,
    alternatives,
    dtype,
    is_none,
    plain,
)
from lintfit.sources.script.reading.calls import Calls
from lintfit.sources.script.reading.facts import FoundCalls
from lintfit.sources.training_words import at_least, dtype_of, version_numbers


@dataclass(slots=True)
class Reading:
    """One script being read: what was found in it, and the settings so far."""

    found: FoundCalls
    walk: Walk
    calls: Calls
    versions: Mapping[str, str]
    constants: Mapping[str, Value]
    """The names of the script's module, as they are at its end."""
    settings: dict[str, Setting] = field(default_factory=dict)
    homes: dict[str, Home] = field(default_factory=dict)
    plugin: Record | None = None
    """The plugin or strategy of the script that sets DeepSpeed up."""
    zero: Table | None = None
    """The ``zero_optimization`` of a DeepSpeed config that is a dict of the script."""

    @property
    def records(self) -> list[Record]:
        """The calls that the walk came by, in their order."""
        return self.walk.records

    def called(self, *names: str) -> Iterator[Record]:
        """The calls by one of these last names that this run may make, in their order."""
        return (record for record in self.records if record.name in names and record.taken is not False)

    def put(self, name: str, value: Value, record: Record | None = None, to: Any = None) -> Setting:
        """Note a setting; ``to`` is its value where that is not the plain value itself."""
        fallback = record.node if record is not None else None
        known = plain(value) if to is None else to
        if isinstance(known, list) and UNKNOWN in known:
            known = UNKNOWN
        setting = Setting(name, known, self.calls.provenance(value.origin, fallback), self._beaten(name, value))
        self.settings[name] = setting
        self.homes[name] = Home(value.origin, record)
        return setting

    def _beaten(self, name: str, value: Value) -> tuple[Setting, ...]:
        """What a value stands in the place of: the default of its flag, the config file's own word."""
        over = value.over
        if over is None or over.origin is value.origin or isinstance(over, Unknown):
            return ()
        return (Setting(name, plain(over), self.calls.provenance(over.origin)), *self._beaten(name, over))

    def state(self, name: str, value: Any, node: cst.CSTNode, detail: str = "") -> Setting:
        """Note a setting that a statement as a whole decides."""
        before = self.settings.get(name)
        provenance = Provenance("file", detail, self.calls.place(node))
        self.settings[name] = Setting(name, value, provenance).over(before)
        self.homes[name] = Home(node, None)
        return self.settings[name]

    def default(self, name: str, value: Any, detail: str) -> Setting:
        """Note what a library does where nobody says anything."""
        self.settings[name] = Setting(name, value, Provenance.default(detail))
        return self.settings[name]

    def derive(self, name: str, value: Any, detail: str) -> Setting:
        self.settings[name] = Setting(name, value, Provenance("derived", detail))
        return self.settings[name]

    def suppose(self, name: str, detail: str) -> None:
        """Mark a setting that was noted as a guess: what it takes for granted, at the place that it has."""
        setting = self.settings[name]
        self.settings[name] = replace(setting, provenance=Provenance("assumed", detail, setting.provenance.place))

    def attribute(self, made: Object, *names: str) -> Value | None:
        """An attribute of an arguments object: as passed, else the library's default; None where neither is known."""
        for name in names:
            if name in made.attributes:
                return made.attributes[name]
        if made.open:
            return None
        for name in names:
            found = self.walk.defaults.get(made.library, name)
            if found is not None:
                return Const(found[1], found[0])
        return None

    def divisor(self, node: cst.CSTNode) -> Value | None:
        """The right side of the first ``%`` in an expression; None where there is none."""
        known = self.walk.divisors
        return next((known[id(each)] for each in walk(node) if id(each) in known), None)

    def version(self, library: str) -> tuple[int, ...] | None:
        """The library's version as numbers; None where it is not known (the newest is meant)."""
        return version_numbers(self.versions.get(library))

    def at_least(self, library: str, *numbers: int) -> bool:
        return at_least(self.versions, library, *numbers)

    def place_of(self, origin: Origin) -> Place | None:
        return self.calls.origin_place(origin)


@frozen
class Home:
    """Where a setting lives: the origin of its value, and the call that it is an argument of."""

    origin: Origin
    record: Record | None


def dtype_name(value: Value) -> Any:
    """The dtype that a value names in lintfit's spelling, ``"auto"``, None, or ``UNKNOWN``."""
    known = {_single_dtype(option) for option in alternatives(value)}
    return known.pop() if len(known) == 1 else UNKNOWN


def _single_dtype(value: Value) -> Any:
    found = dtype(value)
    if found is not None:
        return found
    return dtype_of(value.value) if isinstance(value, Const) else UNKNOWN


def without_none(value: Value) -> list[Value]:
    """The alternatives of a value that are something."""
    return [option for option in alternatives(value) if something(option)]


def something(value: Value | None) -> TypeGuard[Value]:
    """Whether a value is passed and is not certainly None."""
    return not sure_none(value)


def sure_none(value: Value | None) -> bool:
    """Whether a value is certainly None (or not passed)."""
    return value is None or is_none(value)
