"""Words of a documented command, or of a config, that are to be filled in: ``path/to/model``, ``<your model>``,
``{model}``, ``xxx``, ``!!!add the model here!!!``, ``[--seed]``, by which a synopsis says what may be left out,
``???``, by which OmegaConf does of a value that it is missing; and the marks of templates, which ``sed`` or a script
replaces: ``__DS__``, ``@DS@``, ``{{ ds }}``.

What names something by its size is no such word, wherever it is to lie: ``path/to/llama-7b``, ``<path-to-qwen2-7b>``.
"""

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
    r"|^\[-{1,2}[a-z][\w.-]*\]?$"
    r"|(?:^|[^a-z])x{3,}(?:[^a-z]|$)"
    r"|^(?:\.\.\.|\?{2,})$|!{3}\w[^!\n]*!{3}|placeholder|changeme"
    r"|(?-i:__[A-Z][A-Z\d_]*__|@[A-Z][A-Z\d_]*@|%[A-Z][A-Z\d_]*%|<[A-Z][A-Z\d_ -]*>)|\{\{ "
    r"|^(?:path of|name of|model name|data path|path or|(?:learning rate|model|data|dataset) list)\b",
    re.IGNORECASE,
)
_LEFT_OUT = lazy_pattern(r"\[[A-Za-z][\w.-]*\]")
"""What a synopsis says may be left out. In a shell script it is as well a list of one name."""
_OF_A_SIZE = lazy_pattern(r"[A-Za-z][\w. -]{0,80}?(?<![\d.])\d+(?:[._]\d+)?[Bb](?![A-Za-z\d])[\w. -]*")
"""A name with a number of parameters in it, as models have."""
_MOST_OF_A_NAME = 200
_OF_A_FILE = (".json", ".jsonl", ".yaml", ".yml", ".txt", ".csv", ".parquet", ".pt", ".pth", ".bin", ".ckpt")


def without_angles(text: str) -> str:
    """A command with ``<what is to be filled in>`` as a variable that nobody sets, which a shell would take for
    redirects; as long as it was. One that names a model by its size is that name in quotes."""
    if "<" not in text:
        return text
    return _IN_ANGLES.sub(_without_angles, text)


def _without_angles(match: re.Match[str]) -> str:
    inside = match.group()[1:]
    return size_in_quotes(match) or "$" + re.sub(r"[^A-Za-z0-9_]|^(?=\d)", "_", inside)


def size_in_quotes(match: re.Match[str]) -> str | None:
    """What stands in angles as a word in quotes where it names a model by its size; None where it does not, or where
    there are quotes around it."""
    inside = match.group()[1:]
    quoted = match.string[max(0, match.start() - 1) : match.start()] in ("'", '"')
    named = inside.endswith(">") and not quoted and _names_a_size(inside[:-1])
    return f'"{inside[:-1]}"' if named else None


def is_to_fill_in(text: str) -> bool:
    """Whether a word of a documented command, or of a config, stands for another one."""
    return _TO_FILL_IN.search(text) is not None


def unfilled(command: Command) -> Command:
    """A command with unknown values for the words that are to be filled in; a script keeps its name."""
    words = tuple(_unfilled(word) for word in command.words)
    return replace(command, words=words) if words != command.words else command


def _unfilled(word: Word) -> Word:
    if word.value is None or word.value.endswith(".py") or _names_a_size(word.value):
        return word
    filled_in = is_to_fill_in(word.value) or _LEFT_OUT.fullmatch(word.value) is not None
    return replace(word, value=None) if filled_in else word


def _names_a_size(word: str) -> bool:
    """Whether the last part of a path, or a word, is a model's name as far as its size tells (``path/to/llama-7b``)."""
    last = word.rstrip("/").rpartition("/")[2]
    if len(last) > _MOST_OF_A_NAME or "xx" in last.lower() or last.endswith(_OF_A_FILE):
        return False
    return _OF_A_SIZE.fullmatch(last) is not None
