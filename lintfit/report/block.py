"""One run as a block: its verdict, what it is, its memory, why it does not fit, what would make it, and what else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, takewhile
from pathlib import Path, PurePosixPath

from lintfit.findings.model import Finding, Plan, Rejected
from lintfit.findings.results import RunResult
from lintfit.memory.result import Estimate, Verdict
from lintfit.memory.spec import GIB
from lintfit.report import Line, View, shown_path
from lintfit.report.bars import VERDICT_STYLES
from lintfit.report.figures import WORDS, host, memory, short_gib, span
from lintfit.report.folding import folded, not_known
from lintfit.report.heading import heading, run_words
from lintfit.report.rows import LINES, WHOLE, Row, Shown, cause_row, finding_row, reason_row, row_lines
from lintfit.report.runs import by_count, read_by, step_time
from lintfit.report.styled import cells, to_write, wrapped
from lintfit.settings.model import in_words
from lintfit.verdict.would_fit import WouldFit

_COMMANDS = {"safe": "lintfit check --fix", "unsafe": "lintfit check --fix --unsafe-fixes", "display": "by hand"}
_GAP = 3
_FEW = 4
"""Findings of a run that stands alone which are told whole."""
_REJECTED = 2
"""Plans that do not suffice which a block names."""


def block(result: RunResult, findings: Sequence[Finding], view: View, compact: bool = False) -> list[Line]:
    """The run with its findings, each cause once; ``compact``, one of several, leaves no lines empty."""
    open_ways = not_known(result, findings)
    told = [finding for _, finding in open_ways if finding is not None]
    parts = folded(result, [finding for finding in findings if finding not in told])
    base = _base(result)
    shown = _below(base)
    most = WHOLE if not compact and len(parts.others) + len(parts.causes) <= _FEW else LINES
    sections = [
        [_headline(result), *heading(result.run, view, compact)],
        _memory(result, view),
        _section("Not known", [reason_row(reason, finding, shown) for reason, finding in open_ways], view),
        _section("Why", [cause_row(each, shown) for each in parts.causes], view),
        _plan(result, base, compact, view) or _no_plan(result, parts.verdicts, view),
        _section("Also", [finding_row(each, shown) for each in parts.others], view, most),
    ]
    if compact:
        return [line for section in sections for line in section]
    return [line for section in sections if section for line in [*section, []]][:-1]


def in_short(result: RunResult, view: View, others: Sequence[str] = ()) -> list[Line]:
    """A run in a line, below it what decides a tight one or where one without a GPU would fit; nothing of one that has
    no verdict otherwise. ``others``: lines of the same file whose launches come to the same."""
    if result.is_unknown and not result.would_fit:
        return []
    return [*_short_line(result, view, others), *_undecided(result, view), *_plan_in_short(result, view)]


def _plan_in_short(result: RunResult, view: View) -> list[Line]:
    """``Plan: 17.2 GiB, fits: turn on gradient checkpointing; lower the micro-batch from 8 to 2``"""
    if result.plan is None:
        return []
    shown = _below(_base(result))
    steps = "; ".join(action.said(shown) for action in result.plan.actions)
    head = f"Plan: {short_gib(result.plan.estimate.peak.likely)} GiB, {WORDS[result.plan.estimate.verdict]}: "
    return wrapped([("  ", ""), (head, "note")], steps, view.width, 4)


def _undecided(result: RunResult, view: View) -> list[Line]:
    lines: list[Line] = []
    if result.estimate is not None:
        of_host = [each.said() for each in result.spread if each.of_host]
        of_gpu = [each.said() for each in result.spread if not each.of_host]
        for what, said in ((f"range {span(result.estimate)}: ", of_gpu), (f"{host(result.estimate)}: ", of_host)):
            lines += wrapped([("  ", ""), (what, "note")], "; ".join(said), view.width, 4) if said else []
    if result.would_fit:
        lines += wrapped([("  ", "")], f"fits on {where_it_fits(result.would_fit)}", view.width, 4)
    return lines


def _short_line(result: RunResult, view: View, others: Sequence[str]) -> list[Line]:
    """``run.sh:3, :9: fits, 14.9 of 23.6 GiB (13.0 to 17.1) · Llama-3-8B · …``"""
    (_, *line) = _headline(result)
    line = [(", :".join([result.run.id, *others]), "path"), *line]
    estimate = result.estimate
    if estimate is not None:
        of = f" of {short_gib(estimate.capacity_bytes)}" if estimate.capacity_bytes is not None else ""
        line = [*line, (f", {short_gib(estimate.peak.likely)}{of} GiB ({span(estimate)})", "")]
    used = sum(cells(text) for text, _ in line)
    if used > view.width:
        return wrapped(line[:2], "".join(text for text, _ in line[2:]), view.width, 4, line[2][1])
    for word in filter(None, run_words(result.run)):
        used += 3 + cells(word)
        if used > view.width:
            break
        line.append((f" · {word}", ""))
    return [line]


def _headline(result: RunResult) -> Line:
    """``run.sh:3: does not fit``, with what the verdict holds for."""
    word, style = WORDS[result.verdict], VERDICT_STYLES[result.verdict]
    estimate = result.estimate
    if estimate is not None and estimate.capacity_bytes is None:
        word = "no GPU known"
    more = ""
    if result.verdict is Verdict.DOES_NOT_FIT and result.run.doubtful:
        more = f", whatever {in_words(result.run.doubtful)} may be"
    elif result.longest is not None and result.verdict is Verdict.TIGHT:
        more = f", and does not fit with samples of more than {result.longest} tokens"
    elif result.longest is not None:
        more = f" with sequences of up to {result.longest} tokens"
    return [(result.run.id, "path"), (": ", ""), (f"{word}{more}", style)]


def _base(result: RunResult) -> PurePosixPath:
    """The folder that all documents of a run are in: its block names files from there."""
    folders = [PurePosixPath(shown_path(document.path)).parent.parts for document in result.run.documents]
    levels = takewhile(lambda level: len(set(level)) == 1, zip(*folders, strict=False))
    base = PurePosixPath(*(level[0] for level in levels))
    return base if base.name != ".." else PurePosixPath()


def _below(base: PurePosixPath) -> Shown:
    def shown(path: Path) -> str:
        whole = PurePosixPath(shown_path(path))
        return str(whole.relative_to(base) if whole.is_relative_to(base) else whole)

    return shown


def _section(title: str, rows: Sequence[Row], view: View, most: int = LINES) -> list[Line]:
    return [[("  ", ""), (title, "note")], *row_lines(rows, view, 4, most)] if rows else []


def _memory(result: RunResult, view: View) -> list[Line]:
    estimate = result.estimate
    if estimate is None:
        return []
    lines = memory(result.run, estimate, view, result.before)
    if result.scaling is not None:
        lines += by_count(result.scaling, view)
    return lines + _undecided(result, view)


def _plan(result: RunResult, base: PurePosixPath, compact: bool, view: View) -> list[Line]:
    """What makes the run fit, step by step, and what would not do; of one of several not where the other plans are."""
    plan = result.plan
    if plan is None:
        return []
    after = plan.estimate
    head = f"{short_gib(after.peak.likely)} GiB, {WORDS[after.verdict]}; a step takes {_time(plan)}"
    lines = _headed("Plan: ", head, _COMMANDS[str(plan.applicability)], view)
    for number, action in enumerate(plan.actions, 1):
        lines += wrapped([(f"    {number}. ", "added")], action.said(_below(base)), view.width, 7)
        lines += to_write(plan, action, 7)
    if remarks := list(_remarks(plan, result.estimate, compact=compact)):
        lines += wrapped([("    ", "")], " ".join(remarks), view.width, 4)
    further = _rejected(plan.rejected)
    if not compact:
        further.append(f"Other plans: {_command('lintfit fit', base)}")
    return lines + (wrapped([("    ", "")], " ".join(further), view.width, 4) if further else [])


def _time(plan: Plan) -> str:
    return step_time(plan.relative_step_time).removesuffix(" as before")


def where_it_fits(would_fit: Sequence[WouldFit], smaller: bool = True) -> str:
    """``one 80 GB GPU; on 48 GB with gradient checkpointing; not on 24 GB``; ``smaller``: also on which not"""
    # Of those that need the same, the smallest says it.
    fitting = list({(each.gpus, each.name): each for each in would_fit if each.fits}.values())
    if not fitting:
        return f"no usual GPU (up to {_gb(would_fit[0])})"
    count = fitting[0].gpus
    parts = [f"one {_gb(fitting[0])} GPU" if count == 1 else f"{count} GPUs of {_gb(fitting[0])}"]
    parts += [f"on {'' if each.gpus == count else f'{each.gpus} of '}{_gb(each)}" for each in fitting[1:]]
    said = [f"{part}{f' with {each.name}' if each.name else ''}" for part, each in zip(parts, fitting, strict=True)]
    return "; ".join([*said, *(f"not on {_gb(each)}" for each in would_fit if smaller and not each.fits)])


def _gb(each: WouldFit) -> str:
    return f"{each.gpu.vendor_gb:g} GB"


def _headed(title: str, text: str, command: str, view: View) -> list[Line]:
    """A heading with what to type at its right end, or below it where there is no room."""
    lines = wrapped([("  ", ""), (title, "good")], text, view.width, 4)
    room = view.width - sum(cells(part) for part, _ in lines[-1]) - cells(command)
    if len(lines) == 1 and room >= _GAP:
        return [[*lines[0], (" " * room, ""), (command, "help")]]
    return [*lines, [("    ", ""), (command, "help")]]


_MUCH = 128 * GIB
"""Host memory that not every machine has."""


def _remarks(plan: Plan, now: Estimate | None, *, compact: bool) -> Iterator[str]:
    """What else a plan does: to the host and the training (beside the run as it is ``now``), to other runs; and why
    lintfit does not write it. ``compact``: of the host only what is much, and nothing of the training."""
    after = plan.estimate
    if now is not None and (after.host.nvme or after.host.peak > max(now.host.peak, _MUCH * compact)):
        yield f"Then {host(after)}."
    if now is not None and not compact:
        yield from (f"{effect[0].upper()}{effect[1:]}." for effect in plan.effects)
    if plan.by_hand:
        yield f"By hand: {plan.by_hand}."
    elif str(plan.applicability) == "unsafe" and (plan.fix.caution or not plan.effects):
        yield f"Unsafe: {plan.fix.why_unsafe}."
    if plan.readers:
        yield f"{read_by(plan.readers)}."


def _rejected(rejected: Sequence[Rejected]) -> list[str]:
    """``ZeRO-2 would not do (31.9 GiB).``"""
    said = (f"{each.description} {'may do' if each.why else 'would not do'} ({_why_not(each)})." for each in rejected)
    return list(islice(said, _REJECTED))


def _why_not(rejected: Rejected) -> str:
    estimate = rejected.estimate
    if estimate.host_is_short:
        return host(estimate)
    if estimate.verdict is not Verdict.TIGHT:
        return f"{short_gib(estimate.peak.likely)} GiB"
    if not rejected.why:
        return f"{short_gib(estimate.peak.likely)} GiB, too close"
    return f"{short_gib(estimate.peak.likely)} GiB, up to {short_gib(estimate.peak.high)}: {rejected.why}"


def _no_plan(result: RunResult, verdicts: Sequence[Finding], view: View) -> list[Line]:
    """What was tried and what is missing, or what a plan needs to know."""
    if open_still := _not_counted(result):
        tried = [
            f"{each.description} takes {short_gib(each.estimate.peak.likely)} GiB at least." for each in result.rejected
        ]
        text = " ".join([f"{open_still}.", *islice(tried, _REJECTED)])
        return wrapped([("  ", ""), ("No plan can be confirmed: ", "bad")], text, view.width, 4)
    words = [*_rejected(result.rejected), *([f"Missing: {result.shortfall}."] if result.shortfall else [])]
    if words:
        return wrapped([("  ", ""), ("No plan fits: ", "bad")], " ".join(words), view.width, 4)
    advice = next((each.help for each in verdicts if each.rule == "does-not-fit"), "")
    return wrapped([("  ", ""), ("Plan: ", "note")], advice, view.width, 4) if advice else []


def _not_counted(result: RunResult) -> str:
    """What of the run is in no estimate, so that it is a lower bound: no change of settings surely fits then."""
    parts = [f"{in_words(result.run.doubtful)} {'is' if len(result.run.doubtful) == 1 else 'are'} not known"]
    unmodelled = result.estimate.not_modelled if result.estimate is not None else ()
    return "; ".join([*(parts if result.run.doubtful else []), *(f"not modelled: {each}" for each in unmodelled)])


def _command(command: str, base: PurePosixPath) -> str:
    return f"{command} {base}" if base.parts else command
