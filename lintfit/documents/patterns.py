"""Regular expressions that are compiled when they are first used: of those of all modules a run needs a few."""

from __future__ import annotations

import re
from typing import Any, cast


class _Pattern:
    def __init__(self, text: str, flags: int) -> None:
        self._text, self._flags = text, flags

    def __getattr__(self, name: str) -> Any:
        """A method or attribute of the compiled pattern, which is at hand from then on."""
        compiled = re.compile(self._text, self._flags)
        self.__dict__[name] = found = getattr(compiled, name)
        return found


def lazy_pattern(text: str, flags: int = 0) -> re.Pattern[str]:
    """What :func:`re.compile` gives, without the compiling as long as nobody asks it for anything.

    For patterns at the top of a module, where to compile them takes a good part of the program's start.
    """
    return cast("re.Pattern[str]", _Pattern(text, flags))
