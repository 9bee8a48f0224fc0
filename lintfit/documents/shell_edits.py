"""Edits of launch lines that keep the style of the command: one flag set or taken out, nothing else touched."""

from __future__ import annotations

import re

from lintfit.documents.model import Edit, Span
from lintfit.documents.shell_reader import Command, ShellDocument
from lintfit.documents.shell_words import Word

_SAFE = re.compile(r"[A-Za-z0-9_@%+=:,./-]+")
_NUMBER = re.compile(r"-[0-9.]")
_SEPARATOR = re.compile(r"(?:[ \t\r\n]|\\(?=\r?\n))*")
_CONTINUATION = re.compile(r"\\\r?\n(?P<indent>[ \t]*)")


def find_flag(command: Command, flag: str) -> tuple[int, Word | None] | None:
    """The index of the last word that gives this flag, and the word of its value: itself for ``--flag=value``.

    The value is None for a flag that stands alone.
    """
    for index in range(len(command.words) - 1, -1, -1):
        word = command.words[index]
        if word.text.startswith(flag + "="):
            return index, word
        if word.text == flag:
            following = command.words[index + 1] if index + 1 < len(command.words) else None
            return index, following if following is not None and not _is_flag(following) else None
    return None


def set_flag(
    document: ShellDocument, command: Command, flag: str, value: str | None, after: Word | None = None
) -> tuple[Edit, ...]:
    """Make the command say ``--flag value``; ``value`` None is a flag that stands alone.

    Where the flag is there, its (last) value is replaced, wherever it is written: also in the assignment that a
    variable's words come from. Else it is added in the command's own style, a line of its own behind a continuation
    or on the line, behind ``after`` (default: the last word, before any redirect or pipe). Empty where the command
    says so already. Raises ValueError where the value would need quotes inside a variable's string.
    """
    found = find_flag(command, flag)
    if found is None:
        return (_added(document, command, flag, value, after),)
    word, current = command.words[found[0]], found[1]
    if current is None:
        if value is None:
            return ()
        return (Edit(Span(word.span.end, word.span.end), " " + _quoted(value, word)),)
    if value is None:
        return _cut(document, command, current) if current is not word else (Edit(word.span, flag),)
    if current.value == (f"{flag}={value}" if current is word else value):
        return ()
    if current is not word:
        return (Edit(current.span, _quoted(value, current)),)
    return (Edit(_after_equals(document, word, flag), _quoted(value, word)),)


def remove_flag(document: ShellDocument, command: Command, flag: str) -> tuple[Edit, ...]:
    """Take out every occurrence of a flag with its value, and the lines that it had to itself."""
    edits: list[Edit] = []
    for index, word in enumerate(command.words):
        if word.text != flag and not word.text.startswith(flag + "="):
            continue
        following = command.words[index + 1] if index + 1 < len(command.words) else None
        if word.text == flag and following is not None and not _is_flag(following):
            between = document.text[min(word.span.end, following.span.start) : following.span.start]
            if word.span.end <= following.span.start and _SEPARATOR.fullmatch(between):
                edits.extend(_cut(document, command, word, following))
                continue
            # The value comes out of a variable of its own: its reference goes, the variable stays.
            edits.extend(_cut(document, command, word, following, at=not word.moved))
            continue
        edits.extend(_cut(document, command, word))
    return tuple(dict.fromkeys(edits))


def _is_flag(word: Word) -> bool:
    return word.text.startswith("-") and len(word.text) > 1 and not _NUMBER.match(word.text)


def _quoted(value: str, word: Word | None) -> str:
    if _SAFE.fullmatch(value):
        return value
    if word is not None and word.moved:
        raise ValueError(f"{value!r} needs quotes and stands inside a variable's string")
    return "'" + value.replace("'", "'\\''") + "'"


def _after_equals(document: ShellDocument, word: Word, flag: str) -> Span:
    source = document.text[word.span.start : word.span.end]
    at = source.find(flag + "=")
    start = word.span.start + (at + len(flag) + 1 if at >= 0 else 0)
    end = word.span.end
    if at > 0 and source[at - 1] in "\"'" and source.endswith(source[at - 1]):
        end -= 1
    return Span(start, end)


def _added(document: ShellDocument, command: Command, flag: str, value: str | None, after: Word | None) -> Edit:
    text = flag if value is None else f"{flag} {_quoted(value, None)}"
    end = after.at.end if after is not None else command.end
    continuations = list(_CONTINUATION.finditer(document.text, command.span.start, command.end))
    if not continuations:
        return Edit(Span(end, end), " " + text)
    near = next((match for match in reversed(continuations) if match.start() < end), continuations[0])
    return Edit(Span(end, end), f" \\{document.file.newline}{near['indent']}{text}")


def _cut(
    document: ShellDocument, command: Command, first: Word, last: Word | None = None, at: bool = False
) -> tuple[Edit, ...]:
    """Delete from ``first`` to ``last`` with the blanks before, or behind where nothing stands before."""
    text = document.text
    start = first.span.start
    end = (last.at if at and last else last.span if last else first.span).end
    if last is not None and end < start:
        return (*_cut(document, command, first), *_cut(document, command, last))
    before = start
    while before > 0 and (
        text[before - 1] in " \t\r\n" or (text[before - 1] == "\\" and text[before : before + 1] in "\r\n")
    ):
        before -= 1
    if before == start or text[before - 1] in "\"'(=":
        separator = _SEPARATOR.match(text, end)
        behind = separator.end() if separator else end
        return (Edit(Span(start, behind if text[behind : behind + 1] not in "\"')" else end), ""),)
    return (Edit(Span(before, end), ""),)
