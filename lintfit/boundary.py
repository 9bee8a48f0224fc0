"""Where a mistake of this program stops: at the one file or run that it concerns, so that the rest is still checked."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from lintfit.errors import LintfitError, internal_error

Apart = Callable[[str], AbstractContextManager[None]]
"""What holds up a mistake of this program's over the file or run of this name, so that the rest goes on."""


def to_the_end(_: str) -> AbstractContextManager[None]:
    """No boundary: a mistake ends whatever is going on."""
    return nullcontext()


class Mistakes:
    """What went wrong in this program while it went through files and runs, each once: one line for the user."""

    def __init__(self) -> None:
        self._lines: dict[str, None] = {}

    @property
    def lines(self) -> tuple[str, ...]:
        """The lines, in the order in which they came."""
        return tuple(self._lines)

    def note(self, line: str) -> None:
        """Take up a line on something that was not gone through."""
        self._lines[line] = None

    @contextmanager
    def end_at(self, where: str) -> Iterator[None]:
        """Whatever fails in here costs no more than what is in here; ``where`` is the file or run that it concerns.

        What the user can mend is no mistake of this program's and passes, as does the wish to stop.
        """
        try:
            yield
        except LintfitError:
            raise
        except Exception as error:
            if os.environ.get("LINTFIT_DEBUG"):
                raise
            self._lines[f"{where}: {internal_error(error)}"] = None
