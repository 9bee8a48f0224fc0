"""TOML as tomllib reads it, within bounds: its time grows with the square of a key's parts and of digits."""

from __future__ import annotations

from typing import Any

from lintfit.documents.patterns import lazy_pattern

MOST_PARTS = 10
"""Parts of a dotted key or of a table's name; no tool's config comes near."""

_TEXTS = lazy_pattern(
    r'''"""(?s:.*?)(?:"""|\Z)|"(?:[^"\\\n]|\\.)*+"?|'''
    r"""'''(?s:.*?)(?:'''|\Z)|'[^'\n]*+'?|#[^\n]*+"""
)
"""Texts and comments; what is not closed reaches to the end of its line, so that no character is looked at twice."""
_CHAIN = lazy_pattern(rf"(?<![\w-])[\w-]++(?:[ \t]*+\.[ \t]*+[\w-]++){{{MOST_PARTS}}}")
_NUMBER = lazy_pattern(r"[0-9][0-9_]{4299}")


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
        found = _NUMBER.search(text)
        reason = "not TOML that can be read: a number has more than 4300 digits"
        raise TomlError(reason, _line(text, found.start()) if found else None) from None


def _blank(found: Any) -> str:
    """A text or comment as a word, with its line breaks."""
    word: str = found[0]
    return "" if word.startswith("#") else "_" + "\n" * word.count("\n")


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1
