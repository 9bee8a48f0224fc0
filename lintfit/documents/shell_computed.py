"""Variables that a shell script, or a file that it sources, works out from other numbers: these are to be edited.

``MICRO=$((GLOBAL / GPUS / STEPS))`` states a relation. A literal in the place of ``$MICRO`` would break it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from lintfit.documents.edits import apply
from lintfit.documents.model import Edit, Span
from lintfit.documents.shell_document import Command, ShellDocument
from lintfit.documents.shell_sourced import MAX_SOURCED, candidates, opened
from lintfit.documents.shell_words import Word

_REFERENCE = re.compile(r"""(?:--?[\w-]+=)?["']?\$(?:\{(?P<braced>\w+)\}|(?P<plain>\w+))["']?""")
_COMPUTED = re.compile(
    r"""^[ \t]*(?:(?:export|local|readonly|declare)[ \t]+)*(?P<name>\w+)=["']?\$\(\(""", re.MULTILINE
)
_NUMBER = re.compile(r"""^[ \t]*(?:export[ \t]+)?\w+=["']?(?P<number>\d+)["']?[ \t]*(?:#.*)?\r?$""", re.MULTILINE)


def reference(document: ShellDocument, word: Word) -> str | None:
    """The variable whose value a word is, as the command writes it; None for any other word."""
    match = _REFERENCE.fullmatch(document.slice(word.at))
    return match["braced"] or match["plain"] if match else None


def computed(document: ShellDocument) -> frozenset[str]:
    """The variables that are set to results of arithmetic, here or in a file that is sourced."""
    return frozenset(match["name"] for text in _texts(document) for match in _COMPUTED.finditer(text))


def is_worked_out(document: ShellDocument, word: Word, known: frozenset[str]) -> bool:
    """Whether a word is the result of arithmetic, or a variable that is one."""
    return document.slice(word.span).startswith("$((") or reference(document, word) in known


def source_of(document: ShellDocument, command: Command, word: Word, value: str) -> tuple[Edit, ...] | None:
    """The edit of the number that a word's variable has its value from through a sourced file, or that others are
    worked out from.

    None where the word's own places serve. Raises ValueError for a variable that is worked out: it follows from the
    other numbers.
    """
    name = reference(document, word)
    if name is None:
        return None
    known = computed(document)
    if name in known:
        raise ValueError(f"{name} is worked out from other numbers")
    counts = re.search(rf"\$\(\([^\n]{{0,300}}\b{re.escape(name)}\b", document.text) is not None
    sourced = len(word.places) < 2 and any(_sets(text, name) for text in _sourced(document))
    if not sourced and not (counts and _sets(document.text, name)):
        return None
    return next(_behind(document, command, word, value, known), None)


def _behind(
    document: ShellDocument, command: Command, word: Word, value: str, known: frozenset[str]
) -> Iterator[tuple[Edit, ...]]:
    """Edits of a number above the command by which the word, and else only what is worked out, changes."""
    from lintfit.documents.shell_reader import read_shell

    index, at = document.commands.index(command), command.words.index(word)
    glued = word.text.startswith("-") and "=" in word.text
    wanted = f"{word.text.partition('=')[0]}={value}" if glued else value
    old = word.text.partition("=")[2] if glued else word.text
    for match in _NUMBER.finditer(document.text, 0, command.span.start):
        if match["number"] != old:
            continue
        edit = Edit(Span(match.start("number"), match.end("number")), value)
        text = apply(document.text, [edit])
        changed = read_shell(replace(document.file, text=text), document.open_text, document.given).commands
        if len(changed) != len(document.commands) or len(changed[index].words) != len(command.words):
            continue
        others = (i for i in range(len(changed)) if i != index and not prints(document.commands[i]))
        if any([w.text for w in changed[i].words] != [w.text for w in document.commands[i].words] for i in others):
            continue
        pairs = enumerate(zip(command.words, changed[index].words, strict=True))
        if all(
            new.text == wanted if i == at else new.text == before.text or is_worked_out(document, before, known)
            for i, (before, new) in pairs
        ):
            yield (edit,)


def in_variable(text: str, edits: Sequence[Edit]) -> Edit | None:
    """The one edit of a variable's value that does what edits of all words do that are the variable; None where they
    are not all, or are no such words, or where the variable is set more than once or to anything but a plain word."""
    replaced = {text[edit.span.start : edit.span.end] for edit in edits}
    written = {edit.text.strip("\"'") for edit in edits}
    word = next(iter(replaced)) if len(replaced) == len(written) == 1 else ""
    match = _REFERENCE.fullmatch(word)
    if match is None or word.startswith("-"):
        return None
    name = re.escape(match["braced"] or match["plain"])
    uses = re.findall(rf"\$\{{?{name}\b", text)
    setting = rf"(?m)^[ \t]*(?:export[ \t]+)?{name}=([\"']?)(?P<value>[^\s\"'$]+)\1[ \t]*$"
    lines = list(re.finditer(setting, text))
    if len(uses) != len(edits) or len(lines) != 1:
        return None
    return Edit(Span(*lines[0].span("value")), written.pop())


def prints(command: Command) -> bool:
    """Whether a command only shows its words."""
    return bool(command.words) and command.words[0].value in ("echo", "printf")


def _texts(document: ShellDocument) -> Iterator[str]:
    yield document.text
    yield from _sourced(document)


def _sourced(document: ShellDocument) -> Iterator[str]:
    """The files that the script itself sources."""
    if document.open_text is None:
        return
    sources = [c for c in document.commands if len(c.words) > 1 and c.words[0].value in ("source", ".")]
    for command in sources[:MAX_SOURCED]:
        name = command.words[1].value
        file = opened(document.open_text, candidates(document.path, command.folder, name)) if name else None
        if file is not None and file.path != document.path:
            yield file.text


def _sets(text: str, name: str) -> bool:
    return re.search(rf"^[ \t]*(?:export[ \t]+)?{re.escape(name)}=", text, re.MULTILINE) is not None


def referenced(before: ShellDocument, text: str) -> str:
    """A changed script with the variables where they stood, if they have come to the values that were written."""
    from lintfit.documents.shell_reader import read_shell

    after = read_shell(replace(before.file, text=text), before.open_text, before.given)
    for index, command in enumerate(before.commands if len(before.commands) == len(after.commands) else ()):
        for at, word in enumerate(command.words):
            now = _same(command, at, after.commands[index]) if reference(before, word) is not None else None
            if now is None or after.slice(now.at) == before.slice(word.at):
                continue
            again = apply(text, [Edit(now.at, before.slice(word.at))])
            read = read_shell(replace(before.file, text=again), before.open_text, before.given)
            if _words(read) == _words(after):
                text, after = again, read
    return text


def _same(command: Command, at: int, after: Command) -> Word | None:
    """The word of a changed command that a word has become: in its place, or behind the same flag."""
    if len(command.words) == len(after.words):
        return after.words[at]
    word = command.words[at].text
    if word.startswith("-") and "=" in word:
        flag = word.partition("=")[0] + "="
        found = [each for each in after.words if each.text.startswith(flag)]
    else:
        flag = command.words[at - 1].text if at else ""
        pairs = zip(after.words, after.words[1:], strict=False)
        found = [each for before, each in pairs if flag.startswith("-") and before.text == flag]
    return found[0] if len(found) == 1 else None


def _words(document: ShellDocument) -> list[list[str]]:
    return [[word.text for word in command.words] for command in document.commands]
