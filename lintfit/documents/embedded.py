"""Text that stands inside another document: a notebook's cells in JSON, commands in a page or in a docstring.

The *inner* text is what is read and edited as if it were a file of its own; the *outer* text is that of the file. Each
:class:`Piece` says which characters of the one are which of the other. Inner text that is in no piece was made up (the
line break between two cells): places in it are mapped to where the last piece ended, and nothing is written there.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from operator import attrgetter

from lintfit.documents.spans import Edit, Span
from lintfit.frozen import frozen


def as_it_is(text: str) -> str:
    """How text is written into a document that has no escapes."""
    return text


@frozen
class Style:
    """How new text is written into the outer document: its characters, and its line breaks (a line of Markdown in a
    list is indented, one of a notebook's begins a new string)."""

    write: Callable[[str], str] = as_it_is
    newline: str = "\n"
    last_newline: str | None = None
    """What a line break becomes behind which nothing follows in its region; None: what any becomes."""

    def written(self, text: str, *, ends_region: bool = False) -> str:
        """Inner text as it stands in the outer document."""
        lines = text.replace("\r\n", "\n").split("\n")
        if ends_region and len(lines) > 1 and not lines[-1] and self.last_newline is not None:
            return self.newline.join(map(self.write, lines[:-1])) + self.last_newline
        return self.newline.join(map(self.write, lines))


@frozen
class Piece:
    """Inner characters ``[start, start + length)`` are the outer characters ``[outer, outer_end)``; where the lengths
    differ (an escape, a line break between two strings) the piece has no places within."""

    start: int
    length: int
    outer: int
    outer_end: int
    region: int = 0
    """Which part of the outer document it is of, such as a cell; an edit stays within one."""

    @property
    def end(self) -> int:
        return self.start + self.length

    @property
    def is_plain(self) -> bool:
        return self.length == self.outer_end - self.outer

    def cuts(self, offset: int) -> bool:
        """Whether a place is within a piece that has none."""
        return self.start < offset < self.end and not self.is_plain


_start = attrgetter("start")


@frozen(eq=False)
class Embedding:
    """An inner text and where its characters stand in the outer text; ``styles`` has one style a region."""

    outer: str
    pieces: tuple[Piece, ...]
    styles: tuple[Style, ...] = (Style(),)
    labels: tuple[tuple[int, int], ...] = ()
    """Of each region a number that people know it by (a cell's), and the number of lines of it above its inner text."""

    def _piece(self, offset: int) -> Piece | None:
        """The piece that holds a character, or the last one in front of it."""
        index = bisect_right(self.pieces, offset, key=_start) - 1
        return self.pieces[index] if index >= 0 else None

    def offset(self, offset: int) -> int:
        """Where a character of the inner text stands in the outer one."""
        piece = self._piece(offset)
        if piece is None:
            return self.pieces[0].outer if self.pieces else 0
        if offset >= piece.end:
            return piece.outer_end
        return piece.outer + (offset - piece.start) if piece.is_plain else piece.outer

    def region(self, offset: int) -> int | None:
        """The region that a place of the inner text is in, or that ends before it."""
        piece = self._piece(offset)
        return piece.region if piece is not None else None

    def span(self, span: Span) -> Span:
        """The outer characters of an inner span."""
        start = self.offset(span.start)
        last = self._piece(span.end - 1) if span.end > span.start else None
        if last is None:
            return Span(start, start)
        whole = not last.is_plain or span.end > last.end
        return Span(start, max(start, last.outer_end if whole else self.offset(span.end - 1) + 1))

    def place_in_region(self, offset: int, text: str) -> tuple[int, int] | None:
        """The number of the region that holds a place of the inner ``text``, and its line; None without numbers."""
        region = self.region(offset)
        if region is None or region >= len(self.labels):
            return None
        number, above = self.labels[region]
        start = next(piece.start for piece in self.pieces if piece.region == region)
        return number, above + text.count("\n", start, max(start, offset)) + 1

    def part(self, span: Span) -> Embedding:
        """What a part of the inner text is embedded in, as an inner text of its own."""
        return Embedding(self.outer, tuple(self._cut(span)), self.styles, self.labels)

    def _cut(self, span: Span) -> Iterator[Piece]:
        for piece in self.pieces:
            start, end = max(piece.start, span.start), min(piece.end, span.end)
            if start >= end:
                continue
            outer, outer_end = piece.outer, piece.outer_end
            if piece.is_plain:
                outer, outer_end = outer + start - piece.start, outer_end - (piece.end - end)
            yield Piece(start - span.start, end - start, outer, outer_end, piece.region)

    def edit(self, edit: Edit) -> Edit:
        """An edit of the inner text as one of the outer text.

        Raises ValueError where it would change text that was made up, or reaches from one region into another.
        """
        start, end, text = edit.span.start, edit.span.end, edit.text
        if end > start and self._is_gap(end - 1) and text.endswith("\n"):
            end, text = end - 1, text[:-1]  # the line break that was made up stays
        first = self._piece(start)
        if first is not None and start == end > first.end and text.endswith("\n"):
            start, end, text = first.end, first.end, "\n" + text[:-1]  # below the last line of a region
        last = self._piece(end - 1) if end > start else first
        if first is None or last is None or start > first.end or end > last.end or last.region != first.region:
            raise ValueError(f"{edit} reaches beyond one part of the file")
        if first.cuts(start) or last.cuts(end):
            raise ValueError(f"{edit} changes a part of what stands otherwise in the file")
        at = self.offset(start)
        until = at if end == start else last.outer_end if end == last.end else self.offset(end)
        style = self.styles[first.region]
        return Edit(Span(at, until), style.written(text, ends_region=self._ends_region(end, first.region)))

    def _is_gap(self, offset: int) -> bool:
        piece = self._piece(offset)
        return piece is None or offset >= piece.end

    def _ends_region(self, offset: int, region: int) -> bool:
        following = bisect_right(self.pieces, offset - 1, key=_start)
        return following >= len(self.pieces) or self.pieces[following].region != region


class Embedder:
    """Puts an inner text together, piece by piece."""

    def __init__(self, outer: str) -> None:
        self.outer = outer
        self._parts: list[str] = []
        self._pieces: list[Piece] = []
        self._length = 0

    def made_up(self, text: str) -> None:
        """Add text that stands nowhere in the outer document."""
        self._parts.append(text)
        self._length += len(text)

    def add(self, text: str, outer: int, outer_end: int, region: int = 0) -> None:
        """Add text that stands at these outer characters; nothing where it is empty and they are none."""
        before = self._pieces[-1] if self._pieces else None
        if before is not None and _goes_on(before, text, outer, outer_end, region, self._length):
            self._pieces[-1] = Piece(before.start, before.length + len(text), before.outer, outer_end, region)
        else:
            self._pieces.append(Piece(self._length, len(text), outer, outer_end, region))
        self._parts.append(text)
        self._length += len(text)

    @property
    def text(self) -> str:
        return "".join(self._parts)

    def embedding(self, styles: tuple[Style, ...] = (Style(),), labels: tuple[tuple[int, int], ...] = ()) -> Embedding:
        return Embedding(self.outer, tuple(self._pieces), styles, labels)


def _goes_on(before: Piece, text: str, outer: int, outer_end: int, region: int, length: int) -> bool:
    plain = before.is_plain and len(text) == outer_end - outer
    return plain and before.outer_end == outer and before.end == length and before.region == region
