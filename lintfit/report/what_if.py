"""``lintfit estimate PATHS`` with a question: a run before and after, by component and by phase, and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lintfit.findings.questions import WhatIf
from lintfit.memory.result import COMPONENTS, Estimate
from lintfit.report import Line, View
from lintfit.report.bars import VERDICT_STYLES, VERDICT_WORDS, gib
from lintfit.report.estimate import estimate_lines, run_block
from lintfit.report.heading import heading
from lintfit.report.runs import PHASE_WORDS, before_after
from lintfit.report.styled import show_blocks, wrapped

_NAME, _FIGURE = 26, 10
"""Columns of a part's name and of each figure."""


def render(answers: Iterable[WhatIf], question: str, view: View, explain: bool = False) -> str:
    """Every run with what was asked about it; ``question``: the flags as they were given."""
    return show_blocks([_block(answer, question, view, explain) for answer in answers], view)


def _block(answer: WhatIf, question: str, view: View, explain: bool) -> list[Line]:
    was = answer.before.estimate if answer.before is not None else None
    now = answer.after.estimate
    if answer.before is None or was is None or now is None:
        return run_block(answer.after, view, explain)
    asked = wrapped([("  what if ", "note")], question, view.width, 4)
    lines = [
        [(answer.after.run.id, "path")],
        *heading(answer.before.run, view),
        *asked,
        *heading(answer.after.run, view),
    ]
    lines += [[], *before_after(was, now, view), [], *_table(was, now)]
    for reason in answer.after.unknown:
        lines += wrapped([("  not judged: ", "note")], reason, view.width, 4)
    lines += [[], [("  why", "note")]]
    for sentence in answer.effects:
        lines += wrapped([("    ", "")], sentence, view.width, 6)
    if explain:
        lines += [[], *estimate_lines(now, view)]
    return lines


def _table(was: Estimate, now: Estimate) -> list[Line]:
    """Parts at the peak, phases at their peak, and the verdicts."""
    lines: list[Line] = [[(f"  {'GiB':<{_NAME}}{'before':>{_FIGURE}}{'after':>{_FIGURE}}", "dim")]]
    for name in COMPONENTS:
        pair = was.component(name), now.component(name)
        if any(pair):
            lines.append(_row(name.replace("_", " "), *pair, style=name))
    lines.append(_row("together, at the peak", was.peak.likely, now.peak.likely, style="rule"))
    lines.append(_verdicts(was, now))
    lines.append([])
    before, after = _phases(was), _phases(now)
    for phase in dict.fromkeys((*before, *after)):
        lines.append(_row(PHASE_WORDS.get(phase, phase), before.get(phase, 0), after.get(phase, 0)))
    lines.append(_row("host memory of a machine", was.host.peak, now.host.peak))
    return lines


def _row(name: str, was: int, now: int, style: str = "") -> Line:
    change = now - was
    sign = "" if abs(change) < 2**30 * 0.05 else f"{'+' if change > 0 else '−'}{gib(abs(change))}"
    return [(f"  {name:<{_NAME}}", style), (f"{gib(was):>{_FIGURE}}{gib(now):>{_FIGURE}}{sign:>{_FIGURE}}", "")]


def _verdicts(was: Estimate, now: Estimate) -> Line:
    if now.capacity_bytes is None:
        return [(f"  {'no GPU named':<{_NAME}}", "dim")]
    words = [(f"{VERDICT_WORDS[each.verdict]:>{_FIGURE + 4}}", VERDICT_STYLES[each.verdict]) for each in (was, now)]
    return [(f"  {f'of {gib(now.capacity_bytes)} GiB':<{_NAME - 4}}", ""), *words]


def _phases(estimate: Estimate) -> Mapping[str, int]:
    found: dict[str, int] = {}
    for moment in estimate.moments:
        found[moment.phase] = max(moment.total, found.get(moment.phase, 0))
    return found
