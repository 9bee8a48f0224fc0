"""Turns the walk's records into the calls that rules read, with places and provenance."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import libcst as cst

from lintfit.documents.model import Span
from lintfit.documents.patterns import occurs
from lintfit.documents.steps import Steps
from lintfit.settings.model import UNKNOWN, LatePlace, Place, Provenance
from lintfit.sources.launchers.flags import Flag
from lintfit.sources.script.interpreter.origins import Datum, Environment, Library, Origin
from lintfit.sources.script.interpreter.values import (
    Choice,
    Object,
    Record,
    Value,
    alternatives,
    is_none,
    plain,
)
from lintfit.sources.script.model import Argument, Call, Statement
from lintfit.sources.training_words import DTYPES

if TYPE_CHECKING:
    from lintfit.documents.python_reader import PythonDocument

_DTYPE_NAMES = frozenset({"dtype", "torch_dtype", "bnb_4bit_compute_dtype", "bnb_4bit_quant_storage", "compute_dtype"})
_MAX_NESTING = 4


_MOST_VALUES = 20_000
"""Lists and tables, and every ten of their values, that all calls of a script are handed."""


class Calls:
    """Makes calls of records. ``documents`` are the script and the modules of its repository that it draws in."""

    def __init__(
        self, documents: Sequence[PythonDocument], unread: Mapping[str, str], lacks: Callable[[str, str], bool]
    ) -> None:
        self._documents = documents
        self._unread = unread
        self.lacks = lacks
        """Whether a module of the repository surely has no such name."""
        self._made: dict[int, Call] = {}
        self._steps = Steps(_MOST_VALUES, "values in lists and tables that calls are handed")
        self._homes: dict[int, PythonDocument] = {}
        """The documents of nodes that were asked for, by the node's id: to ask a tree that it is not of takes long."""
        self.records: dict[int, Record] = {}
        """The record of each call made, by the call's id."""

    @property
    def script(self) -> PythonDocument:
        """The script itself."""
        return self._documents[0]

    @property
    def documents(self) -> Sequence[PythonDocument]:
        """The script and the modules of its repository that it draws in."""
        return self._documents

    def texts(self) -> Iterator[str]:
        """The texts of the script and of all modules of its repository that it imports from, parsed or not."""
        yield from (document.text for document in self._documents)
        yield from self._unread.values()

    def unread_texts(self) -> Iterator[str]:
        """The texts of those of these modules that are not parsed."""
        yield from self._unread.values()

    def unread(self, module: str) -> str:
        """The text of a module of the repository that is at hand and not parsed; empty for any other."""
        return self._unread.get(module, "")

    def say(self, pattern: re.Pattern[str]) -> bool:
        """Whether one of these texts has what a pattern matches."""
        return any(occurs(pattern, text) for text in self.texts())

    def is_written(self, node: cst.CSTNode) -> bool:
        """Whether a node stands in a document; the line of a one-line suite (``if x: model.half()``) is made up."""
        try:
            self.document_of(node)
        except KeyError:
            return False
        return True

    def document_of(self, node: cst.CSTNode) -> PythonDocument:
        """The document that a node belongs to; KeyError where it belongs to none."""
        known = self._homes.get(id(node))
        if known is not None:
            return known
        for document in self._documents:
            if document.holds(node):
                self._homes[id(node)] = document
                return document
        raise KeyError(node)

    def place(self, node: cst.CSTNode) -> Place:
        document = self.document_of(node)
        return LatePlace(document, partial(document.span, node))

    def origin_place(self, origin: Origin) -> Place | None:
        """Where a value was written; None for what no file says."""
        if isinstance(origin, Flag):
            return origin.origin
        if isinstance(origin, Datum):
            return Place(origin.document, origin.span)
        if isinstance(origin, cst.CSTNode):
            try:
                return self.place(origin)
            except KeyError:
                return None
        return None

    def provenance(self, origin: Origin, fallback: cst.CSTNode | None = None) -> Provenance:
        """The provenance of a value; ``fallback`` is where it shows up when its own origin is nowhere."""
        if isinstance(origin, Library):
            return Provenance.default(origin.detail)
        if isinstance(origin, Environment):
            return Provenance("derived", f"environment variable {origin.name}")
        place = self.origin_place(origin)
        if place is None and fallback is not None:
            place = self.place(fallback)
        return (
            Provenance("file", "", place) if place is not None else Provenance("derived", "the script's control flow")
        )

    def value(self, value: Value, name: str = "", depth: int = 0) -> Any:
        """The plain value of an argument: dtypes in lintfit's spelling, constructor calls as :class:`Call`."""
        found = plain(value, self._steps)
        if name in _DTYPE_NAMES and isinstance(found, str):
            return DTYPES.get(found.removeprefix("torch."), found)
        if found is UNKNOWN and isinstance(value, Object) and value.call is not None and depth < _MAX_NESTING:
            return self.call(value.call, depth + 1)
        if found is UNKNOWN and isinstance(value, Choice):
            return self._settled(value, name, depth)
        return found

    def _settled(self, value: Choice, name: str, depth: int) -> Any:
        """The one object of a choice between an object and nothing else that is known."""
        options = [option for option in alternatives(value) if not is_none(option)]
        return self.value(options[0], name, depth) if len(options) == 1 and isinstance(options[0], Object) else UNKNOWN

    def argument(self, name: str, value: Value, node: cst.Arg, depth: int = 0) -> Argument:
        whole = self.place(node)
        spread = node.star == "**"
        place = (self.origin_place(value.origin) if spread else None) or self.place(node.value)
        return Argument(name, self.value(value, name, depth), place, whole, self.provenance(value.origin, node.value))

    def call(self, record: Record, depth: int = 0) -> Call:
        """The call that a record is of."""
        made = self._made.get(id(record))
        if made is not None:
            return made
        arguments = {p.name: self.argument(p.name, p.value, p.node, depth) for p in record.passed if p.name is not None}
        positional = tuple(self.argument("", p.value, p.node, depth) for p in record.passed if p.name is None)
        made = Call(
            function=record.function,
            place=self.place(record.node),
            order=record.order,
            arguments=arguments,
            positional=positional,
            spreads=record.spreads,
            assigned_to=record.assigned_to,
            receiver=record.receiver_name,
            taken=record.taken,
            conditions=tuple(self.place(test) for test in record.tests),
            device_guarded=record.guarded,
        )
        self._made[id(record)] = made
        self.records[id(made)] = record
        return made

    def parsed(self, made: Object) -> Call:
        """The call that filled an object from the command line, with one argument for every field."""
        record = made.call
        assert record is not None
        parse = self.place(record.node)
        arguments: dict[str, Argument] = {}
        for name, value in made.attributes.items():
            place, whole = parse, parse
            if isinstance(value.origin, Flag):
                place, whole = value.origin.origin, value.origin.place
            elif (written := self.origin_place(value.origin)) is not None:
                place = whole = written
            provenance = self.provenance(value.origin, record.node)
            arguments[name] = Argument(name, self.value(value, name), place, whole, provenance)
        return Call(
            function=made.library,
            place=parse,
            order=record.order,
            arguments=arguments,
            spreads=made.open,
            assigned_to=None,
            taken=record.taken,
            conditions=tuple(self.place(test) for test in record.tests),
            device_guarded=record.guarded,
        )

    def statement(self, record: Record) -> Statement:
        """What a fix deletes to drop a call that returns what it was called on.

        Whole lines where the call is the statement (``model.float()``, ``model = model.float()``); else the
        call's own part of a longer expression (``.float()``).
        """
        call = self.call(record)
        line = record.statement
        if line is not None and len(line.body) == 1 and whole(line, record.node) is not None and self.is_written(line):
            return Statement(call, self._lines(line))
        if isinstance(record.node.func, cst.Attribute):
            inner = self.place(record.node.func.value)
            return Statement(call, Place(inner.document, Span(inner.span.end, call.place.span.end)))
        return Statement(call, call.place)

    def _lines(self, line: cst.SimpleStatementLine) -> Place:
        place = self.place(line)
        span, text = place.span, place.document.text
        start = max(text.rfind("\n", 0, span.start), text.rfind("\r", 0, span.start)) + 1
        end = span.end
        while end < len(text) and text[end] not in "\r\n":
            end += 1
        end += 2 if text[end : end + 2] == "\r\n" else min(1, len(text) - end)
        return Place(place.document, Span(start, end))


def whole(line: cst.SimpleStatementLine | None, node: cst.Call) -> cst.BaseSmallStatement | None:
    """The statement of a line that is nothing but this call on a name, or its assignment back to that name."""
    func = node.func
    if line is None or not isinstance(func, cst.Attribute) or not isinstance(func.value, cst.Name | cst.Attribute):
        return None
    for small in line.body:
        if isinstance(small, cst.Expr) and small.value is node:
            return small
        if isinstance(small, cst.Assign) and small.value is node and len(small.targets) == 1:
            return small if small.targets[0].target.deep_equals(func.value) else None
    return None
