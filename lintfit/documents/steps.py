"""The one counter of steps: whatever evaluates text that users write draws from one, and ends when it is spent.

What is evaluated of a script, a shell script or a config may have no end, or none worth waiting for. One reading has
one counter, which everything that it starts shares; a part that may take no more than so many steps of its own has one
:meth:`~Steps.within` it.
"""

from __future__ import annotations


class Steps:
    """How many steps a reading may still take. ``what`` names them in the reason (``expressions``)."""

    __slots__ = ("_left", "_most", "_outer", "_parts", "_what", "spent")

    def __init__(self, most: int, what: str, outer: Steps | None = None) -> None:
        self._left = self._most = most
        self._what, self._outer = what, outer
        self._parts: list[Steps] = []
        self.spent = False
        """Whether more was asked for than there was: what comes after is not known."""

    def take(self, count: int = 1) -> bool:
        """Take some steps. False where there are not that many left, now and from then on."""
        if self.spent or self._left < count or (self._outer is not None and not self._outer.take(count)):
            self.spent = True
            return False
        self._left -= count
        return True

    def within(self, most: int, what: str) -> Steps:
        """The counter of a part of the reading: its steps are steps of the whole, too."""
        self._parts.append(Steps(most, what, self))
        return self._parts[-1]

    def allows(self, count: int, most: int, what: str) -> bool:
        """Whether a part of the reading is no larger than it may be; where it is, the reason says so."""
        if count > most:
            self.within(most, what).spent = True
        return count <= most

    @property
    def taken(self) -> int:
        """How many steps were taken."""
        return self._most - self._left

    @property
    def reason(self) -> str:
        """Why what comes after is not known, of the whole or of a part of it, as a clause; empty where all is."""
        if not self.spent:
            return next((part.reason for part in self._parts if part.reason), "")
        if self._outer is not None and self._outer.spent:
            return self._outer.reason
        return f"more than {self._most} {self._what}: what comes after is not followed"
