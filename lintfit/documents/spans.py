"""Stretches of a text, places in it, and edits of it."""

from __future__ import annotations

from lintfit.frozen import frozen


@frozen
class Span:
    """A half-open range ``[start, end)`` of characters of a document's text."""

    start: int
    end: int

    def __post_init__(self) -> None:
        if not 0 <= self.start <= self.end:
            raise ValueError(f"not a span: {self.start}..{self.end}")

    def __lt__(self, other: Span) -> bool:
        return (self.start, self.end) < (other.start, other.end)

    def __le__(self, other: Span) -> bool:
        return (self.start, self.end) <= (other.start, other.end)


@frozen
class Position:
    """A 1-based line and column, as an editor shows it (columns count characters)."""

    line: int
    column: int


@frozen
class Edit:
    """Replace the characters of ``span`` by ``text``; an empty span inserts."""

    span: Span
    text: str

    @classmethod
    def insert(cls, offset: int, text: str) -> Edit:
        return cls(Span(offset, offset), text)
