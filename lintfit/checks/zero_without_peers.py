from __future__ import annotations

import re
from collections.abc import Iterator

from lintfit.checks.helpers.batches import triple
from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.runs import STATES, is_sure, most, place_of, stated_at
from lintfit.checks.helpers.wording import gib
from lintfit.documents.lines import line_end, line_start
from lintfit.documents.model import Kind
from lintfit.findings.model import Severity
from lintfit.memory.result import Verdict
from lintfit.run.model import Run
from lintfit.settings.model import Place
from lintfit.verdict.capped import exact_length

_WORTH_NAMING = 2**28
"""Bytes of buffers below which a message does not name them."""
_WORTH_LEAVING = 2**30
"""Bytes of buffers from which an engine that shards nothing costs something where nobody knows whether the run fits."""


def check_run(context: RunContext) -> Iterator[Report]:
    run = context.run
    stage, gpus = run.value("zero_stage"), run.value("gpus")
    if run.value("engine") != "deepspeed" or stage not in (1, 2, 3) or gpus != 1:
        return
    if run.script is not None and not run.script.facts.trains:
        return  # it prepares data, or what trains is out of sight
    if _is_not_sure(run):
        return
    if any(run.settings[name].value not in ("none", None) for name in _OFFLOADS if name in run.settings):
        return
    if run.all_gpus is not None or _is_for_several(run):
        return  # only a file's name says one; batch-triple-inconsistent speaks of the number
    short = context.verdict in (Verdict.TIGHT, Verdict.DOES_NOT_FIT)
    costs = short or _extra(context) >= _WORTH_LEAVING
    if context.verdict is Verdict.UNKNOWN and _is_the_scripts_own(run) and not costs:
        return
    stated = stated_at(run, "gpus")
    if stated is not None and _is_fallback(stated):
        return
    yield Report(
        stated or (run.launch.place if run.launch is not None else place_of(run, "zero_stage")),
        f"ZeRO-{stage} with one process shards nothing: weights, gradients and optimizer states stay whole on its GPU"
        f"{_buffers(context)}",
        severity=Severity.WARNING if _would_help(context) and not _is_tried_out(run, stated) else Severity.INFO,
        help="start one process per GPU, offload the optimizer, or train without DeepSpeed",
    )


def _would_help(context: RunContext) -> bool:
    """Whether what does not fit, however long its samples are, would be less in shards by half of what is too much:
    adapters have small gradients and states, and where it is logits that have no room, shards give none of it."""
    estimate, run, stage = context.estimate, context.run, context.run.value("zero_stage")
    if context.verdict is not Verdict.DOES_NOT_FIT or estimate is None or estimate.capacity_bytes is None:
        return False
    if run.value("method") != "full" and stage != 3:
        return False  # each process has the whole weights all the same
    shards = sum(estimate.component(name) for name in STATES if name != "parameters" or stage == 3)
    least = context.at_short if not exact_length(run) and context.at_short is not None else estimate
    return is_sure(context) and 2 * shards >= least.peak.likely - estimate.capacity_bytes


def _is_not_sure(run: Run) -> bool:
    """Whether a script makes DeepSpeed's engine under a condition that nobody can work out (``if cfg.use_deepspeed:``),
    and so may train without it."""
    if run.script is None or run.script.uses_trainer:
        return False
    made = run.script.facts.initialize
    return made is not None and made.taken is None


def _is_for_several(run: Run) -> bool:
    """Whether the batch sizes of the config come out on more processes than one, so that it does not start on one."""
    root = run.deepspeed.document.root if run.deepspeed is not None else None
    sizes = triple(root) if root is not None else None
    return sizes is not None and sizes[0] > sizes[1] * sizes[2]


def _is_tried_out(run: Run, stated: Place | None) -> bool:
    """Whether the launch, or what stands above the number, says that it is for debugging."""
    places = [each for each in (stated, run.launch.place if run.launch is not None else None) if each is not None]
    return any(_DEBUG.search(_with_line_above(each)) for each in places)


_DEBUG = re.compile(r"(?i)debug")


def _with_line_above(place: Place) -> str:
    text = place.document.text
    above = line_start(text, max(line_start(text, place.span.start) - 1, 0))
    return f"{place.document.path.name}\n{text[above : line_end(text, place.span.end)]}"


def _is_fallback(place: Place) -> bool:
    """Whether a shell falls back on the number where the cluster sets no variable (``${GPUS:-1}``)."""
    text, span = place.document.text, place.span
    line = text[line_start(text, span.start) : line_end(text, span.end)]
    return place.document.kind is Kind.SHELL and re.search(r"\$\{\w+:?-", line) is not None


_OFFLOADS = ("offload_optimizer", "offload_param")


def _is_the_scripts_own(run: Run) -> bool:
    """Whether plain ``python`` starts a script that calls DeepSpeed's engine itself: its loop is written for it."""
    launch, script = run.launch, run.script
    if launch is None or launch.launcher != "python" or script is None:
        return False
    return script.facts.initialize is not None and script.facts.trainer is None


def _extra(context: RunContext) -> int:
    """Bytes of ZeRO's buffers, as far as they are known."""
    return most(context.estimate, "communication_buffers") if context.estimate is not None else 0


def _buffers(context: RunContext) -> str:
    """What ZeRO's buffers take on top, where that is worth a word."""
    size = _extra(context)
    return f", and {gib(size)} of buffers come on top" if size >= _WORTH_NAMING else ""
