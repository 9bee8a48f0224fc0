"""Lines of styled pieces: the same text with and without colours; rich is loaded only for colours."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from textwrap import wrap

from lintfit.documents.patterns import lazy_pattern
from lintfit.findings.model import Action, Plan
from lintfit.report import Line, View, clean
from lintfit.report.bars import FREE, GLYPHS, MARK

STYLES = {
    "error": "bold red",
    "warning": "bold yellow",
    "info": "bold blue",
    "rule": "bold",
    "gutter": "blue",
    "path": "bold",
    "help": "bold cyan",
    "note": "bold",
    "added": "green",
    "removed": "red",
    "dim": "dim",
    "good": "bold green",
    "tight": "bold yellow",
    "bad": "bold red",
    "over": "red",
    "parameters": "blue",
    "gradients": "cyan",
    "optimizer_states": "magenta",
    "master_weights": "bright_magenta",
    "activations": "green",
    "logits": "bright_green",
    "communication_buffers": "yellow",
    "temporaries": "bright_yellow",
    "framework": "white",
}


_ASCII = str.maketrans(
    {
        **{glyph: name[0].upper() for name, glyph in GLYPHS.items()},
        MARK: "|",
        FREE: ".",
        "→": "->",
        "×": "x",
        "…": "...",
    }
)
"""For terminals and pipes that are not UTF-8."""


_GLUE = "\N{NO-BREAK SPACE}"
_GLUED = lazy_pattern(r"(?<=\d) (?=GiB\b|GB\b|B\b|%|×)|(?<=×) ")
"""Blanks at which no line breaks: between a figure and its unit."""


def show(lines: Iterable[Line], view: View) -> str:
    """The lines as text, with colours and in ASCII as the view asks."""
    text = coloured(lines, view.width) if view.color else plain(lines)
    return text if view.unicode else text.translate(_ASCII)


def show_blocks(blocks: Iterable[list[Line]], view: View) -> str:
    """Blocks of lines with an empty one between them."""
    return show([line for block in blocks for line in [*block, []]][:-1], view)


def plain(lines: Iterable[Line]) -> str:
    """The lines without styles."""
    return "".join("".join(clean(text) for text, _ in line).rstrip() + "\n" for line in lines)


def coloured(lines: Iterable[Line], width: int) -> str:
    """The lines with terminal colours, as many as the terminal has; nothing is wrapped."""
    import io

    from rich.console import Console
    from rich.text import Text

    buffer = io.StringIO()
    console = Console(
        file=buffer, force_terminal=True, width=width, legacy_windows=False, highlight=False, markup=False, emoji=False
    )
    for line in lines:
        text = Text(no_wrap=True, overflow="ignore", end="\n")
        for part, style in line:
            text.append(clean(part), style=STYLES.get(style, ""))
        text.rstrip()
        console.print(text, soft_wrap=True)
    return buffer.getvalue()


def to_write(plan: Plan, action: Action, indent: int) -> list[Line]:
    """What a person is to write into a new file, as it stands there."""
    if not plan.by_hand or action.creates is None:
        return []
    return [[(" " * indent, ""), (clean(line), "")] for line in action.content.splitlines()]


def wrapped(first: Line, text: str, width: int, indent: int, style: str = "") -> list[Line]:
    """A paragraph that begins after the pieces of ``first`` and goes on indented by ``indent`` columns."""
    used = sum(cells(part) for part, _ in first)
    words = wrap(
        _GLUED.sub(_GLUE, " ".join(clean(text).split())),
        max(width, used + 20, indent + 20),
        initial_indent=" " * used,
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    words = [line.replace(_GLUE, " ") for line in words]
    if not words:
        return [first]
    return [[*first, (words[0][used:], style)], *([(line, style)] for line in words[1:])]


def cells(text: str) -> int:
    """How many columns of a terminal a text takes: two for East Asian wide characters, none for combining ones."""
    if text.isascii():
        return len(text)
    return sum(_cell(character) for character in text)


def _cell(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
