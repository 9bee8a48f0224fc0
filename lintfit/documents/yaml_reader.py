"""YAML as accelerate reads it (PyYAML's ``safe_load``), with a span for every key and value.

ruamel.yaml supplies the events and their places; the values are PyYAML's (see :mod:`lintfit.documents.yaml11`).
"""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NoReturn

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.reader import ReaderError
from ruamel.yaml.scanner import Scanner

from lintfit.documents import yaml11
from lintfit.documents.bounds import is_key
from lintfit.documents.limits import MAX_BYTES, MAX_DEPTH, MAX_VALUES, TOO_MANY, not_utf8, too_large, too_many_digits
from lintfit.documents.model import (
    NOT_READ,
    SYNTAX_ERROR,
    DataDocument,
    Entry,
    FileText,
    Kind,
    Node,
    Problem,
    Scalar,
    Span,
)
from lintfit.documents.patterns import lazy_pattern
from lintfit.documents.steps import Steps
from lintfit.errors import shorten

_TOO_DEEP = f"nested more than {MAX_DEPTH} levels deep: not a config"
_TOO_LARGE_KEY = "a whole number of so many digits is no key of a config"
_PROPERTIES = lazy_pattern(r"(?:[&!][^\s,\[\]{}]*(?:[ \t]+|(?=[\r\n])|\Z)(?:(?:#[^\r\n]*)?[\r\n]+[ \t]*)*)+")
_COLON = lazy_pattern(r"[ \t\r\n]*(:)")
_CORE = "tag:yaml.org,2002:"
_MAPPING_TAGS = {_CORE + name for name in ("map", "set")}
_SEQUENCE_TAGS = {_CORE + name for name in ("seq", "omap", "pairs")}


class _Stop(Exception):
    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.detail)
        self.problem = problem


@dataclass(slots=True)
class _Composed:
    """A node, how many values it holds with aliases followed, and whether it is a plain ``<<`` or ``=``."""

    node: Node
    size: int = 1
    reserved: bool = False
    hashable: bool = True


@dataclass(slots=True)
class _Members:
    """The entries of one mapping as they are met."""

    merged: list[Entry] = field(default_factory=list)
    own: list[Entry] = field(default_factory=list)
    seen: dict[Any, Span] = field(default_factory=dict)
    size: int = 1


def read_yaml(file: FileText) -> DataDocument:
    """Read YAML text into a tree.

    Never raises for bad text. What PyYAML's ``safe_load`` refuses is a ``syntax-error``: ``root`` is None where the
    text could not be read to its end, and the first document where there are several. A key that stands twice in one
    mapping (PyYAML keeps the last) is a ``duplicate-key``. Values that come through an alias stand at the alias;
    entries that come through a merge key (``<<``) stand where the anchor is, and before the mapping's own. A value that
    holds itself, which PyYAML makes, is refused, too. So is text in UTF-16: Accelerate opens its YAML as UTF-8.
    """
    if len(file.text) > MAX_BYTES[Kind.YAML]:
        return DataDocument(file, Kind.YAML, (Problem(NOT_READ, too_large(Kind.YAML), Span(0, 0)),))
    root, problems = _tree(file.text, file.encoding)
    return DataDocument(file, Kind.YAML, problems, root=root)


@lru_cache(maxsize=256)
def _tree(text: str, encoding: str) -> tuple[Node | None, tuple[Problem, ...]]:
    """The tree of a text and what is wrong with it. Kept: while a plan is looked for, a recipe is read again with the
    same change many times, once to confirm the edit and then for each run that reads it."""
    reader = _Reader(text)
    if encoding != "utf-8":
        reader.wrong(not_utf8(encoding), Span(0, 0))
    root: Node | None = None
    try:
        root = reader.first_document()
        reader.expect_end()
    except _Stop as stop:
        reader.problems.append(stop.problem)
    except MarkedYAMLError as error:
        reader.problems.append(_syntax_problem(text, error))
    except ReaderError as error:
        at = min(error.position, max(0, len(text) - 1))
        detail = "a character that YAML does not allow: write it as an escape in double quotes"
        reader.wrong(detail, Span(at, min(at + 1, len(text))))
    except RecursionError:
        reader.wrong("nested too deeply to be read", Span(0, 0))
    except (YAMLError, ValueError, OverflowError) as error:
        unplaced = Problem("syntax-error", str(error).split("\n")[0], Span(0, 0))
        reader.problems.append(_beyond_unicode(text) or unplaced)
    reader.problems.sort(key=lambda problem: problem.span)
    return root, tuple(reader.problems)


