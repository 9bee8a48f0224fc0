"""Words of a documented command that are to be filled in: ``path/to/model``, ``<your model>``, ``{model}``, ``xxx``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from lintfit.documents.patterns import lazy_pattern
from lintfit.frozen import replace

if TYPE_CHECKING:
    from lintfit.documents.shell_document import Command
    from lintfit.documents.shell_words import Word

_IN_ANGLES = lazy_pattern(r"<(?=[^\s<>(&|=])[^<>\n`]*[^<>\s`]>|<[^\s<>(&|=]>")
_TO_FILL_IN = lazy_pattern(
    r"(?:^|[^a-z])path[/_-]?to(?:[^a-z]|$)"
    r"|(?:^|[^a-z])your?(?:[_/.-]|$)"
    r"|\{[a-z_][\w .-]*\}"
    r"|\[(?:your|path|model|size|name)[^\]]*\]|\[(?-i:[A-Z][A-Z_ ]+)\]"
    r"|(?:^|[^a-z])x{3,}(?:[^a-z]|$)"
    r"|^\.\.\.$|placeholder|changeme",
    re.IGNORECASE,
)


def without_angles(text: str) -> str:
    """A command with ``<what is to be filled in>`` as a variable that nobody sets, which a shell would take for
    redirects; as long as it was."""
    if "<" not in text:
        return text
    return _IN_ANGLES.sub(lambda match: "$" + re.sub(r"[^A-Za-z0-9_]|^(?=\d)", "_", match.group()[1:]), text)


def is_to_fill_in(text: str) -> bool:
    """Whether a word of a documented command stands for another one."""
    return _TO_FILL_IN.search(text) is not None


def unfilled(command: Command) -> Command:
    """A command with unknown values for the words that are to be filled in; a script keeps its name."""
    words = tuple(_unfilled(word) for word in command.words)
    return replace(command, words=words) if words != command.words else command


def _unfilled(word: Word) -> Word:
    if word.value is None or word.value.endswith(".py") or not is_to_fill_in(word.value):
        return word
    return replace(word, value=None)
