from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.runs import anchor, place_of, stated_at
from lintfit.checks.helpers.wording import gib
from lintfit.findings.model import Severity
from lintfit.frozen import replace
from lintfit.memory.result import Verdict

if TYPE_CHECKING:
    from lintfit.memory.known_bugs import Met

_WORTH = 2**30
"""Bytes below which it is information, whatever the verdict."""


def check_run(context: RunContext) -> Iterator[Report]:
    spec = context.run.spec
    if spec is None or not spec.versions:
        return
    from lintfit.memory.known_bugs import met

    spoken = met(spec)
    if context.run.engine_open:  # what another engine does not meet is only guessed
        anyway = {each.bug for each in met(replace(spec, engine="single"))}
        spoken = (each for each in spoken if each.bug in anyway)
    for each in spoken:
        if _is_pinned(context, each.bug.library) and _is_stated(context, *each.bug.stated_by):
            yield _report(context, each)


def _is_pinned(context: RunContext, library: str) -> bool:
    """Whether a version is stated; of a bound it is open which one is installed."""
    return not context.run.versions.get(library, "<").startswith("<")


def _dies_saving(context: RunContext, each: Met) -> bool:
    """Whether a bug that gathers the model as it is saved takes more than the GPU has."""
    estimate = context.estimate
    if estimate is None or estimate.capacity_bytes is None or "save" not in estimate.largest:
        return False
    gathers = each.bug.stated_by[0] == "gathered_state_dict"
    return gathers and estimate.largest["save"].total + each.bytes > estimate.capacity_bytes


def _is_stated(context: RunContext, setting: str, argument: str) -> bool:
    """Whether a file states a setting by this argument, which says whose way it is; any way will do without one."""
    place = stated_at(context.run, setting) if setting else None
    if not setting or place is None:
        return not setting
    line = place.document.text.rfind("\n", 0, place.span.start) + 1
    return argument in place.document.text[line : place.span.end]


def _report(context: RunContext, each: Met) -> Report:
    bug = each.bug
    close = context.verdict in (Verdict.DOES_NOT_FIT, Verdict.TIGHT) or _dies_saving(context, each)
    offloads = "offloaded" not in bug.what or stated_at(context.run, "offload_optimizer") is not None
    matters = close and offloads and (each.bytes >= _WORTH or not each.bytes)
    cost = f", {gib(each.bytes)}" if each.bytes else ""
    return Report(
        place_of(context.run, each.bug.stated_by[0]) if each.bug.stated_by[0] else anchor(context.run),
        f"{bug.library} {each.version} {bug.what}{cost} ({bug.source})",
        severity=Severity.WARNING if matters else Severity.INFO,
        help=f"{bug.library} {bug.until} and later do not" + (f"; {bug.instead}" if bug.instead else ""),
    )