_LONG_ESCAPE = lazy_pattern(r"\\U([0-9a-fA-F]{8})")


def _beyond_unicode(text: str) -> Problem | None:
    """The first escape of a character that there is none of, over which ruamel fails as PyYAML does."""
    for found in _LONG_ESCAPE.finditer(text):
        if int(found[1], 16) > sys.maxunicode:
            detail = f"{found[0]} names no character: the last is \\U0010FFFF"
            return Problem("syntax-error", detail, Span(*found.span()))
    return None


def _syntax_problem(text: str, error: MarkedYAMLError) -> Problem:
    mark = error.problem_mark or error.context_mark
    start = min(mark.index, len(text)) if mark else 0
    detail = str(error.problem or error.context or "not YAML")
    if text.startswith("\t", start):
        detail = "a tab where YAML allows only spaces"
    related: tuple[tuple[Span, str], ...] = ()
    if error.context and error.context_mark and error.context_mark is not mark:
        at = min(error.context_mark.index, len(text))
        related = ((Span(at, min(at + 1, len(text))), str(error.context)),)
    return Problem("syntax-error", detail, Span(start, min(start + 1, len(text))), related=related)


_LINE_END = "\0\r\n\x85\u2028\u2029"


class _Scanner(Scanner):
    """ruamel's scanner with PyYAML's white space: a tab does not part tokens, inside of brackets either."""

    def scan_to_next_token(self) -> None:
        reader = self.reader
        if reader.index == 0 and reader.peek() == "\ufeff":
            reader.forward()
        while True:
            while reader.peek() == " ":
                reader.forward()
            if reader.peek() == "#":
                while reader.peek() not in _LINE_END:
                    reader.forward()
            if not self.scan_line_break():
                return
            if not self.flow_level:
                self.allow_simple_key = True


