"""A script as tree-sitter-bash reads it: its text, its tree, and where a node stands in the file."""

from __future__ import annotations

import re
from functools import cache

import tree_sitter
import tree_sitter_bash

from lintfit.documents.model import Problem, Span
from lintfit.documents.placeholders import size_in_quotes

_PLACEHOLDER = re.compile(
    r"(?<==)<[^<>|&;\n]*[^<>|&;\s]>|(?<=[ \t])<[A-Za-z](?:[\w ./-]*\w)?>(?=[\s_/]|\Z)"
    r"|(?<=[\"'])<[A-Za-z][\w./-]* [\w ./-]*>(?=[\"'])"
)
"""``DATA=<path to the data>``, which is to be filled in and no bash as it stands."""
_QUOTED_SLASH = re.compile(r"(?<=/)'/'(?=/[^}\n]{0,2000}\})")
"""The slash of ``${name/'/'/_}``; tree-sitter-bash (0.25) can read it in double quotes alone, which mean the same."""
_INLINE_COMMENT = re.compile(r"(?<=\s)`#[^`\n]*`(?=\s)")


_CHUNK = 2048
"""Bytes that the parser is handed at a time."""
MOST_READINGS = 100
"""How often the parser may go through a script: where brackets or quotes do not match it tries other ways, and some
texts of 100 KB take minutes. Of 2,932 public scripts none is gone through more than 17 times."""


@cache
def _parser() -> tree_sitter.Parser:
    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))


def _to_fill_in(match: re.Match[str]) -> str:
    return size_in_quotes(match) or "$" + re.sub(r"\W", "_", match.group()[1:])


class Source:
    """The text of a script and its tree. Offsets are characters of the file."""

    def __init__(self, text: str) -> None:
        # A carriage return is no blank to bash; a script saved with them is read as if saved without.
        self.text = text.replace("\\\r\n", " \\\n").replace("\r\n", "\n\n") if "\r" in text else text
        # A backslash at the very end continues into nothing; tree-sitter takes it for an error, bash does not.
        self.text = re.sub(r"\\(?=(?:\n\s*)?\Z)", " ", self.text)
        # `# comment` among the arguments is an empty substitution, which tree-sitter cannot read.
        self.text = _INLINE_COMMENT.sub(lambda match: " " * len(match.group()), self.text)
        if "${" in self.text:
            self.text = _QUOTED_SLASH.sub('"/"', self.text)
        # What is to be filled in is not known, like a variable that nobody sets.
        if "<" in self.text:
            self.text = _PLACEHOLDER.sub(_to_fill_in, self.text)
        data = self.text.encode("utf-8", "surrogatepass")
        self._characters: list[int] | None = None
        if len(data) != len(self.text):
            self._characters = []
            for index, character in enumerate(self.text):
                self._characters.extend([index] * len(character.encode("utf-8", "surrogatepass")))
            self._characters.append(len(self.text))
        self._parsed(data)

    def _parsed(self, data: bytes) -> None:
        """Parse the text; nothing of it where the parser does not come to an end."""
        left = 1 + MOST_READINGS * (1 + len(data) // _CHUNK)

        def read(offset: int, _: object) -> bytes:
            nonlocal left
            left -= 1
            return data[offset : offset + _CHUNK] if left > 0 else b""

        self.root = _parser().parse(read).root_node
        self.given_up = left <= 0
        """Whether the parser was stopped: nothing of the text is followed then."""
        if self.given_up:
            self.root = _parser().parse(b"").root_node

    def span(self, node: tree_sitter.Node) -> Span:
        """Where a node stands."""
        if self._characters is None:
            return Span(node.start_byte, node.end_byte)
        return Span(self._characters[node.start_byte], self._characters[node.end_byte])

    def of(self, node: tree_sitter.Node) -> str:
        """What is written there."""
        span = self.span(node)
        return self.text[span.start : span.end]

    def problem(self) -> Problem | None:
        """The first place that cannot be parsed."""
        pending = [self.root] if self.root.has_error else []
        while pending:
            current = pending.pop()
            if current.is_error or current.is_missing:
                span = self.span(current)
                end = min(span.end, *(at for at in (self.text.find("\n", span.start),) if at >= 0), span.end)
                detail = f"a {current.type!r} is missing" if current.is_missing else "this is no bash that can be read"
                return Problem("syntax-error", detail, Span(span.start, max(span.start, end)))
            pending.extend(child for child in reversed(current.children) if child.has_error or child.is_missing)
        return None
