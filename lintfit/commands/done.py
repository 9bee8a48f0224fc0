"""What a command hands to the command line."""

from __future__ import annotations

from lintfit.frozen import frozen


@frozen
class Done:
    """What to print, what to complain of, and the exit status."""

    text: str
    errors: tuple[str, ...] = ()
    status: int = 0
