"""Memory as bars: components stacked, the GPU's capacity marked, what is beyond it in red."""

from __future__ import annotations

from collections.abc import Mapping

from lintfit.memory.result import COMPONENTS, Components, Verdict
from lintfit.report import Line

GIB = 2**30
CELLS = 60

GLYPHS: Mapping[str, str] = {
    "parameters": "█",
    "gradients": "▓",
    "optimizer_states": "▒",
    "master_weights": "░",
    "activations": "▚",
    "logits": "▞",
    "communication_buffers": "▄",
    "temporaries": "▀",
    "framework": "▌",
}
MARK = "┃"
FREE = "·"

VERDICT_STYLES = {
    Verdict.FITS: "good",
    Verdict.TIGHT: "tight",
    Verdict.DOES_NOT_FIT: "bad",
    Verdict.UNKNOWN: "note",
}

VERDICT_WORDS = {
    Verdict.FITS: "fits",
    Verdict.TIGHT: "tight",
    Verdict.DOES_NOT_FIT: "does not fit",
    Verdict.UNKNOWN: "unknown",
}


def gib(size: int) -> str:
    """``23.7``: GiB with one decimal; ``<0.1`` for a little that is not nothing."""
    return "<0.1" if 0 < size < 0.05 * GIB else f"{size / GIB:.1f}"


def bar(components: Components, capacity: int | None, scale: int | None = None, width: int = CELLS) -> Line:
    """A bar of ``width`` cells for ``scale`` bytes (default: the larger of the sum and the capacity)."""
    total = sum(components.values())
    scale = max(scale or 0, total, capacity or 0, 1)
    mark = None if capacity is None else min(round(capacity / scale * width), width)
    line: Line = []
    cell = 0
    reached = 0
    for name in _ordered(components):
        reached += components[name]
        end = min(round(reached / scale * width), width)
        glyph = GLYPHS.get(name, "?")
        inside = end if mark is None else min(end, max(mark, cell))
        if inside > cell:
            line.append((glyph * (inside - cell), name))
        if mark is not None and cell <= mark < end:
            line.append((MARK, "rule"))
        if end > inside:
            line.append((glyph * (end - inside), "over"))
        cell = end
    if mark is not None and cell <= mark:
        line += [(FREE * (mark - cell), "dim"), (MARK, "rule")]
    return line


def legend(components: Components) -> list[Line]:
    """What each glyph stands for, in GiB; what would show as nothing is left out."""
    entries: list[Line] = []
    for name in _ordered(components):
        glyph = GLYPHS.get(name, "?")
        if components[name] >= 0.05 * GIB:
            entries.append([(glyph, name), (f" {name.replace('_', ' ')} {gib(components[name])}", "")])
    return entries


def _ordered(components: Components) -> list[str]:
    known = [name for name in COMPONENTS if name in components]
    return [*known, *(name for name in components if name not in known)]