def _events(text: str) -> Iterator[Any]:
    yaml = YAML(typ="safe", pure=True)
    yaml.Scanner = _Scanner
    # PyYAML scans by the rules of 1.1; of ruamel's this is the nearest.
    yaml.version = (1, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield from yaml.parse(text)


class _Reader:
    """Composes nodes from events; unlike ruamel's own composer it keeps the places of aliases."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.events = _events(text)
        self.problems: list[Problem] = []
        self.anchors: dict[str, _Composed | None] = {}
        self.depth = 0
        self.key_name = ""
        """The key whose value is read, for what is wrong with that."""
        self.steps = Steps(MAX_VALUES, "values")
        """A value takes a step; what an alias stands for as many as it holds."""

    def first_document(self) -> Node | None:
        next(self.events)
        event = next(self.events, None)
        if event is None or type(event).__name__ == "StreamEndEvent":
            self.wrong("the file is empty: it holds no value", Span(0, 0))
            return Node("scalar", Span(0, 0))
        root = self.node(next(self.events), 0)
        self.not_reserved(root)
        next(self.events)
        return root.node

    def expect_end(self) -> None:
        event = next(self.events, None)
        if event is not None and type(event).__name__ != "StreamEndEvent":
            at = event.start_mark.index
            detail = "a second YAML document starts here; safe_load takes one document a file"
            self.wrong(detail, Span(at, min(len(self.text), at + 3)))

    def node(self, event: Any, after: int) -> _Composed:
        """The node that starts with ``event``; ``after`` is where an empty value would stand."""
        name = type(event).__name__
        if name == "AliasEvent":
            composed = self.alias(event)
            self.steps.take(composed.size)
            return composed
        anchor = event.anchor
        if anchor in self.anchors:
            self.stop(f"the anchor &{anchor} is set a second time", event.start_mark.index)
        if anchor:
            self.anchors[anchor] = None
        if name == "ScalarEvent":
            composed = self.scalar(event, after)
        else:
            self.depth += 1
            if self.depth > MAX_DEPTH:
                self.stop(_TOO_DEEP, event.start_mark.index, code=NOT_READ)
            composed = self.mapping(event) if name == "MappingStartEvent" else self.sequence(event)
            self.depth -= 1
        if not self.steps.take() or self.steps.spent:
            self.stop(TOO_MANY, event.start_mark.index, code=NOT_READ)
        if anchor:
            self.anchors[anchor] = composed
        return composed

    def wrong(self, detail: str, span: Span) -> None:
        """Note what PyYAML refuses and reading can go on after."""
        self.problems.append(Problem(SYNTAX_ERROR, detail, span))

    def not_reserved(self, composed: _Composed) -> None:
        if composed.reserved:
            detail = f"{composed.node.value} has a meaning of its own in YAML 1.1: put it in quotes"
            self.wrong(detail, composed.node.span)

    def alias(self, event: Any) -> _Composed:
        span = Span(event.start_mark.index, event.end_mark.index)
        if event.anchor not in self.anchors:
            self.stop(f"the alias *{event.anchor} has no anchor &{event.anchor} before it", span.start, span.end)
        target = self.anchors[event.anchor]
        if target is None:
            self.stop(f"the alias *{event.anchor} stands inside its own anchor", span.start, span.end)
        node = target.node
        moved = Node(node.shape, span, node.value, node.entries, node.elements)
        return _Composed(moved, target.size, target.reserved, target.hashable)

    def scalar(self, event: Any, after: int) -> _Composed:
        start, end = event.start_mark.index, event.end_mark.index
        if event.anchor or event.tag:
            properties = _PROPERTIES.match(self.text, start)
            start = min(properties.end(), end) if properties else start
        plain = event.implicit[0] and event.style is None
        if plain and not event.value:
            start = end = end if event.anchor or event.tag else after
        elif event.style in ("|", ">"):
            end = start + len(self.text[start:end].rstrip())
        span = Span(start, end)
        if plain and event.value in ("<<", "="):
            return _Composed(Node("scalar", span, event.value), reserved=True)
        return _Composed(Node("scalar", span, self.scalar_value(event, plain, span)))

    def scalar_value(self, event: Any, plain: bool, span: Span) -> Scalar:
        tag = str(event.ctag) if event.tag and event.tag != "!" else ""
        try:
            if tag:
                known = tag in yaml11.SCALAR_TAGS
                return yaml11.convert(tag, event.value) if known else self.unknown_tag(tag, event)
            return yaml11.resolve(event.value) if plain else str(event.value)
        except yaml11.TooManyDigits as error:
            self.wrong(too_many_digits(self.key_name, error.digits), span)
            return shorten(str(event.value))
        except yaml11.Unreadable as error:
            self.wrong(str(error), span)
            return str(event.value)

    def unknown_tag(self, tag: str, event: Any) -> str:
        start = event.start_mark.index
        at = self.text.find("!", start)
        start = at if at >= 0 else start
        written = re.compile(r"\S*").match(self.text, start)
        end = written.end() if written else start
        self.wrong(f"PyYAML's safe_load does not know the tag {tag}", Span(start, end))
        return str(getattr(event, "value", ""))

    def collection_tag(self, event: Any, known: set[str]) -> None:
        tag = str(event.ctag) if event.tag and event.tag != "!" else ""
        if tag and tag not in known:
            self.unknown_tag(tag, event)

    def sequence(self, event: Any) -> _Composed:
        self.collection_tag(event, _SEQUENCE_TAGS)
        elements: list[Node] = []
        size = 1
        after = event.end_mark.index
        while type(item := next(self.events)).__name__ != "SequenceEndEvent":
            # An empty element's mark may lie on a later line; it stands behind its own dash.
            dash = self.text.find("-", after, item.end_mark.index) if not event.flow_style else -1
            composed = self.node(item, dash + 1 if dash >= 0 else item.start_mark.index)
            self.not_reserved(composed)
            elements.append(composed.node)
            size += composed.size
            after = max(after, composed.node.span.end)
        span = self.collection_span(event, item, elements[0].span if elements else None, after, "-")
        return _Composed(Node("sequence", span, elements=tuple(elements)), size, hashable=False)

    def mapping(self, event: Any) -> _Composed:
        self.collection_tag(event, _MAPPING_TAGS)
        members = _Members()
        first: Span | None = None
        end = event.end_mark.index
        while type(item := next(self.events)).__name__ != "MappingEndEvent":
            key = self.node(item, item.start_mark.index)
            self.has_key(event, key.node.span)
            if key.node.shape == "scalar" and not is_key(key.node.value):
                self.stop(_TOO_LARGE_KEY, key.node.span.start, key.node.span.end, code=NOT_READ)
            colon = _COLON.match(self.text, key.node.span.end)
            after = colon.end() if colon else key.node.span.end
            self.key_name = str(key.node.value) if key.node.shape == "scalar" else ""
            value = self.node(next(self.events), after)
            self.not_reserved(value)
            first = first or key.node.span
            end = max(end, after, value.node.span.end)
            self.add(members, key, value)
        span = self.collection_span(event, item, first, end, "?")
        entries = (*members.merged, *members.own)
        return _Composed(Node("mapping", span, entries=entries), members.size, hashable=False)

    def has_key(self, mapping: Any, span: Span) -> None:
        """PyYAML wants a ``?`` before a key of nothing in block style; ruamel does not."""
        colon = _COLON.match(self.text, span.end)
        if colon is None or mapping.flow_style or span.start < span.end:
            return
        if not self.text[: span.start].rstrip().endswith("?"):
            self.stop("a key is missing before this ':'", colon.start(1))

    def add(self, members: _Members, key: _Composed, value: _Composed) -> None:
        members.size += key.size + value.size
        if key.reserved and key.node.value == "<<":
            self.merge(members, value.node)
            return
        span = key.node.span
        if not key.hashable:
            self.wrong("a list or mapping cannot be a key", span)
            return
        resolved = key.node.value
        name = resolved if isinstance(resolved, str) else self.text[span.start : span.end]
        if resolved in members.seen:
            related = ((members.seen[resolved], "first here"),)
            detail = f"the key {name} stands twice in the same mapping"
            self.problems.append(Problem("duplicate-key", detail, span, related=related))
        members.seen.setdefault(resolved, span)
        entry_end = max(span.end, value.node.span.end)
        members.own.append(Entry(name, span, value.node, Span(span.start, entry_end)))

    def merge(self, members: _Members, source: Node) -> None:
        sources = source.elements if source.shape == "sequence" else (source,)
        for node in reversed(sources):
            if node.shape != "mapping":
                self.wrong("<< takes a mapping or a list of mappings", node.span)
                continue
            members.merged.extend(node.entries)

    def collection_span(self, event: Any, last: Any, first: Span | None, end: int, indicator: str) -> Span:
        """A flow collection reaches from bracket to bracket, a block one from its first to its last value."""
        if event.flow_style:
            opener = "{" if indicator == "?" else "["
            start = self.text.find(opener, event.start_mark.index, last.end_mark.index)
            return Span(start if start >= 0 else event.start_mark.index, last.end_mark.index)
        start = event.start_mark.index
        if event.anchor or event.tag:
            found = self.text.find(indicator, start, first.start) if first and indicator == "-" else -1
            start = found if found >= 0 else first.start if first else start
        return Span(start, max(start, end))

    def stop(self, detail: str, start: int, end: int | None = None, code: str = SYNTAX_ERROR) -> NoReturn:
        raise _Stop(Problem(code, detail, Span(start, end or min(len(self.text), start + 1))))
