from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.script_calls import knows_deepspeed, may_quantize, trained_load
from lintfit.checks.helpers.script_edits import without_argument
from lintfit.findings.model import Applicability, Fix
from lintfit.run.model import Run
from lintfit.sources.script.model import Call

_SPREAD = frozenset({"auto", "balanced", "balanced_low_0", "sequential"})
"""The maps by which ``from_pretrained`` spreads one model over the GPUs that it sees."""


def check_run(context: RunContext) -> Iterator[Report]:
    run = context.run
    ranks = _started(run)
    if run.script is None or ranks is None or ranks < 2:
        return
    if run.script.shows_itself_gpus:
        return  # a map of one GPU is none to accelerate (1.15 ``Accelerator.verify_device_map``)
    facts = run.script.facts
    if facts.trainer is None and facts.initialize is None:
        return
    load = trained_load(run.script)
    argument = load.argument("device_map") if load is not None and load.taken is True else None
    if load is None or argument is None or _stops_earlier(run, load):
        return
    if not isinstance(argument.value, str) or argument.value not in _SPREAD:
        return
    quantized = run.settings.get("quantization") is not None or load.argument("quantization_config") is not None
    quantized = quantized or may_quantize(load)
    message = "drop the argument: the trainer moves the model to the rank's own GPU"
    yield Report(
        argument.whole,
        f'device_map="{argument.value}" spreads each of the {ranks} ranks\' models over all GPUs: the trainer stops '
        "with ValueError (You can't train a model that has been loaded with `device_map='auto'` in any distributed "
        "mode)",
        fix=None if quantized else Fix(message, Applicability.SAFE, without_argument(run.script, load, argument)),
        help='drop it; for a quantized model pass device_map={"": local_rank}',
    )


def _started(run: Run) -> int | None:
    """How many ranks a launcher starts; None where only lintfit's own options speak of GPUs."""
    gpus = run.settings.get("gpus")
    if gpus is None or not isinstance(gpus.value, int) or gpus.provenance.kind in ("option", "assumed"):
        return None
    return gpus.value if run.launch is not None or run.accelerate is not None else None


def _stops_earlier(run: Run, load: Call) -> bool:
    """Whether ZeRO-3 already refuses the map while the model loads, which another rule reports."""
    if run.script is None or run.value("engine") != "deepspeed":
        return False
    return run.value("zero_stage") == 3 and knows_deepspeed(run.script, load) is not False
