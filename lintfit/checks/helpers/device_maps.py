"""A model that ``device_map`` spreads over the GPUs in each of several processes: the trainer refuses to train it."""

from __future__ import annotations

from lintfit.checks.helpers.script_calls import knows_deepspeed, trained_load
from lintfit.run.loading import SPREADS
from lintfit.run.model import Run
from lintfit.settings.model import UNKNOWN
from lintfit.sources.script.model import Argument, Call


def refused_map(run: Run) -> tuple[int, Call, Argument] | None:
    """The ranks, each of which spreads its model over all GPUs, the load and its map: the trainer stops with ValueError
    as it prepares the model (accelerate 1.15 ``Accelerator.prepare_model``), before any forward or backward."""
    ranks = _started(run)
    if run.script is None or ranks is None or ranks < 2:
        return None
    if run.script.sets_visible_gpus:
        return None  # a map of one GPU is none to accelerate (1.15 ``Accelerator.verify_device_map``)
    facts = run.script.facts
    if facts.trainer is None and facts.initialize is None:
        return None
    load = trained_load(run.script)
    argument = load.argument("device_map") if load is not None and load.taken is True else None
    if load is None or argument is None or _stops_earlier(run, load):
        return None
    spreads = isinstance(argument.value, str) and argument.value in SPREADS
    return (ranks, load, argument) if spreads else None


def _started(run: Run) -> int | None:
    """How many ranks a launcher starts; None where only lintfit's own options speak of GPUs, and the launch does not
    start one for each that there is."""
    gpus = run.settings.get("gpus")
    if gpus is None or not isinstance(gpus.value, int) or gpus.provenance.kind == "assumed":
        return None
    if gpus.provenance.kind == "option" and not any(
        beaten.value is UNKNOWN and beaten.provenance.kind == "file" for beaten in gpus.overrode
    ):
        return None
    return gpus.value if run.launch is not None or run.accelerate is not None else None


def _stops_earlier(run: Run, load: Call) -> bool:
    """Whether ZeRO-3 already refuses the map while the model loads, which another rule reports."""
    if run.script is None or run.value("engine") != "deepspeed":
        return False
    return run.value("zero_stage") == 3 and knows_deepspeed(run.script, load) is not False
