"""Regular expressions that are compiled when they are first used, of which a run needs a few; and what they found."""

from __future__ import annotations

import re
from functools import lru_cache
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


@lru_cache(maxsize=8192)
def occurs(pattern: re.Pattern[str], text: str) -> bool:
    """Whether a text has what a pattern matches. Kept, for the texts of files: launches train with the same modules,
    and every one of them asks the same of their texts."""
    return pattern.search(text) is not None
