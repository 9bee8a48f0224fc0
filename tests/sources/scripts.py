"""Helpers: scripts and launch lines as text."""

from __future__ import annotations

import shlex
from pathlib import Path
from textwrap import dedent

from lintfit.documents.model import Document, FileText, Kind, Span
from lintfit.documents.python_reader import read_python
from lintfit.settings import Place
from lintfit.sources.flags import Flag
from lintfit.sources.script import ScriptSource, read_script


def flags_of(line: str) -> list[Flag]:
    """The flags of a command line, each with its place in a document of that one line."""
    document = Document(FileText(Path("run.sh"), line), Kind.SHELL)
    flags: list[Flag] = []
    position, words = 0, []
    for word in shlex.split(line):
        start = line.index(word, position)
        position = start + len(word)
        words.append((word, Span(start, position)))
    index = 0
    while index < len(words):
        word, span = words[index]
        index += 1
        if not word.startswith("--"):
            continue
        name, equals, value = word[2:].partition("=")
        values = [value] if equals else []
        places = [Span(span.end - len(value), span.end)] if equals else []
        while not equals and index < len(words) and not words[index][0].startswith("--"):
            values.append(words[index][0])
            places.append(words[index][1])
            index += 1
        end = places[-1].end if places else span.end
        flags.append(
            Flag(
                name.replace("-", "_"),
                values[0] if values else None,
                Place(document, Span(span.start, end)),
                Place(document, Span(places[0].start, end)) if places else None,
                tuple(values) if len(values) > 1 else (),
            )
        )
    return flags


def script(text: str, line: str | None = None, **kwargs: object) -> ScriptSource:
    """A script read under a launch line; None for no launch."""
    document = read_python(FileText(Path("train.py"), dedent(text).lstrip("\n")))
    flags = flags_of(line) if line else []
    return read_script(document, flags, has_launch=line is not None, **kwargs)  # type: ignore[arg-type]


def values(source: ScriptSource) -> dict[str, object]:
    return {name: setting.value for name, setting in source.settings.items()}
