"""``lintfit explain-oom`` for people and as JSON: the message, where it was, what differs, and the plan."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from lintfit import __version__
from lintfit.findings.questions import Explained
from lintfit.memory.result import Verdict
from lintfit.report import Line, View
from lintfit.report.bars import gib
from lintfit.report.block import block
from lintfit.report.encoding import SCHEMA_VERSION, dumps
from lintfit.report.json import run_json
from lintfit.report.runs import PHASE_WORDS
from lintfit.report.styled import show_blocks, wrapped
from lintfit.sources.logs.model import Death, Log

_PHASES = {**PHASE_WORDS, "resume": "resuming from a checkpoint", "generate": "generation"}
_OF = {
    "gpu": "a GPU ran out of memory",
    "host": "the machine's memory ran out",
    "shared-memory": "/dev/shm ran out",
    "other": "the process was killed",
}


def render(found: Explained, view: View) -> str:
    """The explanation as text."""
    log, death = found.log, found.log.death
    assert death is not None
    head: list[Line] = [[(f"{found.source}:{death.line}", "path"), (f": {_OF[death.of]}", "bad")]]
    head += wrapped([("  ", "dim")], death.text, view.width, 4, "dim")
    for said in _figures(death):
        head += wrapped([("  ", "")], said, view.width, 4)
    head += wrapped([("  ", "")], _where(log), view.width, 4)
    blocks = [head, _why(found, view)]
    for result, one in found.runs:
        lines = block(result, (), view)
        if one is not None and one.in_use is not None:
            said = (
                f"torch's tensors where it died: {gib(one.in_use)} GiB with what it asked for; "
                f"expected {gib(one.predicted)} ({gib(one.low)} to {gib(one.high)})"
            )
            lines += [[], *wrapped([("  ", "note")], said, view.width, 4)]
            if one.over and result.verdict is not Verdict.DOES_NOT_FIT:
                more = f"to plan for what was in use: lintfit fit --margin {one.over / 2**30:.1f}GiB"
                lines += wrapped([("  ", "")], more, view.width, 4)
        blocks.append(lines)
    return show_blocks([each for each in blocks if each], view)


def _why(found: Explained, view: View) -> list[Line]:
    lines: list[Line] = []
    for cause in found.causes:
        lines += wrapped([("  - ", "note")], cause.said, view.width, 4)
        if cause.remedy:
            lines += wrapped([("    → ", "help")], cause.remedy, view.width, 6)
    if not lines and not found.runs:
        lines = wrapped(
            [("  ", "")], "name the run's files behind the log to hold it against what it needs", view.width, 2
        )
    return lines


def _figures(death: Death) -> list[str]:
    """The figures of the message in the order of what a GPU holds."""
    parts = []
    if death.allocated is not None:
        parts.append(f"{gib(death.allocated)} GiB of tensors")
    if death.unused:
        parts.append(f"{gib(death.unused)} held by torch and unused")
    if death.others:
        parts.append(f"{gib(death.others)} of other processes")
    if death.free is not None:
        parts.append(f"{gib(death.free)} free")
    which = f"GPU {death.gpu}" if death.gpu is not None else "the GPU"
    said = [f"{which} of {gib(death.total)} GiB: {', '.join(parts)}"] if death.total is not None and parts else []
    if death.requested is not None:
        said.append(f"it asked for {_size(death.requested)}")
    return said


def _size(size: int) -> str:
    return f"{gib(size)} GiB" if size >= 2**30 else f"{size / 2**20:.0f} MiB"


def _where(log: Log) -> str:
    where = log.where
    step = f", after {log.step} steps" if log.step is not None else ""
    if where.phase is None and not where.component:
        return f"the log has no traceback that says where{step}"
    phase = f"in {_PHASES.get(where.phase, where.phase)}" if where.phase else "somewhere"
    component = f", making {where.component.replace('_', ' ')}" if where.component else ""
    frame = f" ({where.frame})" if where.frame else ""
    return f"{phase}{component}{frame}{step}"


def as_json(found: Explained) -> str:
    """The explanation as one JSON document; memory in bytes."""
    log, death = found.log, found.log.death
    assert death is not None
    runs: list[dict[str, Any]] = []
    for result, one in found.runs:
        held = None if one is None else {**asdict(one), "over": one.over}
        runs.append({**run_json(result), "died_with": held})
    content = {
        "schema_version": SCHEMA_VERSION,
        "lintfit_version": __version__,
        "death": {**asdict(death), "unused": death.unused, "elsewhere": death.elsewhere},
        "where": asdict(log.where),
        "step": log.step,
        "further_messages": log.same,
        "causes": [asdict(cause) for cause in found.causes],
        "runs": runs,
    }
    return dumps(content)
