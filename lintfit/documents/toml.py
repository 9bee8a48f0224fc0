"""TOML as tomllib reads it, within bounds: its time grows with the square of a key's parts and of digits."""

from __future__ import annotations

from typing import Any

from lintfit.documents.limits import MOST_DIGITS, too_many_digits
from lintfit.documents.patterns import lazy_pattern

MOST_PARTS = 10
"""Parts of a dotted key or of a table's name; no tool's config comes near."""

_TEXTS = lazy_pattern(
    r'''"""(?s:.*?)(?:"""|\Z)|"(?:[^"\\\n]|\\.)*+"?|'''
    r"""'''(?s:.*?)(?:'''|\Z)|'[^'\n]*+'?|#[^\n]*+"""
)
"""Texts and comments; what is not closed reaches to the end of its line, so that no character is looked at twice."""
_CHAIN = lazy_pattern(rf"(?<![\w-])[\w-]++(?:[ \t]*+\.[ \t]*+[\w-]++){{{MOST_PARTS}}}")
_NUMBER = lazy_pattern(r"[0-9][0-9_]*+")


class TomlError(ValueError):
    """Text that is not read; the message says why in a few words, ``line`` where, if it is known."""

    def __init__(self, reason: str, line: int | None = None) -> None:
        super().__init__(reason)
        self.line = line


def parse(text: str) -> dict[str, Any]:
    """The content of a TOML text. Raises :class:`TomlError` for one that is none, or goes beyond the bounds."""
    import tomllib

    bare = _TEXTS.sub(_blank, text)
    chain = _CHAIN.search(bare)
    if chain is not None:
        reason = f"not TOML that can be read: a key has more than {MOST_PARTS} parts"
        raise TomlError(reason, _line(bare, chain.start()))
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise TomlError(f"not TOML: {error}") from None
    except RecursionError:
        raise TomlError("not TOML that can be read: nested too deeply") from None
    except ValueError:  # Python reads no longer ones (sys.get_int_max_str_digits)
        raise _too_long(text) from None


def _too_long(text: str) -> TomlError:
    """What is wrong with the first number that has more digits than are read."""
    found = next((each for each in _NUMBER.finditer(text) if len(each[0]) > MOST_DIGITS), None)
    if found is None:
        return TomlError("not TOML that can be read")
    before = text[text.rfind("\n", 0, found.start()) + 1 : found.start()]
    said = too_many_digits(before.partition("=")[0].strip(), len(found[0]))
    return TomlError(f"not TOML that can be read: {said}", _line(text, found.start()))


def _blank(found: Any) -> str:
    """A text or comment as a word, with its line breaks."""
    word: str = found[0]
    return "" if word.startswith("#") else "_" + "\n" * word.count("\n")


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1
