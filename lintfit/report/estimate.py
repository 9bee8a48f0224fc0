"""``lintfit estimate`` for people: what runs, and the memory of every phase of a step as a bar."""

from __future__ import annotations

from collections.abc import Iterable

from lintfit.findings.results import RunResult
from lintfit.memory.result import COMPONENTS, LABELS, Estimate, Moment
from lintfit.memory.spec import Spec
from lintfit.report import Line, View
from lintfit.report.bars import MARK, bar, gib, legend
from lintfit.report.heading import header, heading
from lintfit.report.runs import PHASE_WORDS, flowed, memory_lines
from lintfit.report.styled import show_blocks, wrapped
from lintfit.run.model import Hardware, Run


def render_runs(runs: tuple[RunResult, ...], view: View, explain: bool = False) -> str:
    """The estimates of runs that were read from files, with their formulas where asked for."""
    return show_blocks([run_block(result, view, explain) for result in runs], view)


def run_block(result: RunResult, view: View, explain: bool = False) -> list[Line]:
    """One run with its estimate, or with what has to be known for one."""
    lines = header(result.run, view)
    if result.estimate is None:
        missing = ", ".join(result.run.unknown) or "what the run is"
        return [*lines, *wrapped([("  memory unknown: ", "note")], f"add {missing}", view.width, 4)]
    formulas = _formulas(result.run.spec, result.estimate, view) if explain else []
    return [*lines, *estimate_lines(result.estimate, view, result.run.spec), *formulas]


def render_spec(spec: Spec, estimate: Estimate, view: View, explain: bool = False) -> str:
    """The estimate of one spec, with its formulas where asked for."""
    hardware = Hardware(spec.gpu, spec.gpus, spec.nodes, spec.capacity_bytes, spec.host_memory_bytes)
    run = Run(id=spec.facts.name, documents=(), settings={}, hardware=hardware, facts=spec.facts, spec=spec)
    formulas = _formulas(spec, estimate, view) if explain else []
    return show_blocks([[*heading(run, view), *estimate_lines(estimate, view, spec), *formulas]], view)


def _formulas(spec: Spec | None, estimate: Estimate, view: View) -> list[Line]:
    if spec is None:
        return []
    from lintfit.report.explain import explain_lines

    return [[], *explain_lines(spec, estimate, view)]


def estimate_lines(estimate: Estimate, view: View, spec: Spec | None = None) -> list[Line]:
    """The peak, its components in bytes, the phases on one scale, the host, and everything that was assumed."""
    lines = memory_lines(estimate, view)
    lines += [[], *_table(estimate), [], *_phases(estimate, view)]
    if spec is not None:
        from lintfit.report.host import host_lines

        lines += host_lines(spec, estimate, view)
    if estimate.assumptions or estimate.not_modelled:
        lines.append([])
    for assumption in estimate.assumptions:
        label, said = _labelled(assumption)
        lines += wrapped([(f"  {label}: ", "dim" if label == "assumed" else "note")], said, view.width, 4)
    for what in estimate.not_modelled:
        lines += wrapped([("  not modelled: ", "dim")], what, view.width, 4)
    return lines


def _labelled(line: str) -> tuple[str, str]:
    """A line with the word that it begins with, where that says what it is about; else it is something assumed."""
    label, colon, said = line.partition(": ")
    return (label, said) if colon and label in LABELS else ("assumed", line)


def _table(estimate: Estimate) -> list[Line]:
    lines: list[Line] = []
    total = estimate.peak_moment.total
    for name in COMPONENTS:
        size = estimate.component(name)
        if size:
            share = f"{100 * size / total:3.0f} %"
            lines.append([(f"  {name.replace('_', ' '):<24}", name), (f"{gib(size):>8} GiB  {share}", "")])
    lines.append([(f"  {'together':<24}", "rule"), (f"{gib(total):>8} GiB", "rule")])
    lines.append([(f"  {'torch sees (allocated)':<24}", ""), (f"{gib(estimate.allocated_bytes):>8} GiB", "")])
    return lines


def _phases(estimate: Estimate, view: View) -> list[Line]:
    scale = max(estimate.peak_moment.total, estimate.capacity_bytes or 0)
    best: dict[str, Moment] = {}
    for moment in estimate.moments:
        if moment.phase not in best or moment.total > best[moment.phase].total:
            best[moment.phase] = moment
    wide = max(len(PHASE_WORDS.get(phase, phase)) for phase in best)
    lines: list[Line] = []
    for phase, moment in best.items():
        style = "bad" if estimate.capacity_bytes is not None and moment.total > estimate.capacity_bytes else ""
        drawn = bar(moment.components, estimate.capacity_bytes, scale)
        label = f"  {PHASE_WORDS.get(phase, phase):<{wide}}  "
        lines.append([(label, ""), *drawn, (f" {gib(moment.total)} GiB", style)])
    return [*lines, *_legend(best.values(), estimate.capacity_bytes, view)]


def _legend(moments: Iterable[Moment], capacity: int | None, view: View) -> list[Line]:
    """What the glyphs of all phases stand for, and where the GPU ends."""
    largest: dict[str, int] = {}
    for moment in moments:
        for name, size in moment.components.items():
            largest[name] = max(size, largest.get(name, 0))
    entries: list[Line] = [[(glyph, name), (f" {name.replace('_', ' ')}", "")] for (glyph, name), _ in legend(largest)]
    if capacity is not None:
        entries.append([(MARK, "rule"), (f" {gib(capacity)} GiB, what torch sees of the GPU", "")])
    return flowed(entries, view.width, "  ", "  ")
