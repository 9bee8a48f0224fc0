"""From a run to its verdict: the estimate, and what of it may be said with what is known."""

from __future__ import annotations

from dataclasses import replace

from lintfit.memory import estimate
from lintfit.memory.result import Estimate, Verdict
from lintfit.memory.spec import Spec
from lintfit.results import RunResult
from lintfit.run.model import Run
from lintfit.run.spec import FAVOURABLE

SHORT: int = FAVOURABLE["seq_len"]
"""Tokens of a sequence that is short: a run that does not fit even with these does not fit."""


def judge(run: Run) -> RunResult:
    """The run with its estimate and verdict. What is only known at best cannot be said to fit.

    The estimate's verdict is the card's; the run's is that of the card and the host.
    """
    if run.spec is None:
        return RunResult(run)
    result = estimate(run.spec)
    verdict = result.verdict
    if run.doubtful:
        result = _at_best(run, result)
        if verdict is not Verdict.DOES_NOT_FIT:
            verdict = Verdict.UNKNOWN
    if run.hardware.gpus is None and run.spec.engine != "single" and verdict is not Verdict.FITS:
        verdict = Verdict.UNKNOWN
    if verdict in (Verdict.DOES_NOT_FIT, Verdict.TIGHT) and _decided_by_length(run.spec, verdict):
        verdict = Verdict.UNKNOWN
    if run.unseen_flags:
        verdict = Verdict.UNKNOWN
    result = replace(result, verdict=verdict)
    if verdict in (Verdict.FITS, Verdict.TIGHT) and _host_short(run, result):
        verdict = Verdict.DOES_NOT_FIT
    return RunResult(run, result, verdict)


def _host_short(run: Run, result: Estimate) -> bool:
    """Whether the host runs out; an offload that is only guessed counts for nothing."""
    guessed = {"offload_optimizer", "offload_param"} & set(run.doubtful)
    return not guessed and result.host_capacity_bytes is not None and result.host.peak > result.host_capacity_bytes


def _decided_by_length(spec: Spec, verdict: Verdict) -> bool:
    """Whether nobody states how long the sequences are, and short ones would do better: then only they decide."""
    if "seq_len" in spec.stated or spec.seq_len <= SHORT:
        return False
    return estimate(replace(spec, seq_len=SHORT)).verdict is not verdict


def _at_best(run: Run, result: Estimate) -> Estimate:
    lines = tuple(f"{name} is not known; taken is what needs least memory" for name in run.doubtful)
    return replace(result, assumptions=(*result.assumptions, *lines))
