"""Markdown for a pull request, a job summary or a commit message: memory before and after, what changes, findings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from lintfit.findings.model import Applicability, Finding, Plan, Severity
from lintfit.findings.results import CheckResult, RunResult
from lintfit.memory.result import Estimate, Verdict
from lintfit.report import View, clean, in_cell, shown_path
from lintfit.report.bars import VERDICT_WORDS, gib
from lintfit.report.runs import read_by, step_time, what_runs
from lintfit.report.summary import counts_lines, not_judged_lines

_SPECIAL = re.compile(r"([\\`*\[\]<>|#]|(?<!\w)_|_(?!\w)|&(?=[#\w]))")
"""What Markdown takes for markup, entities (``&commat;`` is an ``@``) too; an underscore within a word is none."""
_REACHES = re.compile(r"@(?=\w)|\\#(?=\d)|\bGH-(?=\d)|:(?=//)|\bwww\.", re.IGNORECASE)
"""What GitHub makes a mention, a link or a reference of, whatever is escaped."""
_TICKS = re.compile(r"`+")


def render(result: CheckResult, view: View) -> str:
    """The summary as GitHub-flavoured Markdown."""
    blocks = [
        "### lintfit",
        *(["\n".join(_memory(result.runs, view))] if any(run.estimate for run in result.runs) else []),
        *(block for run in result.runs if run.plan is not None for block in _plan(run, run.plan)),
        *(_others(run) for run in result.runs if run.alternatives),
        *_fixed(result, view),
        *_findings(result.findings),
        "\n".join(f"- {text(line)}" for line in not_judged_lines(result, view)),
        "\n".join(map(clean, counts_lines(result, view))),
    ]
    return "\n\n".join(block for block in blocks if block) + "\n"


def text(words: str) -> str:
    """Words as Markdown shows them, in one line; a blank of no width parts what would mention somebody or be a link."""
    return _REACHES.sub(r"\g<0>&#8203;", _SPECIAL.sub(r"\\\1", clean(words)))


def code(words: str) -> str:
    """A code span, also for words with backticks in them; a bar in it would end a table's cell."""
    shown = clean(words).replace("|", "\\|")
    ticks = "`" * (1 + max((len(run) for run in _TICKS.findall(shown)), default=0))
    pad = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{ticks}{pad}{shown}{pad}{ticks}"


def fence(lines: str, language: str) -> str:
    """A fenced block, with a fence that its content cannot end."""
    ticks = "`" * max(3, 1 + max((len(run) for run in _TICKS.findall(lines)), default=0))
    end = "" if not lines or lines.endswith("\n") else "\n"
    return f"{ticks}{language}\n{lines}{end}{ticks}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; a head that starts with ``>`` stands above figures and is aligned to the right."""
    names = [name.removeprefix(">") for name in head]
    rule = ["--:" if name.startswith(">") else "---" for name in head]
    return "\n".join(f"| {' | '.join(row)} |" for row in (names, rule, *rows))


def _memory(runs: Sequence[RunResult], view: View) -> Iterator[str]:
    """One row for each run: memory now, and before the fix or after the plan."""
    changed = any(run.before is not None or run.plan is not None for run in runs)
    now = ["before", "after"] if changed else ["memory"]
    head = ["run", "what", *(f">{name}, GiB" for name in now), ">GPU, GiB", "verdict"]
    yield table(head, (_row(run, changed) for run in runs if run.estimate is not None))


def _row(run: RunResult, changed: bool) -> list[str]:
    assert run.estimate is not None
    before, after = run.before or run.estimate, run.plan.estimate if run.plan is not None else run.estimate
    capacity = run.estimate.capacity_bytes
    figures = [_peak(before), _peak(after)] if changed else [_peak(after)]
    words = [VERDICT_WORDS[before.verdict], VERDICT_WORDS[after.verdict]]
    verdict = words[0] if words[0] == words[1] else f"{words[0]} → **{words[1]}**"
    if run.plan is not None:
        verdict += " with the plan"
    elif run.longest is not None:
        upto = "only with" if run.verdict is Verdict.TIGHT else "with"
        verdict += f" {upto} sequences of up to {run.longest} tokens"
    card = gib(capacity) if capacity is not None else "?"
    return [code(run.run.id), text(", ".join(what_runs(run.run))), *figures, card, verdict]


def _peak(estimate: Estimate) -> str:
    return f"{gib(estimate.peak.likely)} ({gib(estimate.peak.low)}–{gib(estimate.peak.high)})"


