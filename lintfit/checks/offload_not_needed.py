"""The rule offload-not-needed: see its page."""

from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.context import Report, RunContext
from lintfit.checks.runs import change, fits, place_of
from lintfit.checks.wording import of_gib
from lintfit.findings import Applicability
from lintfit.memory.result import Estimate

_ATTEMPTS = (
    ("offloading the parameters", {"offload_param": "none"}),
    ("offloading the optimizer", {"offload_optimizer": "none"}),
    ("offloading", {"offload_param": "none", "offload_optimizer": "none"}),
)


def check_run(context: RunContext) -> Iterator[Report]:
    spec = context.run.spec
    if spec is None or context.estimate is None or spec.engine != "deepspeed" or not fits(context.estimate):
        return
    offloaded = {name for name in ("offload_param", "offload_optimizer") if getattr(spec, name) == "cpu"}
    best = None
    for what, changes in _ATTEMPTS:
        if offloaded.issuperset(changes):
            result = context.what_if(**changes)
            if result is not None and fits(result) and (result.headroom or 0) > 0:
                best = what, changes, result
    if best is not None:
        yield _report(context, *best)


def _report(context: RunContext, what: str, changes: dict[str, str], result: Estimate) -> Report:
    assert result.capacity_bytes is not None
    both = "is" if len(changes) == 1 else "both is"
    return Report(
        place_of(context.run, *changes),
        f"{what} {both} not needed: without it the peak is {of_gib(result.peak.likely, result.capacity_bytes)}, "
        "and every step is spared the way over the bus",
        fix=change(context.run, "keep it on the GPU", Applicability.UNSAFE, changes),
    )
