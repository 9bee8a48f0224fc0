"""Fields of a front end's classes by studied version, as the tools write them into ``data/``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lintfit.frozen import frozen


@frozen
class Field:
    """A field of the dataclasses: its kind (``flag_grammars/kinds.py``) and its default.

    ``default`` is an empty mapping for one that is no constant.
    """

    kind: str
    default: Any


def step_at(steps: Sequence[Sequence[Any]], at: int) -> Sequence[Any] | None:
    """What holds at a studied version, of ``[first version, …]`` steps, oldest first; None before the first of them and
    from a step on that says nothing (removed)."""
    past = [step for step in steps if step[0] <= at]
    return past[-1][1:] if past and len(past[-1]) > 1 else None


def history(at: int, having: Sequence[int], whose: Sequence[str], *, every: bool) -> str | None:
    """Which release takes a field that the studied version ``at`` has not: the last that took it, or the first that
    takes it, which is only known where ``every`` release was studied.

    ``having`` are the studied versions that have it, ``whose`` all of them in words. None for a field that none has.
    """
    before = [each for each in having if each < at]
    if not having or at in having:
        return None
    if not every:
        return f"{whose[before[-1] if before else having[0]]} takes it"
    return (
        f"{whose[before[-1]]} is the last that takes it" if before else f"{whose[having[0]]} is the first that takes it"
    )


def fields_at(declared: Mapping[str, Sequence[Sequence[Any]]], at: int) -> dict[str, Field]:
    """The fields that a studied version has, by name."""
    found = ((name, step_at(steps, at)) for name, steps in declared.items())
    return {name: Field(step[0], step[1]) for name, step in found if step is not None}
