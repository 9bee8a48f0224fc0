"""``lintfit estimate PATHS --zero-stage 3``: the runs of some files as they are, and with other settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lintfit.findings.questions import WhatIf
from lintfit.findings.results import RunResult
from lintfit.frozen import replace
from lintfit.memory.result import Estimate
from lintfit.memory.spec import Spec
from lintfit.run.model import Run
from lintfit.run.what_if import asked
from lintfit.verdict.effects import effects
from lintfit.verdict.judge import judge

if TYPE_CHECKING:
    from lintfit.options.model import Options

ASKED = ("gpus", "nodes", "seq_len", "images")
"""Flags of the hardware that are a question beside files: what these say themselves is the run before."""


def load(
    paths: Sequence[Path], options: Options, stated: Mapping[str, Any]
) -> tuple[tuple[WhatIf, ...], tuple[str, ...]]:
    """Every run with its question answered, and what could not be read.

    ``stated``: keys of a spec. Raises LintfitError for values that no run can have.
    """
    from lintfit.commands import check

    loaded, runs = check.load_runs(paths, replace(options, what_if=True))
    written = {result.run.id: result for result in runs}
    if any(getattr(options, name) is not None for name in ASKED):
        written = _as_written(paths, options)
    hardware = {name: getattr(options, name) for name in ASKED if getattr(options, name) is not None}
    return tuple(_answered(each, written.get(each.run.id), stated, hardware) for each in runs), loaded.errors


def _as_written(paths: Sequence[Path], options: Options) -> dict[str, RunResult]:
    """The runs as their files alone say, by id."""
    from lintfit.commands import check

    origins = {name: origin for name, origin in options.origins.items() if name not in ASKED}
    silent = replace(options, gpus=None, nodes=None, seq_len=None, images=None, origins=origins)
    return {result.run.id: result for result in check.load_runs(paths, silent)[1]}


def _answered(
    result: RunResult, written: RunResult | None, stated: Mapping[str, Any], hardware: Mapping[str, Any]
) -> WhatIf:
    before = written if written is not None and _is_whole(written) and _as_open(written, result) else result
    known = _for_both(before.run, {**hardware, **stated})
    if known:
        before = RunResult.of(judge(asked(before.run, known)))
    if result.run.count_open and before.run.count_open:
        result, before = _counted_alike(result, before)
    run = asked(result.run, stated)
    after = result if run is result.run else RunResult.of(judge(run))
    if not _is_whole(before) or after.estimate is None or before.run.spec == after.run.spec:
        return WhatIf(after)
    (spec, was), (other, now) = _counted(before), _counted(after)
    return WhatIf(after, before, effects(spec, other, was, now))


_SAMPLES = ("micro_batch_size", "seq_len", "images")
"""Settings that say what one micro-batch is."""


def _for_both(run: Run, flags: Mapping[str, Any]) -> dict[str, Any]:
    """What flags say of a micro-batch that the files do not: no further question, but what both runs have."""
    found = {name: flags[name] for name in _SAMPLES if name in flags and _is_open(run, name)}
    return found if len(found) < len(flags) else {}


def _is_open(run: Run, name: str) -> bool:
    setting = run.settings.get(name)
    return setting is None or not setting.known or setting.provenance.kind == "assumed"


def _counted_alike(result: RunResult, before: RunResult) -> tuple[RunResult, RunResult]:
    """Both with as many GPUs as the run before is shown with, where nobody says how many there are."""
    if before.run.spec is None:
        return result, before
    gpus = before.run.spec.gpus
    return _with_gpus(result, gpus), _with_gpus(before, gpus)


def _with_gpus(result: RunResult, gpus: int) -> RunResult:
    if result.run.spec is None:
        return result
    hardware = replace(result.run.hardware, gpus=gpus)
    run = replace(result.run, hardware=hardware, spec=replace(result.run.spec, gpus=gpus))
    return RunResult.of(judge(run))


def _counted(result: RunResult) -> tuple[Spec, Estimate]:
    assert result.run.spec is not None and result.estimate is not None
    return result.run.spec, result.estimate


def _as_open(written: RunResult, result: RunResult) -> bool:
    """Whether the number of GPUs is no more open than with the flags, which would only say how many there are."""
    return result.run.count_open or not written.run.count_open


def _is_whole(result: RunResult) -> bool:
    """Whether the run is known well enough to be held against another."""
    return result.estimate is not None and result.run.spec is not None
