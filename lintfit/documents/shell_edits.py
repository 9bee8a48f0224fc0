"""Edits of launch lines that keep the style of the command: one flag set or taken out, nothing else touched."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path

from lintfit.documents import shell_computed
from lintfit.documents.edits import apply
from lintfit.documents.lines import indentation, line_start, starts_line
from lintfit.documents.markdown import is_page
from lintfit.documents.model import Edit, Span
from lintfit.documents.shell_document import Command, ShellDocument
from lintfit.documents.shell_elsewhere import is_workflow
from lintfit.documents.shell_reader import read_shell
from lintfit.documents.shell_words import Word
from lintfit.documents.widths import has_no_room

_SAFE = re.compile(r"[A-Za-z0-9_@%+=:,./-]+")
_NUMBER = re.compile(r"-[0-9.]")
_BOOLEANS = {"true", "false", "yes", "no", "1", "0", "t", "f", "y", "n"}
_SEPARATOR = re.compile(r"(?:[ \t\r\n]|\\(?=\r?\n))*")
_BLANKS = re.compile(r"[ \t]+(?=\r?\n|\Z)")
_CONTINUATION = re.compile(r"\\\r?\n(?P<indent>[ \t]*)")
_PASSED_ON = re.compile(r"""(?:[ \t]|\\\r?\n){1,100}(?P<quote>["']?)\$(?:[@*]|\{[@*][^}\n]*\})(?P=quote)[ \t]*\Z""")
_REST = re.compile(r"(?P<words>[^\n\\]*)(?P<goes_on>\\\r?\n)?")
_CONTINUED = re.compile(r"\\\r?\n\Z")


def find_flag(command: Command, flag: str) -> tuple[int, Word | None] | None:
    """The index of the last word that gives this flag, and the word of its value: itself for ``--flag=value``.

    The value is None for a flag that stands alone: before another flag, at the end, or before a script (``*.py``).
    """
    for index in range(len(command.words) - 1, -1, -1):
        if command.words[index].text.startswith(flag + "="):
            return index, command.words[index]
        if command.words[index].text == flag:
            return index, _value(command, index)
    return None


def set_flag(
    document: ShellDocument,
    command: Command,
    flag: str,
    value: str | None,
    after: Word | None = None,
    follower: str = "",
) -> tuple[Edit, ...]:
    """Make the command say ``--flag value``; ``value`` None is a flag that stands alone.

    Where the flag is there, its (last) value is replaced, wherever it is written: also in the assignment that a
    variable's words come from. Else it is added in the command's own style, a line of its own behind a continuation
    or on the line while that has room, behind ``after`` (default: the last word, before any redirect or pipe). Empty
    where the command says so already. ``follower`` is a flag that gets the value as well where a variable is that of
    both. Raises ValueError where the place of the value makes other words, too, or the
    value would need quotes inside a variable's string.
    """
    found = find_flag(command, flag)
    if found is None:
        return (_added(document, command, flag, value, after),)
    word, current = command.words[found[0]], found[1]
    texts = [item.text for item in command.words]
    if current is None:
        if value is None:
            return ()
        texts.insert(found[0] + 1, value)
        return _narrowest(
            document, command, texts, [Edit.insert(at.end, " " + _quoted(value, word)) for at in _places(word)]
        )
    if value is None:
        if current is word:
            return (Edit(_editable(word), flag),)
        return _cut(document, current, current) if (current.value or "").lower() in _BOOLEANS else ()
    if current.value == (f"{flag}={value}" if current is word else value):
        return ()
    if (behind := shell_computed.source_of(document, command, current, value)) is not None:
        return behind
    places = _places(current)
    edits = [edit for at in places for edit in _last_part(document, at, current, value)]
    if current is word:
        texts[found[0]] = f"{flag}={value}"
        places = [_after_equals(document, at, flag) for at in places]
    else:
        texts[found[0] + 1] = value
    edits += [Edit(at, text) for at in places if (text := _requoted(document, at, value, current)) is not None]
    if not edits:
        raise ValueError(f"{value!r} needs quotes and stands inside a variable's string")
    return _narrowest(document, command, texts, edits, _following(document, command, current, follower))


def _last_part(document: ShellDocument, at: Span, word: Word, value: str) -> Iterator[Edit]:
    """The edit of a path's name alone, where its folder is a variable's that stays: ``"${BASE}/ds.json"``."""
    written = document.slice(at)
    (old_folder, _, old), (folder, _, new) = word.text.rpartition("/"), value.rpartition("/")
    start = written.rfind(f"/{old}") + 1
    glued = old_folder.partition("=")[2] if old_folder.startswith("-") else old_folder
    if start and "$" in written[:start] and folder == glued and written[start:].rstrip("\"'") == old:
        yield Edit(Span(at.start + start, at.start + start + len(old)), new)


def with_value(document: ShellDocument, word: Word, value: str, glued_to: str | None) -> Edit | None:
    """The edit that gives a word another value in its quotes, behind the ``=`` of the flag that it is glued to; a
    path whose folder is a variable's gets another name in it. None where that would need other quotes."""
    at = word.span if glued_to is None else _after_equals(document, word.span, glued_to)
    if (name := next(_last_part(document, at, word, value), None)) is not None:
        return name
    text = _requoted(document, at, value, word)
    return Edit(at, text) if text is not None else None


def remove_flag(document: ShellDocument, command: Command, flag: str, values: int | None = None) -> tuple[Edit, ...]:
    """Take out every occurrence of a flag with its value, and the lines that it had to itself.

    ``values`` is how many words the flag takes; left out, the next word is its value unless it is a flag or a script.
    Raises ValueError where the place of a word makes other words, too.
    """
    edits: list[Edit] = []
    for index, word in enumerate(command.words):
        if word.text.startswith(flag + "="):
            edits.extend(_cut(document, word, word))
        elif word.text == flag:
            count = values if values is not None else int(_value(command, index) is not None)
            edits.extend(_cut(document, word, command.words[min(index + count, len(command.words) - 1)]))
    return tuple(dict.fromkeys(edits))


def _value(command: Command, index: int) -> Word | None:
    if index + 1 == len(command.words):
        return None
    word = command.words[index + 1]
    return None if _is_flag(word) or word.text.endswith(".py") else word


def _is_flag(word: Word) -> bool:
    return word.text.startswith("-") and len(word.text) > 1 and not _NUMBER.match(word.text)


def _editable(word: Word) -> Span:
    if not word.editable:
        raise ValueError(f"{word.text!r} cannot be edited alone: its variable makes other words, too")
    return word.span


def _places(word: Word) -> list[Span]:
    _editable(word)
    return list(reversed(word.places))


_MOST = 300
"""Commands of a script whose words are edited: with loops a few lines make thousands, and each edit reads them all."""


def _narrowest(
    document: ShellDocument, command: Command, texts: list[str], edits: list[Edit], along: Collection[int] = ()
) -> tuple[Edit, ...]:
    """The edit that changes nothing but this command's words to ``texts``; else one that at least does that.

    A value may come from a variable that other words and commands use, too: then its reference is replaced instead,
    but for words that the script works out (``$((BATCH / MICRO))``): these follow, and so do those that are to go
    ``along``, by their index, and what is only printed.
    """
    if len(document.commands) > _MOST:
        raise ValueError(f"the script makes more than {_MOST} commands, which would all be read again")
    index = document.commands.index(command)
    printed = {at for at, other in enumerate(document.commands) if shell_computed.prints(other)}
    old = [[word.text for word in other.words] for other in document.commands]
    follow = {*_worked_out(document, command, texts), *along}
    wide: Edit | None = None
    for edit in edits:
        text = apply(document.text, [edit])
        changed = read_shell(replace(document.file, text=text), document.open_text, document.given)
        new = [[word.text for word in other.words] for other in changed.commands]
        if len(new) != len(old) or not _same(new[index], texts, follow):
            continue
        others = (at for at in range(len(old)) if at != index and at not in printed)
        if all(old[at] == new[at] for at in others):
            return (edit,)
        wide = wide or edit
    if wide is None:
        raise ValueError("the value is written where other words of the command come from, too")
    return (wide,)


def _worked_out(document: ShellDocument, command: Command, texts: list[str]) -> set[int]:
    """The words of a command that are results of arithmetic and stay as they are in ``texts``, by their index."""
    words = command.words
    if len(texts) != len(words):
        return set()
    stay = (index for index, word in enumerate(words) if word.editable and texts[index] == word.text)
    computed = shell_computed.computed(document)
    return {index for index in stay if shell_computed.is_worked_out(document, words[index], computed)}


def _following(document: ShellDocument, command: Command, current: Word, follower: str) -> set[int]:
    """The word with the value of another flag, by its index, where it is the variable that a word is."""
    name, found = shell_computed.reference(document, current), find_flag(command, follower) if follower else None
    if name is None or found is None or found[1] is None or shell_computed.reference(document, found[1]) != name:
        return set()
    return {command.words.index(found[1])}


def _same(words: list[str], wanted: list[str], follow: set[int]) -> bool:
    """Whether words are as wanted, but for those that follow from others."""
    pairs = enumerate(zip(words, wanted, strict=False))
    return len(words) == len(wanted) and all(a == b or index in follow for index, (a, b) in pairs)


def _quoted(value: str, word: Word | None) -> str:
    if _SAFE.fullmatch(value):
        return value
    if word is not None and word.moved:
        raise ValueError(f"{value!r} needs quotes and stands inside a variable's string")
    return "'" + value.replace("'", "'\\''") + "'"


def _requoted(document: ShellDocument, at: Span, value: str, word: Word) -> str | None:
    """A value in the quotes that the one before it has, or stands in alone; None where it would need others."""
    written, text = document.slice(at), document.text
    plain = not any(mark in value for mark in "\"'$`\\!")
    if written[:1] == written[-1:] == '"' and len(written) > 1 and plain:
        return f'"{value}"'
    around = text[max(at.start - 1, 0) : at.start]
    if plain and around in ("'", '"') and text[at.end : at.end + 1] == around:
        return value
    try:
        return _quoted(value, word)
    except ValueError:
        return None


def _after_equals(document: ShellDocument, place: Span, flag: str) -> Span:
    source = document.slice(place)
    at = source.find(flag + "=")
    start = place.start + (at + len(flag) + 1 if at >= 0 else 0)
    end = place.end
    if at > 0 and source[at - 1] in "\"'" and source.endswith(source[at - 1]):
        end -= 1
    return Span(start, end)


def _added(document: ShellDocument, command: Command, flag: str, value: str | None, after: Word | None) -> Edit:
    between = "=" if _glues(command) else " "
    text = flag if value is None else f"{flag}{between}{_quoted(value, None)}"
    end = _end(document, command) if after is None else _behind(document, command, after, len(text) + 1)
    continuations = list(_CONTINUATION.finditer(document.text, command.span.start, command.end))
    if continuations:
        if _several_a_line(document, command) and not has_no_room(document.text, end, len(text) + 1):
            return Edit.insert(end, " " + text)
        near = next((match for match in reversed(continuations) if match.start() < end), continuations[0])
        if value is not None and between == " ":
            filled = flag.ljust(_column_of_values(document, command) - len(near["indent"]))
            text = f"{filled}{text.removeprefix(flag)}"
        return Edit(_blanks_at(document, end), f" \\{document.file.newline}{near['indent']}{text}")
    indent = _next_line(document, command, end, len(text) + 1)
    return Edit.insert(end, " " + text if indent is None else f" \\{document.file.newline}{indent}{text}")


_ALIGNED = 3
"""Values below one another that are no chance, behind flags of different lengths."""


def _column_of_values(document: ShellDocument, command: Command) -> int:
    """The column in front of which a command's flags are filled up with blanks, where it writes their values below one
    another; 0 where it does not."""
    columns: Counter[int] = Counter()
    flags: dict[int, set[int]] = {}
    for word, value in zip(command.words, command.words[1:], strict=False):
        if _is_flag(word) and not _is_flag(value):
            column = value.at.start - line_start(document.text, value.at.start)
            columns[column] += 1
            flags.setdefault(column, set()).add(len(word.text))
    column, count = columns.most_common(1)[0] if columns else (0, 0)
    aligned = count >= _ALIGNED and len(flags[column]) >= _ALIGNED and count * 2 > sum(columns.values())
    return column - 1 if aligned else 0


def _blanks_at(document: ShellDocument, end: int) -> Span:
    """The blanks behind a command's last word, at the end of its line; of a text that stands in another one (a page, a
    notebook) none, for they may stand for something else there."""
    blanks = _BLANKS.match(document.text, end)
    framed = document.file.within is not None or _is_framed(document.path)
    return Span(end, blanks.end() if blanks is not None and not framed else end)


def _behind(document: ShellDocument, command: Command, after: Word, more: int) -> int:
    """Where so many characters go behind a word: right there where it ends its line, or its line has room for them;
    else behind the last word of that line, or of the command."""
    text, here = document.text, after.at.end
    rest = _REST.match(text, here)
    if rest is None or not rest["words"].strip():
        return here
    if not has_no_room(text, here, more) and (_several_a_line(document, command) or not rest["goes_on"]):
        return here
    return here + len(rest["words"].rstrip()) if rest["goes_on"] else _end(document, command)


def _end(document: ShellDocument, command: Command) -> int:
    """Where a command ends: in front of the arguments of its script (``"$@"``), which are to have the last say."""
    passed_on = _PASSED_ON.search(document.text[command.span.start : command.end])
    return command.span.start + passed_on.start() if passed_on is not None else command.end


def _several_a_line(document: ShellDocument, command: Command) -> bool:
    """Whether most lines of a command that name flags name more than one."""
    flags = Counter(document.position(word.at.start).line for word in command.words if _is_flag(word))
    return sum(1 if count > 1 else -1 for count in flags.values()) > 0


def _glues(command: Command) -> bool:
    """Whether a command writes its flags as ``--flag=value``: most of those that have a value."""
    glued = sum(1 for word in command.words if word.text.startswith("--") and "=" in word.text)
    pairs = zip(command.words, command.words[1:], strict=False)
    apart = sum(1 for one, other in pairs if _is_flag(one) and "=" not in one.text and not _is_flag(other))
    return glued > 1 and glued > apart


def add_before(document: ShellDocument, word: Word, text: str) -> Edit:
    """Put words in front of another one: on a line of their own where it begins one behind a continuation."""
    at = word.at.start
    continued = starts_line(document.text, at) and _CONTINUED.search(document.text, 0, line_start(document.text, at))
    between = f" \\{document.file.newline}{indentation(document.text, at)}" if continued else " "
    return Edit.insert(at, text + between)


def _next_line(document: ShellDocument, command: Command, end: int, more: int) -> str | None:
    """What to indent the next line by where a command on one line has no room for so many characters; None where it
    has, is too long already, or may not be continued.

    Only a command that begins its line is: before it may stand the quotes of a string or the key of a workflow, whose
    scalars may be folded.
    """
    text, start = document.text, command.span.start
    if not has_no_room(text, end, more) or not starts_line(text, start) or _is_framed(document.path):
        return None
    outer = indentation(text, start)
    others = (match["indent"] for match in _CONTINUATION.finditer(text))
    return next((indent for indent in others if indent.startswith(outer) and indent != outer), f"{outer}    ")


def _is_framed(path: Path) -> bool:
    """Whether commands stand among other text, which a further line may not fit into."""
    return is_workflow(path) or is_page(path) or path.suffix in (".yaml", ".yml", ".json", ".py")


def _cut(document: ShellDocument, first: Word, last: Word) -> tuple[Edit, ...]:
    """Delete from ``first`` to ``last`` with the blanks before, or behind where nothing stands before."""
    text = document.text
    span = _together(text, first, last)
    before = span.start
    while before > 0 and (text[before - 1] in " \t\r\n" or text[before - 1 : before + 1] in ("\\\n", "\\\r")):
        before -= 1
    if before == span.start or before == 0 or _opens(text, before - 1):
        separator = _SEPARATOR.match(text, span.end)
        behind = separator.end() if separator else span.end
        return (Edit(Span(span.start, span.end if text[behind : behind + 1] in ("", '"', "'", ")") else behind), ""),)
    return (Edit(Span(before, span.end), ""),)


def _opens(text: str, at: int) -> bool:
    """Whether words begin behind a character: an assignment, an array, or a quote that is not the end of a word."""
    return text[at] in "(=" or (text[at] in "\"'" and (at == 0 or text[at - 1] in "=( \t\r\n"))


def _together(text: str, first: Word, last: Word) -> Span:
    """The innermost stretch that holds both words and what stands between them, and nothing else."""
    if first is last:
        return _editable(first)
    for start in reversed(first.places):
        for end in reversed(last.places):
            if start.end <= end.start and (len(text[start.end : end.start].strip(" \t\r\n\\")) == 0 or last.at == end):
                return Span(start.start, end.end)
    raise ValueError(f"{first.text!r} and its value are not written in one place")
