"""Files of command-line words: ``train.args`` beside a script with HfArgumentParser, argparse's ``@file``."""

from __future__ import annotations

import re

from lintfit.documents.files import kind_of
from lintfit.documents.model import Document, Span
from lintfit.settings.model import Place
from lintfit.sources.launchers.flags import Flag

_WORD = re.compile(r"\S+")
_LINE = re.compile(r"[^\r\n]+")
_FLAG = re.compile(r"--?[A-Za-z]")


def flags_of(document: Document, by_line: bool = False) -> dict[str, Flag]:
    """The flags that a file adds to the command line; ``by_line`` where every line is one word, blanks and all."""
    spans = [Span(*match.span()) for match in (_LINE if by_line else _WORD).finditer(document.text)]
    found: dict[str, Flag] = {}
    index = 0
    while index < len(spans):
        word, at = document.slice(spans[index]), spans[index]
        index += 1
        if not _FLAG.match(word):
            continue
        name, glued, value = word.lstrip("-").partition("=")
        values = [Span(at.end - len(value), at.end)] if glued else []
        while not glued and index < len(spans) and not _FLAG.match(document.slice(spans[index])):
            values.append(spans[index])
            index += 1
        texts = [document.slice(span) for span in values]
        end = values[-1].end if values else at.end
        found[name.replace("-", "_")] = Flag(
            name.replace("-", "_"),
            texts[0] if texts else None,
            Place(document, Span(at.start, end)),
            Place(document, Span(values[0].start, end)) if values else None,
            tuple(texts) if len(texts) > 1 else (),
            None if kind_of(document.path) is not None else _not_written,
        )
    return found


def _not_written(value: str) -> None:
    """A file whose name does not say what it is cannot be read again after a fix."""
