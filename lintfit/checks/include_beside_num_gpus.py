from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.fixes import related

_FILTERS = ("include", "exclude", "i", "e")
_COUNTS = ("num_gpus", "num_nodes")


def check_run(context: RunContext) -> Iterator[Report]:
    launch = context.run.launch
    if launch is None or launch.launcher != "deepspeed":
        return
    flags = {flag.name: flag for flag in launch.launcher_flags}
    named = next((flags[name] for name in _FILTERS if name in flags), None)
    counted = next((flags[name] for name in _COUNTS if name in flags), None)
    if named is None or counted is None or not _is_count(counted.value):
        return
    yield Report(
        named.place,
        f"--{named.name} beside --{counted.name}: deepspeed stops with ValueError "
        "(Cannot specify num_nodes/gpus with include/exclude)",
        related=related(counted.place, "the number of them"),
        help=f"leave --{counted.name} out: --{named.name} says which GPUs there are",
    )


def _is_count(value: str | None) -> bool:
    """Whether a number is stated: -1, the default, is none."""
    return value is not None and not value.strip().startswith("-")
