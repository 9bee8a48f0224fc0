"""What ``json.load`` would refuse in a text that HJSON reads, and the edits that make it strict JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from lintfit.documents.edits import apply
from lintfit.documents.model import Edit, Node, Problem, Span

_DETAILS = {
    "comment": "comments",
    "trailing-comma": "a trailing comma",
    "missing-comma": "a missing comma",
    "bare-key": "a key without quotes",
    "bare-word": "a string without quotes",
    "single-quotes": "single quotes",
    "escape": r"the escape \'",
    "multiline": "a ''' string",
    "no-braces": "no braces around the whole",
    "bom": "a byte-order mark",
    "nan": "NaN or Infinity, which DeepSpeed reads as a string and json.load as a number",
}

_LINE_END = re.compile(r"[ \t]*(?:\r\n|\r|\n|\Z)")


class Strictness:
    """Collects the constructs that are HJSON and not JSON, by kind."""

    def __init__(self) -> None:
        self.first: dict[str, tuple[Span, str]] = {}
        self.edits: dict[str, list[Edit] | None] = {}
        self.comments: list[Span] = []

    @property
    def kinds(self) -> set[str]:
        return {*self.first}

    def comment(self, span: Span) -> None:
        # A text that is read twice at one place (the root as members, then as a value) meets its comments twice.
        if not self.comments or span.start > self.comments[-1].start:
            self.comments.append(span)
        self.first.setdefault("comment", (span, ""))

    def trailing_comma(self, offset: int) -> None:
        self._add("trailing-comma", Span(offset, offset + 1), "")

    def missing_comma(self, offset: int) -> None:
        self._add("missing-comma", Span(offset, offset), ",")

    def bare_key(self, span: Span, key: str) -> None:
        self._add("bare-key", span, json.dumps(key, ensure_ascii=False))

    def bare_word(self, span: Span, word: str) -> None:
        # A word that swallowed a comma or a comment surely means something else than what HJSON reads.
        swallowed = re.search(r"[,\]}#]|//|/\*", word)
        more = f": HJSON reads all of {json.dumps(word, ensure_ascii=False)}" if swallowed else ""
        self._add("bare-word", span, None if swallowed else json.dumps(word, ensure_ascii=False), more)

    def quotes(self, span: Span, value: str, single: bool) -> None:
        self._add("single-quotes" if single else "escape", span, json.dumps(value, ensure_ascii=False))

    def multiline(self, span: Span, value: str) -> None:
        self._add("multiline", span, json.dumps(value, ensure_ascii=False))

    def not_finite(self, span: Span) -> None:
        self._add("nan", span, None)

    def byte_order_mark(self) -> None:
        self._add("bom", Span(0, 0), None)

    def missing_braces(self, start: int, text: str) -> None:
        self._add("no-braces", Span(start, start), "{\n")
        newline = "" if text.endswith(("\n", "\r")) else "\n"
        self._add("no-braces", Span(len(text), len(text)), newline + "}" + ("" if newline else "\n"))

    def _add(self, kind: str, span: Span, text: str | None, more: str = "") -> None:
        self.first.setdefault(kind, (span, more))
        edits = self.edits.setdefault(kind, [])
        if text is None:
            self.edits[kind] = None
        elif edits is not None:
            edits.append(Edit(span, text))

    def problems(self, text: str, root: Node, values: Callable[[str], object]) -> list[Problem]:
        """One ``not-strict-json`` problem for each kind, with its edits where all together keep every value.

        ``values`` reads a text again and raises ValueError where it cannot.
        """
        if not self.first:
            return []
        if self.comments:
            self.edits["comment"] = _without_comments(text, self.comments)
        sound = self._sound(text, root, values)
        return [
            Problem("not-strict-json", _DETAILS[kind] + more, span, tuple(self.edits[kind] or ()) if sound else ())
            for kind, (span, more) in self.first.items()
        ]

    def _sound(self, text: str, root: Node, values: Callable[[str], object]) -> bool:
        edits = [edit for kind in self.edits.values() for edit in kind or ()]
        try:
            result = apply(text, edits)
            complete = all(kind is not None for kind in self.edits.values())
            return bool((json.loads(result) if complete else values(result)) == root.plain())
        except ValueError:
            return False


def _without_comments(text: str, comments: list[Span]) -> list[Edit]:
    """Drop each comment with the blanks before it; one that stands alone takes its line along."""
    edits: list[Edit] = []
    floor = 0
    for span in comments:
        start, end = span.start, span.end
        while start and text[start - 1] in " \t":
            start -= 1
        if not start or text[start - 1] in "\r\n":
            line_end = _LINE_END.match(text, span.end)
            start, end = (start, line_end.end()) if line_end else (span.start, span.end)
        start = max(start, floor)
        edits.append(Edit(Span(start, end), ""))
        floor = end
    return edits
