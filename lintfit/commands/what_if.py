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
    return tuple(_answered(result, written.get(result.run.id), stated) for result in runs), loaded.errors


def _as_written(paths: Sequence[Path], options: Options) -> dict[str, RunResult]:
    """The runs as their files alone say, by id."""
    from lintfit.commands import check

    origins = {name: origin for name, origin in options.origins.items() if name not in ASKED}
    silent = replace(options, gpus=None, nodes=None, seq_len=None, images=None, origins=origins)
    return {result.run.id: result for result in check.load_runs(paths, silent)[1]}


def _answered(result: RunResult, written: RunResult | None, stated: Mapping[str, Any]) -> WhatIf:
    run = asked(result.run, stated)
    before = written if written is not None and _is_whole(written) else result
    after = result if run is result.run else RunResult.of(judge(run))
    if not _is_whole(before) or after.estimate is None or before.run.spec == after.run.spec:
        return WhatIf(after)
    (spec, was), (other, now) = _counted(before), _counted(after)
    return WhatIf(after, before, effects(spec, other, was, now))


def _counted(result: RunResult) -> tuple[Spec, Estimate]:
    assert result.run.spec is not None and result.estimate is not None
    return result.run.spec, result.estimate


def _is_whole(result: RunResult) -> bool:
    """Whether the run is known well enough to be held against another."""
    return result.estimate is not None and result.run.spec is not None and not result.run.count_open
