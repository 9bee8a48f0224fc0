"""Errors that end a command with one line for the user instead of a traceback."""

from __future__ import annotations

import re
from typing import Any

LONGEST_VALUE = 60
"""Characters of a value that a message quotes."""


class CannotWrite(Exception):
    """A change of a run that is not written into its files; the message says why in a few words."""


class LintfitError(Exception):
    """Something the user can mend: bad usage, a bad lintfit config, an unreadable named file.

    The message is one line that says where, what, and what to do. The CLI prints it and exits with 2.
    """


_COMMAND = re.compile(r"^((?:[^\S\n]|\x1b\[[0-9;]*m)*)(?=::(?!: ))|(?<=##)(?=\[)", re.MULTILINE)
"""Where GitHub's runner takes a line of a log for a command to itself: ``::name`` at its beginning, blanks aside, and
``##[name]`` anywhere (actions/runner, ActionCommand.cs). ``::: path`` of a code frame is none."""
_LONG_WORD = re.compile(r"\S{400,}")


def defused(text: str) -> str:
    """Text that a log may hold: a backslash stands before whatever the one who runs the job would obey."""
    return _COMMAND.sub(r"\1\\", text) if "::" in text or "##[" in text else text


def one_line(message: str) -> str:
    """A message as a terminal gets it, whatever names it quotes: one line, nothing that steers, no word without end."""
    line = message if message.isprintable() else "".join(map(_visible, message))
    return defused(_LONG_WORD.sub(lambda found: f"{found[0][:200]}...", line))


def _visible(character: str) -> str:
    return character if character.isprintable() else character.encode("unicode_escape").decode("ascii")


def internal_error(error: Exception) -> str:
    """A mistake of this program's own, in one line."""
    detail = " ".join(str(error).split())[:300]
    described = f"{type(error).__name__}: {detail}" if detail else type(error).__name__
    return f"internal error: {described}; please report it (LINTFIT_DEBUG=1 shows where)"


def shown(value: Any) -> str:
    """A value as a message quotes it, in one line whatever is in it."""
    try:
        text = repr(value)
    except (RecursionError, ValueError):  # nested deeper than repr follows; more digits than Python writes out
        return f"a {type(value).__name__} too large to show"
    return shorten(text)


def shorten(text: str) -> str:
    """The beginning of a long text."""
    return text if len(text) <= LONGEST_VALUE else text[: LONGEST_VALUE - 3] + "..."
