"""``lintfit estimate --explain``: every component's formula with the numbers in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lintfit.memory.explain import Explained, Term, at, elsewhere, host
from lintfit.memory.explain.term import amount
from lintfit.memory.result import Estimate, Moment
from lintfit.memory.spec import Spec
from lintfit.report import Line, View
from lintfit.report.runs import PHASE_WORDS
from lintfit.report.styled import wrapped


def explain_lines(spec: Spec, estimate: Estimate, view: View) -> list[Line]:
    """The components at the peak, those that are larger at another moment, and the host memory."""
    peak = estimate.peak_moment
    lines: list[Line] = [[("  where the bytes come from, at the peak", "rule"), (f" ({_place(peak)})", "")]]
    for part in at(spec, estimate, peak):
        lines += _component(part.component, part.size, part.terms, view)
    others = elsewhere(spec, estimate)
    if others:
        lines += [[], [("  larger at another moment", "rule")]]
    for part in others:
        lines += _component(part.component, part.size, part.terms, view, f", {_place(part.moment)}")
    terms = host(spec, estimate)
    if terms:
        lines += [[], [("  host memory of a node", "rule"), (f" {amount(estimate.host.peak)}", "")]]
        lines += _terms(terms, view)
    return lines


def _place(moment: Moment) -> str:
    """The moment in words that a reader knows."""
    words = PHASE_WORDS.get(moment.phase, moment.phase)
    return words if moment.name in ("optimizer step", "evaluation") else str(moment.name)


def _component(name: str, size: int, terms: Sequence[Term], view: View, where: str = "") -> list[Line]:
    return [[(f"  {name.replace('_', ' ')}", name), (f" {amount(size)}{where}", "")], *_terms(terms, view)]


def _terms(terms: Sequence[Term], view: View) -> list[Line]:
    lines: list[Line] = []
    for item in terms:
        lines += wrapped([("    ", "")], item.line, view.width, 8)
    return lines


def explanation_json(spec: Spec, estimate: Estimate) -> dict[str, Any]:
    """The same as plain values: bytes, formula, meaning and source of every term."""
    peak = estimate.peak_moment
    return {
        "peak": [_part(part) for part in at(spec, estimate, peak)],
        "elsewhere": [_part(part) for part in elsewhere(spec, estimate)],
        "host": [_term(item) for item in host(spec, estimate)],
    }


def _part(part: Explained) -> dict[str, Any]:
    return {
        "component": part.component,
        "phase": part.moment.phase,
        "moment": part.moment.name,
        "bytes": part.size,
        "terms": [_term(item) for item in part.terms],
    }


def _term(item: Term) -> dict[str, Any]:
    return {"bytes": item.size, "formula": item.formula, "what": item.what, "source": item.source}
