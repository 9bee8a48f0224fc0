"""Findings and fixes: what a rule reports and what would mend it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

from lintfit.documents.model import FileEdit, Span
from lintfit.frozen import field, frozen
from lintfit.memory.result import Estimate
from lintfit.settings.model import Place
from lintfit.severity import Severity as Severity


class Applicability(StrEnum):
    """Whether a fix may be applied: ``safe`` by ``--fix``, ``unsafe`` with ``--unsafe-fixes``, ``display`` never."""

    SAFE = "safe"
    UNSAFE = "unsafe"
    DISPLAY = "display"


@frozen(eq=False)
class Fix:
    """What would mend a finding: an intent and the edits that carry it out, in one or more files.

    ``changes`` says in settings what the edits mean to achieve (``{"zero_stage": 3}``); the confirmation
    reads the result again and compares. It is empty for edits that change no setting. ``caution`` says why a fix that
    leaves the training as it is may not be applied all the same: what it would take along, or that nothing is wrong.
    """

    message: str
    applicability: Applicability
    edits: tuple[FileEdit, ...] = ()
    changes: Mapping[str, Any] = field(default_factory=dict)
    caution: str = ""

    @property
    def why_unsafe(self) -> str:
        """What a user of an unsafe fix has to know, as a clause."""
        return self.caution or "it may change how the run trains"


@frozen(eq=False)
class Related:
    """A second place that a finding speaks of."""

    place: Place
    message: str


@frozen(eq=False)
class Finding:
    """One thing that a rule reports: a one-line message at a place, with the cost or the library's error."""

    rule: str
    code: str
    severity: Severity
    message: str
    place: Place
    related: tuple[Related, ...] = ()
    run: str | None = None
    fix: Fix | None = None
    help: str = ""
    """What to do, where there is no fix to show."""


@frozen(eq=False)
class Step:
    """One change of a plan."""

    setting: str
    before: Any
    after: Any
    path: Path
    edits: tuple[FileEdit, ...] = ()


@frozen
class ChangedLine:
    """A line (1-based, of the file as it is) that an action changes; ``what`` is to be done there, where the action
    does not say it."""

    path: Path
    line: int
    what: str = ""


@frozen
class Action:
    """One thing that a person does to carry a plan out.

    ``text`` is empty where the one line says it all. ``creates`` is a new file, ``text`` then what it is and
    ``content`` what is to stand in it. ``follows``: it comes of the other actions, and nothing is to be written for it.
    """

    text: str
    lines: tuple[ChangedLine, ...] = ()
    creates: Path | None = None
    follows: bool = False
    content: str = ""

    def said(self, shown: Callable[[Path], str] = Path.as_posix) -> str:
        """In one sentence: ``turn on gradient checkpointing: train.py:12 (add gradient_checkpointing=True)``."""
        if self.creates is not None:
            return f"create {shown(self.creates)} {self.text}".rstrip()
        if self.follows:
            return f"{self.text} (follows from the rest)"
        if not self.text:
            return ", ".join(f"{shown(each.path)}:{each.line}: {each.what or 'change the line'}" for each in self.lines)
        places = [f"{shown(each.path)}:{each.line}" + (f" ({each.what})" if each.what else "") for each in self.lines]
        return f"{self.text}: {', '.join(places)}" if places else self.text


@frozen(eq=False)
class Rejected:
    """A plan that was tried and does not suffice, with the estimate that says so."""

    description: str
    estimate: Estimate
    why: str = ""
    """What makes its high end, where only that is too much."""


@frozen(eq=False)
class Plan:
    """A set of changes that turns ``does-not-fit`` into ``fits``, confirmed by reading the result again."""

    applicability: Applicability
    steps: tuple[Step, ...]
    estimate: Estimate
    relative_step_time: float
    fix: Fix
    actions: tuple[Action, ...] = ()
    """The plan in a person's words: what there is to do, and on which lines."""
    rejected: tuple[Rejected, ...] = ()
    beyond: tuple[Rejected, ...] = ()
    """What goes further than the plan and is not needed."""
    name: str = ""
    """What people call it: "ZeRO-3 + micro-batch 2"."""
    effects: tuple[str, ...] = ()
    """What it changes in the training, a sentence each; empty where the training stays the same."""
    by_hand: str = ""
    """Why lintfit does not write it, in a few words; empty where it does."""
    readers: tuple[str, ...] = ()
    """Other runs that read a file which it edits, by their ids."""
    proves: Callable[[], str] = str
    """Works out :attr:`proof`."""

    @property
    def proof(self) -> str:
        """Why nothing cheaper does: how many combinations were ruled out, and the nearest of them."""
        return self.proves()


__all__ = [
    "Action",
    "Applicability",
    "ChangedLine",
    "Finding",
    "Fix",
    "Place",
    "Plan",
    "Rejected",
    "Related",
    "Severity",
    "Span",
    "Step",
]
