"""Import what code to be written needs, in the way in which the file imports already."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterator, Sequence
from typing import TypeGuard

import libcst as cst

from lintfit.documents import python_edits
from lintfit.documents.model import Edit
from lintfit.documents.python_reader import PythonDocument
from lintfit.documents.python_walk import names_of

_KIN = frozenset({"accelerate", "bitsandbytes", "datasets", "deepspeed", "peft", "torch", "transformers", "trl"})
"""Packages that a new import stands beside."""

_Line = cst.SimpleStatementLine


class Imports:
    """Names of libraries for code that will stand at an offset of a document, and the edits that make them known."""

    def __init__(self, document: PythonDocument, before: int) -> None:
        self.document = document
        module = document.module
        body = module.body if module is not None else ()
        self._lines = [line for line in body if _is_import(line) and document.span(line).start < before]
        self._first = next((line for line in body if isinstance(line, _Line) and not _is_preamble(line)), None)
        self._taken = set(_bound(body))
        self._missing: dict[str, list[str]] = {}

    def name(self, package: str, name: str) -> str | None:
        """The expression that stands for ``package.name``; None where the file calls something else by that name."""
        whole = None
        for small in self._statements():
            if isinstance(small, cst.ImportFrom) and _module(small) == package:
                for alias in _aliases(small):
                    if alias.evaluated_name == name:
                        return alias.evaluated_alias or name
            elif isinstance(small, cst.Import):
                for alias in small.names:
                    if alias.evaluated_name == package:
                        whole = alias.evaluated_alias or package
        if whole is not None and self._from(package) is None:
            return f"{whole}.{name}"
        if name in self._taken:
            return None
        missing = self._missing.setdefault(package, [])
        if name not in missing:
            missing.append(name)
        return name

    def edits(self) -> Iterator[Edit]:
        """One edit for each place at which names are added."""
        new: dict[int, list[str]] = {}
        anchors: dict[int, tuple[_Line | None, bool]] = {}
        for package, names in sorted(self._missing.items()):
            known = self._from(package)
            if known is not None and self._fits(known, names):
                yield from self._added(known, names)
                continue
            line, above = self._place(package)
            key = id(line) * 2 + above
            anchors[key] = (line, above)
            new.setdefault(key, []).append(f"from {package} import {', '.join(sorted(names, key=_rank))}")
        for key, statements in new.items():
            line, above = anchors[key]
            code = "\n".join(statements)
            if line is not None:
                insert = python_edits.insert_statement_before if above else python_edits.insert_statement_after
                yield from insert(self.document, line, code)

    def _statements(self) -> Iterator[cst.BaseSmallStatement]:
        for line in self._lines:
            yield from line.body

    def _from(self, package: str) -> cst.ImportFrom | None:
        """The statement that imports single names of a package, the last where there are several."""
        found = [s for s in self._statements() if isinstance(s, cst.ImportFrom) and _module(s) == package]
        return next((each for each in reversed(found) if list(_aliases(each))), None)

    def _added(self, statement: cst.ImportFrom, names: Sequence[str]) -> Iterator[Edit]:
        """The names among those of a statement, each at its place where they are in order."""
        aliases = list(_aliases(statement))
        keys = [_rank(alias.evaluated_name) for alias in aliases]
        places: dict[int, list[str]] = {}
        for name in sorted(names, key=_rank):
            place = bisect(keys, _rank(name)) if keys == sorted(keys) else len(keys)
            places.setdefault(place, []).append(name)
        for place, group in places.items():
            yield python_edits.add_names(self.document, aliases, place, group)

    def _fits(self, statement: cst.ImportFrom, names: Sequence[str]) -> bool:
        """Whether a statement on one line has room for more names; one over several lines has."""
        span = self.document.span(statement)
        if "\n" in self.document.slice(span) or "\r" in self.document.slice(span):
            return True
        column = self.document.row(span.end).column
        return column + sum(len(name) + 2 for name in names) <= python_edits.width(self.document)

    def _place(self, package: str) -> tuple[_Line | None, bool]:
        """The line that a new import goes above (True) or below."""
        if not self._lines:
            return self._first, True
        kin = [line for line in self._lines if any(part.partition(".")[0] in _KIN for part in _packages(line))]
        base = kin[-1] if kin else self._lines[-1]
        block = [line for line in self._block(base) if isinstance(line.body[0], cst.ImportFrom)]
        order = [next(_packages(line), "") for line in block]
        if block and order == sorted(order, key=str.lower):
            following = next((line for line, name in zip(block, order, strict=True) if name.lower() > package), None)
            return (block[-1], False) if following is None else (following, True)
        return base, False

    def _block(self, base: _Line) -> list[_Line]:
        """The imports that stand together with one, without a blank line between them."""
        start = stop = self._lines.index(base)
        while start and not _stands_apart(self._lines[start]) and self._adjacent(start - 1):
            start -= 1
        while stop + 1 < len(self._lines) and not _stands_apart(self._lines[stop + 1]) and self._adjacent(stop):
            stop += 1
        return self._lines[start : stop + 1]

    def _adjacent(self, index: int) -> bool:
        end, start = (self.document.span(line) for line in self._lines[index : index + 2])
        return self.document.row(start.start).line - self.document.row(end.end).line == 1


def imported_from(document: PythonDocument, package: str) -> Iterator[str]:
    """The names that a module takes from a package each time that it is run."""
    return (name for source, name in imported(document) if source == package)


def imported(document: PythonDocument) -> Iterator[tuple[str, str]]:
    """The names that a module takes from others each time that it is run, with what they are taken from: those below a
    ``try`` or an ``if`` are not among them."""
    for line in document.module.body if document.module is not None else ():
        for small in line.body if isinstance(line, _Line) else ():
            if isinstance(small, cst.ImportFrom):
                yield from ((_module(small), alias.evaluated_name) for alias in _aliases(small))


def relative_import(document: PythonDocument) -> cst.ImportFrom | None:
    """The first import from its own package that a module makes each time that it is run, as it does not say itself
    (``__package__``, PEP 366) which package that is."""
    for line in document.module.body if document.module is not None else ():
        for small in line.body if isinstance(line, _Line) else ():
            if isinstance(small, cst.ImportFrom) and small.relative:
                told = "__package__" in document.text[: document.span(small).start]
                return None if told else small
    return None


def _is_import(line: cst.CSTNode) -> TypeGuard[_Line]:
    return isinstance(line, _Line) and all(isinstance(small, cst.Import | cst.ImportFrom) for small in line.body)


def _is_preamble(line: _Line) -> bool:
    """A docstring, or an import of ``__future__``."""
    first = line.body[0]
    docstring = isinstance(first, cst.Expr) and isinstance(first.value, cst.SimpleString | cst.ConcatenatedString)
    return docstring or (isinstance(first, cst.ImportFrom) and _module(first) == "__future__")


def _stands_apart(line: _Line) -> bool:
    return bool(line.leading_lines)


def _module(statement: cst.ImportFrom) -> str:
    """The dotted name of what is imported from, with the dots of a relative import in front."""
    name = "" if statement.module is None else ".".join(names_of(statement.module))
    return "." * len(statement.relative) + name


def _aliases(statement: cst.ImportFrom) -> Sequence[cst.ImportAlias]:
    return () if isinstance(statement.names, cst.ImportStar) else statement.names


def _packages(line: _Line) -> Iterator[str]:
    for small in line.body:
        if isinstance(small, cst.ImportFrom):
            yield _module(small)
        elif isinstance(small, cst.Import):
            yield from (alias.evaluated_name for alias in small.names)


def _rank(name: str) -> tuple[int, str]:
    """isort's order of names: constants, classes, then the rest."""
    return (0 if name.isupper() else 1 if name[:1].isupper() else 2), name


def _bound(body: Sequence[cst.BaseStatement]) -> Iterator[str]:
    """The names that the statements of a module bind at its top."""
    for line in body:
        if isinstance(line, cst.FunctionDef | cst.ClassDef):
            yield line.name.value
        elif isinstance(line, _Line):
            for small in line.body:
                if isinstance(small, cst.Assign):
                    yield from (t.target.value for t in small.targets if isinstance(t.target, cst.Name))
                elif isinstance(small, cst.AnnAssign) and isinstance(small.target, cst.Name):
                    yield small.target.value
                elif isinstance(small, cst.ImportFrom):
                    yield from (alias.evaluated_alias or alias.evaluated_name for alias in _aliases(small))
