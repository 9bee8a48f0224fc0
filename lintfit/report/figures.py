"""An estimate as a person reads it: what is needed of what there is, a bar, and its largest parts."""

from __future__ import annotations

from collections.abc import Mapping

from lintfit.memory.result import COMPONENTS, Components, Estimate, Verdict
from lintfit.memory.spec import GIB
from lintfit.report import Line, View
from lintfit.report.bars import CELLS, GLYPHS, bar
from lintfit.report.runs import PHASE_WORDS, before_after, flowed
from lintfit.run.model import Run

_PARTS = 5
"""Parts that are named; the others are the rest."""
_WORTH = 0.03
"""Share of the peak from which a part is named."""
_FRAMEWORK = 0.25
"""Share of the peak from which CUDA, NCCL and the allocator's slack are named and not a part of the rest."""
_REST = "framework"
"""The component that the rest is drawn as."""


def short_gib(size: int) -> str:
    """``136``, ``23.6``, ``5.5``: three figures at most; ``<0.1`` for a little that is not nothing."""
    if 0 < size < 0.05 * GIB:
        return "<0.1"
    return f"{size / GIB:.0f}" if size >= 99.95 * GIB else f"{size / GIB:.1f}"


def span(estimate: Estimate) -> str:
    """``131 to 157``"""
    return f"{short_gib(estimate.peak.low)} to {short_gib(estimate.peak.high)}"


def memory(run: Run, estimate: Estimate, view: View, before: Estimate | None = None) -> list[Line]:
    """``136 GiB needed on every GPU, 23.6 usable (131 to 157) · host 209 of 256 GiB``, the bar, and its parts.

    ``before``: of a run that was mended, the estimate of before, whose bar stands above its own.
    """
    lines = flowed([[(part, "")] for part in _sums(run, estimate)], view.width, "  ", " · ")
    parts = _largest(estimate)
    if before is not None:
        lines += before_after(before, estimate, view)
    else:
        lines.append([("  ", ""), *bar(parts, estimate.capacity_bytes, width=min(CELLS, view.width - 3))])
    return lines + _legend(run, estimate, parts, view)


def host(estimate: Estimate) -> str:
    """``host 209 of 256 GiB, 40 GiB on NVMe``; nothing where the host has nothing of it."""
    there = estimate.host_capacity_bytes
    of = f" of {short_gib(there)}" if there is not None else ""
    parts = [f"host {short_gib(estimate.host.peak)}{of} GiB"] if estimate.host.peak else []
    parts += [f"{short_gib(estimate.host.nvme)} GiB on NVMe"] if estimate.host.nvme else []
    return ", ".join(parts)


def _sums(run: Run, estimate: Estimate) -> list[str]:
    where = "the GPU" if run.spec is not None and run.spec.gpus == 1 and not run.count_open else "every GPU"
    known = " as far as is known" if estimate.capacity_bytes is not None and estimate.verdict is Verdict.UNKNOWN else ""
    needed = f"{short_gib(estimate.peak.likely)} GiB needed on {where}{known}"
    usable = f", {short_gib(estimate.capacity_bytes)} usable" if estimate.capacity_bytes is not None else ""
    return [part for part in (f"{needed}{usable} ({span(estimate)})", host(estimate)) if part]


def _largest(estimate: Estimate) -> Components:
    """The parts at the peak that are worth a word, and all others as one."""
    parts = estimate.peak_moment.components
    total = sum(parts.values()) or 1
    named = sorted((name for name in parts if name != _REST), key=lambda name: -parts[name])[:_PARTS]
    shown = {name: size for name, size in parts.items() if name in named and size / total >= _WORTH}
    return {**shown, _REST: total - sum(shown.values())}


def _legend(run: Run, estimate: Estimate, parts: Components, view: View) -> list[Line]:
    own = estimate.peak_moment.components.get(_REST, 0)
    rest = "framework" if own >= _FRAMEWORK * sum(parts.values()) else "rest"
    entries: list[Line] = []
    for name in COMPONENTS:
        if size := parts.get(name, 0):
            word = rest if name == _REST else _word(run, name)
            entries.append([(GLYPHS[name], name), (f" {word} {_rounded(size)}", "")])
    phase = PHASE_WORDS.get(estimate.peak_moment.phase, estimate.peak_moment.phase)
    if entries:
        entries[-1] = [*entries[-1], (f", at the peak in {phase}", "")]
    return flowed(entries, view.width, "  ", " · ")


def _word(run: Run, name: str) -> str:
    if name == "communication_buffers" and run.spec is not None and run.spec.engine == "ddp":
        return "DDP buckets"
    return name.replace("_", " ")


def _rounded(size: int) -> str:
    """A part to two or three figures: ``26``, ``5.5``."""
    return f"{size / GIB:.0f}" if size >= 9.95 * GIB else short_gib(size)


WORDS: Mapping[Verdict, str] = {
    Verdict.FITS: "fits",
    Verdict.TIGHT: "tight",
    Verdict.DOES_NOT_FIT: "does not fit",
    Verdict.UNKNOWN: "not judged",
}
"""What a report says of a verdict."""
