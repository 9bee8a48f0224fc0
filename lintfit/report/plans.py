"""What ``lintfit fit`` says: the plans of a run beside each other, or how far a run can go."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lintfit.findings.model import Applicability, Plan
from lintfit.findings.results import RunResult
from lintfit.fit.alternatives import Alternatives
from lintfit.fit.figures import Extreme, Figure
from lintfit.memory.result import Verdict
from lintfit.memory.spec import GIB
from lintfit.options.model import Margin
from lintfit.report import Line, View, shown_path
from lintfit.report.bars import gib
from lintfit.report.heading import header
from lintfit.report.runs import step_time
from lintfit.report.styled import cells, to_write, wrapped

_HEAD = ("#", "GiB per GPU", "to plan for", "host GiB", "step", "applied")


def plan_table(plans: Sequence[Plan], view: View, start: int = 1) -> list[Line]:
    """A table with one plan a row, and below each row its name, what it changes in the training, and its files."""
    rows = [_row(number, plan) for number, plan in enumerate(plans, start)]
    widths = [max(cells(row[column]) for row in (_HEAD, *rows)) for column in range(len(_HEAD))]
    lines: list[Line] = [_cells(_HEAD, widths, "rule")]
    for row, plan in zip(rows, plans, strict=True):
        style = "good" if plan.applicability is Applicability.SAFE else ""
        lines.append(_cells(row, widths, style))
        lines += _below(plan, view)
    return lines


def _row(number: int, plan: Plan) -> tuple[str, ...]:
    estimate = plan.estimate
    host = gib(estimate.host.peak) if estimate.host.peak else "-"
    how = "by hand" if plan.applicability is Applicability.DISPLAY else str(plan.applicability)
    ratio = f"× {plan.relative_step_time:g}"
    return str(number), gib(estimate.peak.likely), gib(estimate.peak.high), host, ratio, how


def _cells(row: Sequence[str], widths: Sequence[int], style: str) -> Line:
    padded = [text.rjust(width) for text, width in zip(row[:-1], widths, strict=False)]
    return [("  ", ""), ("  ".join([*padded, row[-1]]), style)]


def _below(plan: Plan, view: View) -> list[Line]:
    lines = wrapped([("       ", ""), ("", "")], plan.name, view.width, 9)
    for effect in plan.effects:
        lines += wrapped([("       ", ""), ("training: ", "note")], effect, view.width, 9)
    if plan.fix.caution:
        lines += wrapped([("       ", ""), ("unsafe: ", "note")], plan.fix.caution, view.width, 9)
    if plan.by_hand:
        lines += wrapped([("       ", ""), ("by hand: ", "note")], plan.by_hand, view.width, 9)
    for number, action in enumerate(plan.actions, 1):
        lines += wrapped([("       ", ""), (f"{number}. ", "dim")], action.said(shown_path), view.width, 10)
        lines += to_write(plan, action, 10)
    return lines


def run_plans(result: RunResult, found: Alternatives, view: View, start: int) -> list[Line]:
    """One run with everything that would make it fit; the first plan is number ``start``."""
    plans = found.plans
    lines = [*header(result.run, view), *_now(result)]
    if found.fits:
        lines.append([("  it fits as it is", "good"), (": nothing to change (--maximize and --minimize say more)", "")])
    elif not plans:
        lines.append([("  nothing makes it fit", "bad")])
        lines += wrapped([("  missing: ", "note")], found.shortfall, view.width, 4) if found.shortfall else []
    else:
        lines += [[], *plan_table(plans, view, start)]
        if plans[0].proof:
            lines += [[], *wrapped([(f"  why not less than {start}: ", "note")], plans[0].proof, view.width, 4)]
        lines += wrapped([("  step: ", "dim")], "time of a step relative to now, by a first-order model", view.width, 4)
        lines += _how(plans, start, view)
    return lines


def _how(plans: Sequence[Plan], start: int, view: View) -> list[Line]:
    """How to have a plan written, with the number of the first that can be."""
    number = next((n for n, plan in enumerate(plans, start) if plan.fix.edits), None)
    if number is None:
        return []
    text = f"`--diff {number}` shows what plan {number} would write, `--apply {number}` writes it"
    return wrapped([("  help: ", "help")], text, view.width, 4)


def _now(result: RunResult) -> list[Line]:
    """What the run takes as it is, and the margin that is asked for."""
    estimate = result.estimate
    if estimate is None or estimate.capacity_bytes is None:
        return []
    style = {Verdict.FITS: "good", Verdict.TIGHT: "tight"}.get(estimate.verdict, "bad")
    likely, high, capacity = gib(estimate.peak.likely), gib(estimate.peak.high), gib(estimate.capacity_bytes)
    lines: list[Line] = [[("  now: ", ""), (f"{likely} GiB per GPU, {high} to plan for, of {capacity}", style)]]
    margin = result.run.options.margin
    if size := margin.bytes_of(estimate.capacity_bytes):
        lines.append([(f"  margin {margin}: plans have {gib(estimate.capacity_bytes - size)} GiB per GPU", "")])
    for assumption in estimate.assumptions:
        if assumption.startswith("sequence"):
            lines.append([("  assumed: ", "dim"), (assumption, "dim")])
    return lines


def extreme_lines(
    result: RunResult, answers: Iterable[Extreme], plans: Sequence[Plan], start: int, view: View
) -> list[Line]:
    """The answers of ``--maximize`` or ``--minimize`` for one run, each with how to have it written.

    ``plans`` are those of the answers that change something, in their order; the first is number ``start``.
    """
    lines = [*header(result.run, view), *_now(result)]
    numbered = enumerate(plans, start)
    for answer in answers:
        lines += [[], *_answer(answer, result.run.options.margin, view)]
        if answer.fitting is not None:
            lines += _written(*next(numbered), view)
    return lines


def _written(number: int, plan: Plan, view: View) -> list[Line]:
    if plan.by_hand:
        return wrapped([("    by hand: ", "note")], plan.by_hand, view.width, 6)
    text = f"`--diff {number}` shows what it would write, `--apply {number}` writes it"
    return wrapped([("    help: ", "help")], text, view.width, 6)


def _answer(answer: Extreme, margin: Margin, view: View) -> list[Line]:
    best, beyond = answer.best, answer.beyond
    lead: Line = [("  ", ""), (f"{answer.question}: ", "note")]
    if best is None:
        short = f"; {beyond.text} is too much ({_need(beyond, margin)}{_host(beyond)})" if beyond is not None else ""
        return wrapped(lead, f"there is none{short}", view.width, 4)
    time = f"; a step takes {step_time(best.step_time)}" if best.step_time is not None else ""
    lines = wrapped(lead, f"{best.text} ({_need(best, margin)}{_host(best)}{time})", view.width, 4, "good")
    for note in best.notes:
        lines += wrapped([("    training: ", "note")], note, view.width, 6)
    if beyond is not None:
        text = f"{beyond.text}, too much ({_need(beyond, margin)}{_host(beyond)})"
        lines += wrapped([("    next: ", "dim")], text, view.width, 6)
    if answer.remark:
        lines += wrapped([("    ", "")], answer.remark, view.width, 6)
    return lines


def _need(figure: Figure, margin: Margin) -> str:
    """GiB to plan for of what the figure's own GPU has; where they are close, also how close."""
    high, capacity = figure.estimate.peak.high, figure.estimate.capacity_bytes or 0
    limit = capacity - margin.bytes_of(capacity)
    text = f"{high / GIB:.1f} of {limit / GIB:.1f} GiB to plan for"
    left = limit - high
    if abs(left) >= GIB // 10:
        return text
    return f"{text}, {abs(left) / 2**20:.1f} MiB {'left' if left >= 0 else 'too many'}"


def _host(figure: Figure) -> str:
    host, there = figure.estimate.host.peak, figure.estimate.host_capacity_bytes
    if there is None or host <= there:
        return ""
    return f", host memory {gib(host)} of {gib(there)} GiB"