def _plan(run: RunResult, plan: Plan) -> Iterator[str]:
    named = f": {text(plan.name)}" if plan.name else ""
    yield f"**What makes {code(run.run.id)} fit{named}** ({_how(plan)})"
    if plan.by_hand:
        yield f"Not written by lintfit: {text(plan.by_hand)}."
    yield "\n".join(f"{number}. {text(action.said(shown_path))}" for number, action in enumerate(plan.actions, 1))
    if plan.by_hand:
        made = [(each.creates, each.content) for each in plan.actions if each.creates is not None]
        yield from (f"{code(shown_path(path))}:\n\n{fence(lines, path.suffix[1:])}" for path, lines in made)
    read = [text(read_by(plan.readers))] if plan.readers else []
    yield "\n".join(f"- {sentence}" for sentence in (*map(text, plan.effects), cost(plan), *read))


def cost(plan: Plan) -> str:
    """``a step takes about 1.3 times as long; 12.0 of 256.0 GiB of host memory a node``."""
    estimate = plan.estimate
    parts = [f"a step takes {step_time(plan.relative_step_time)}"]
    if estimate.host.peak:
        of = f" of {gib(estimate.host_capacity_bytes)}" if estimate.host_capacity_bytes is not None else ""
        parts.append(f"{gib(estimate.host.peak)}{of} GiB of host memory a node")
    if estimate.host.nvme:
        parts.append(f"{gib(estimate.host.nvme)} GiB on NVMe")
    return "; ".join(parts)


def _how(plan: Plan) -> str:
    match plan.applicability:
        case Applicability.SAFE:
            return "safe: the training stays the same; `lintfit check --fix` writes it"
        case Applicability.UNSAFE:
            return f"unsafe: {text(plan.fix.why_unsafe)}; `lintfit check --fix --unsafe-fixes` writes it"
        case Applicability.DISPLAY:
            return "by hand"


def _others(run: RunResult) -> str:
    """All kinds of plans, where they were asked for."""
    head = [">#", "plan", ">GiB per GPU", ">to plan for", ">host GiB", ">step", "applied", "changes in the training"]
    rows = (_other(number, plan) for number, plan in enumerate(run.alternatives, 1))
    return f"**Plans for {code(run.run.id)}**, best first\n\n{table(head, rows)}"


def _other(number: int, plan: Plan) -> list[str]:
    estimate = plan.estimate
    host = gib(estimate.host.peak) if estimate.host.peak else "–"
    by_hand = plan.applicability is Applicability.DISPLAY
    how = "by hand" + (f": {text(plan.by_hand)}" if plan.by_hand else "") if by_hand else str(plan.applicability)
    figures = [gib(estimate.peak.likely), gib(estimate.peak.high), host, f"× {plan.relative_step_time:g}"]
    return [str(number), text(plan.name), *figures, how, text("; ".join(plan.effects))]


def _fixed(result: CheckResult, view: View) -> Iterator[str]:
    if not result.fixed:
        return
    yield f"**{'Would fix' if view.diff else 'Fixed'}**"
    yield table(
        ["rule", "change", "files"],
        (
            [code(finding.rule), text(finding.fix.message), ", ".join(_files(finding))]
            for finding in result.fixed
            if finding.fix is not None
        ),
    )


def _files(finding: Finding) -> list[str]:
    edits = finding.fix.edits if finding.fix is not None else ()
    return [code(path) for path in dict.fromkeys(shown_path(edit.path) for edit in edits)]


def _findings(findings: Sequence[Finding]) -> Iterator[str]:
    """Errors and warnings in a table, information folded away beneath it."""
    heavy = [finding for finding in findings if finding.severity is not Severity.INFO]
    light = [finding for finding in findings if finding.severity is Severity.INFO]
    if heavy:
        yield _findings_table(sorted(heavy, key=lambda finding: -finding.severity))
    if light:
        summary = f"{len(light)} {'note' if len(light) == 1 else 'notes'}"
        yield f"<details><summary>{summary}</summary>\n\n{_findings_table(light)}\n\n</details>"


def _findings_table(findings: Sequence[Finding]) -> str:
    return table(
        ["", "place", "rule", "finding"],
        ([str(finding.severity), code(place_of(finding)), code(finding.rule), text(finding.message)]
         for finding in findings),
    )  # fmt: skip


def place_of(finding: Finding) -> str:
    """``train.py:40``."""
    place = finding.place
    line = place.document.position(place.span.start).line
    return f"{shown_path(place.document.path)}:{line}{in_cell(place)}"
