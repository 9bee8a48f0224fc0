"""The one counter of steps: whatever evaluates text that users write draws from one, and ends when it is spent.

What is evaluated of a script, a shell script or a config may have no end, or none worth waiting for. One reading has
one counter, which everything that it starts shares; a part that may take no more than so many steps of its own has one
:meth:`~Steps.within` it.
"""

from __future__ import annotations

from pathlib import Path

OF_TREE = 3_000_000
"""Steps of all readings of all scripts of a tree. Of 234 public repositories the largest, copies of verl and of
open-instruct, take 2,000,000."""
OF_SHELLS = 120_000
"""Steps of all readings of shell scripts of a tree. A public repository with 175 of them takes 21,000."""
OF_PLANS = 500_000
"""Steps of all plans that are looked for in a tree, which take twice as long each: eight seconds, and ten plans at the
least. Of 229 public repositories five have more runs than ten that do not fit."""
OF_LAST_PLAN = 500_000
"""What a plan may take beyond that which was begun before these were spent: of a copy of LLaMA-Factory one takes
600,000."""
OF_FIXING = 500_000
"""Steps of all that ``--fix`` does behind the first check of a tree: plans that are looked for anew, and runs that are
read anew. All of a real tree's fixes are made in two or three passes, with a few runs to read in each."""
OF_CONFIRMING = 300_000
"""Steps of all runs that are put together again to confirm the fixes of a check, at some ten milliseconds for each. A
public repository with 245 findings takes 184,000."""
OF_PLAN = 15_000
"""What it takes to look for a plan beside what is read for it: a few hundred estimates."""
OF_ALL_KINDS = 90_000
"""The same for all kinds of plans of a run."""
OF_RUN = 2_000
"""What it takes to put a run together again, beside what its script takes."""
A_STEP = 2
"""Characters of a launch script that take a step when it is read again for one of its launches."""


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
        if self.spent:
            return False
        counter: Steps | None = self
        while counter is not None:  # this is asked millions of times
            if counter.spent or counter._left < count:
                self._spend_up_to(counter)
                return False
            counter = counter._outer
        counter = self
        while counter is not None:
            counter._left -= count
            counter = counter._outer
        return True

    def _spend_up_to(self, last: Steps) -> None:
        """Nothing more is taken by this counter and by those around it up to one that has not enough."""
        counter: Steps | None = self
        while counter is not None:
            counter.spent = True
            counter = counter._outer if counter is not last else None

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


class Work:
    """What all readings of a tree may take: a counter for each file, and one that these share."""

    def __init__(self, most: int, what: str, outer: Steps | None = None) -> None:
        self.all = Steps(most, what, outer)
        """The counter that they share."""
        self.shells = Steps(OF_SHELLS, "steps of all shell scripts")
        """The same for shell scripts."""
        self._files: dict[Path, Steps] = {}

    def on(self, path: Path, most: int, what: str) -> Steps:
        """The one counter that all readings of a file draw from."""
        if path not in self._files:
            self._files[path] = self.all.within(most, what)
        return self._files[path]


def of_tree() -> Work:
    """What one reading of all files of a tree may take."""
    return Work(OF_TREE, "expressions of all scripts")


def of_plans(outer: Steps | None = None) -> Work:
    """What looking for plans may take, as a part of ``outer`` where there is such: none begins behind ``OF_PLANS``."""
    return Work(OF_PLANS + OF_LAST_PLAN, "expressions of all plans", outer)


def of_confirming() -> Steps:
    """What confirming the fixes that a check offers may take."""
    return Steps(OF_CONFIRMING, "steps of all fixes that are confirmed")


def of_fixing() -> Steps:
    """What the fixes of one invocation may take."""
    return Steps(OF_FIXING, "steps of all fixes")
