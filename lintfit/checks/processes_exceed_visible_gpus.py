"""The rule processes-exceed-visible-gpus: see its page."""

from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.context import Report, RunContext
from lintfit.checks.runs import place_of
from lintfit.checks.wording import plural
from lintfit.run.model import Run

_ENVIRONMENT = "CUDA_VISIBLE_DEVICES"


def check_run(context: RunContext) -> Iterator[Report]:
    run = context.run
    visible = _visible(run)
    gpus = run.settings.get("gpus")
    if visible is None or gpus is None or not gpus.known or run.hardware.nodes != 1:
        return
    if gpus.provenance.place is None or gpus.value <= visible:
        return
    yield Report(
        place_of(run, "gpus"),
        f"{f'{gpus.value} processes'}, but {_ENVIRONMENT} shows {plural(visible, 'GPU')}: "
        f'rank {visible} stops with "CUDA error: invalid device ordinal"',
        help=f"start {visible} processes, and raise the accumulation if the batch is to stay; or show more GPUs",
    )


def _visible(run: Run) -> int | None:
    """How many GPUs the launch line shows, None where it does not say or where the launcher does not listen."""
    if run.launch is None or run.launch.launcher == "deepspeed":
        return None  # deepspeed takes the variable for --include, or drops it when --num_gpus is given
    value = run.launch.environment.get(_ENVIRONMENT)
    if value is None or "$" in value:
        return None
    devices = [device for device in value.split(",") if device.strip()]
    return len(devices) if devices else None
