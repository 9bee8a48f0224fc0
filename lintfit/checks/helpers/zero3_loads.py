"""Loads of models that transformers refuses under ZeRO-3."""

from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.readers import init_is_off, older
from lintfit.checks.helpers.script_calls import knows_deepspeed, trained_load
from lintfit.run.model import Run
from lintfit.sources.script.model import Argument, Call

_LOW_MEMORY_REFUSED = "4.46"
"""transformers up to 4.45 refuse ``low_cpu_mem_usage=True`` under ZeRO-3, too (``modeling_utils.from_pretrained``)."""


def refused_loads(run: Run) -> Iterator[tuple[Call, Argument]]:
    """The loads that stop with an error under ZeRO-3, each with the argument that is at fault."""
    for load in run.script.facts.loads if run.script is not None else ():
        if load.taken is not True or not load.function.startswith("transformers."):
            continue
        argument = _refused(run, load)
        if argument is not None and is_partitioned(run, load):
            yield load, argument


def loads_in_parts(run: Run) -> bool:
    """Whether the trained model is surely partitioned as it loads: ``zero.Init`` makes its parameters in the config's
    dtype, each rank's share alone, so that no cast, move or dtype of the load is of a whole model.

    A model that TRL's trainer loads by its name comes after the arguments, which tell transformers of ZeRO-3.
    """
    if run.value("engine") != "deepspeed" or run.value("zero_stage") != 3 or run.value("quantization") is not None:
        return False
    load = trained_load(run.script) if run.script is not None else None
    if load is not None:
        return is_partitioned(run, load)
    by_name = run.training is not None and run.training.uses_trl and run.training.uses_trainer
    return by_name and not init_is_off(run) and (run.script is None or not run.script.facts.loads)


def is_partitioned(run: Run, load: Call) -> bool:
    """Whether a load gives each rank its share of the weights alone, as transformers is told of ZeRO-3 by then."""
    if run.script is None or run.value("engine") != "deepspeed" or run.value("zero_stage") != 3:
        return False
    return not init_is_off(run) and knows_deepspeed(run.script, load) is True


def _refused(run: Run, load: Call) -> Argument | None:
    placed = load.argument("device_map")
    if placed is not None and isinstance(placed.value, (str, dict)) and placed.value:
        return placed
    lean = load.argument("low_cpu_mem_usage")
    if lean is not None and lean.value is True and older((run,), "transformers", _LOW_MEMORY_REFUSED):
        return lean
    return None
