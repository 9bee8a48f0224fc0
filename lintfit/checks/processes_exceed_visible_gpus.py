from __future__ import annotations

import re
from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.readers import older
from lintfit.checks.helpers.runs import (
    VISIBLE,
    on_other_devices,
    place_of,
    shown_before,
    starts_too_many,
    too_few_shown,
)
from lintfit.checks.helpers.wording import plural
from lintfit.documents.numerals import whole
from lintfit.findings.model import Severity
from lintfit.run.model import Run
from lintfit.settings.model import Setting, is_count


def check_run(context: RunContext) -> Iterator[Report]:
    run = context.run
    gpus = run.settings.get("gpus")
    nodes = run.settings.get("nodes")
    if (
        gpus is None
        or not is_count(gpus.value)
        or gpus.provenance.kind == "option"
        or not (nodes is None or nodes.known)
        or on_other_devices(run)
    ):
        return
    visible = too_few_shown(run)
    if visible is not None:
        yield Report(
            place_of(run, "gpus"),
            f"{gpus.value} processes, but {VISIBLE} shows {plural(visible, 'GPU')}: "
            f"{_without_gpu(gpus.value - visible)}",
            help=f"start {visible} processes, and raise the accumulation if the batch is to stay; or show more GPUs",
        )
    elif run.hardware.available is not None and starts_too_many(run) and not _has_as_many(run, gpus):
        yield _lacking(run, gpus.value, run.hardware.available)


def _lacking(run: Run, processes: int, there: int) -> Report:
    """More processes than lintfit was told that there are GPUs."""
    refused = _refused_slot(run, there)
    launcher = f"deepspeed stops with ValueError \"No slot '{refused}' specified on host 'localhost'\""
    if processes <= there:
        return Report(
            place_of(run, "visible_devices", "gpus"),
            f"{VISIBLE} names GPUs beyond the {there} that there are: "
            f"{launcher if refused is not None else _with_those_before(processes, shown_before(run, there) or 0)}",
            severity=Severity.INFO if _is_for_another(run) else None,
            help="name GPUs that there are, or state how many there are",
        )
    origin = _teller(run)
    nodes = run.hardware.nodes
    machines = "the machine has" if nodes == 1 else f"the {nodes} machines have"
    stops = launcher if refused is not None else _without_gpu(processes - there)
    return Report(
        place_of(run, "gpus"),
        f"{processes} processes, but {machines} {plural(there, 'GPU')} ({origin}): {stops}",
        severity=Severity.INFO if _is_for_another(run) or _is_for_as_many(run, processes) else None,
        help=f"start {there} process{'' if there == 1 else 'es'}, and raise the accumulation if the batch is to stay; "
        "or state how many GPUs there are",
    )


def _teller(run: Run) -> str:
    """What says how many GPUs there are."""
    return run.options.origins["gpus" if run.options.stated("gpus") else "gpu"]


def _is_for_another(run: Run) -> bool:
    """Whether only the command line says how many GPUs there are: the files are for a machine that has what they
    start, which need not be that one. A project's own config speaks of the machine that the files are for."""
    return _teller(run).startswith("--")


def _with_those_before(processes: int, shown: int) -> str:
    if shown == 0:
        return "none is visible, so that the run goes on on the CPU, or stops"
    only = f"only the {plural(shown, 'GPU')} before them {'is' if shown == 1 else 'are'} visible"
    return f"{only}, and {_without_gpu(processes - shown)}"


def _without_gpu(count: int) -> str:
    """What becomes of the processes that no GPU is left for: where the local rank is taken for a GPU, CUDA stops them
    ("invalid device ordinal"); where it is counted round (accelerate 1.15 ``state.py``, Megatron-LM
    ``megatron/initialize.py``), two share one, at which NCCL stops."""
    return f"{count} of them {'has' if count == 1 else 'have'} no GPU of {'its' if count == 1 else 'their'} own"


_UNCHECKED = "0.15.2"
"""The first DeepSpeed whose launcher takes the slots of ``--include`` for those of the machine (``launcher/runner.py:
parse_inclusion_exclusion``); before, ``parse_resource_filter`` refuses one that is not there."""


def _refused_slot(run: Run, there: int) -> int | None:
    """The first GPU at which deepspeed's launcher stops, of those that ``--include`` names, or ``CUDA_VISIBLE_DEVICES``
    in its place (``runner.py:main``); None where it does not check them."""
    launch = run.launch
    if launch is None or launch.launcher != "deepspeed" or not older((run,), "deepspeed", _UNCHECKED):
        return None
    options = {flag.name: flag.value for flag in launch.launcher_flags}
    if "hostfile" in options or "H" in options:
        return None
    named = options.get("include", options.get("i"))
    if named is None and not options.keys() & {"num_gpus", "num_nodes", "num_accelerators", "exclude", "e"}:
        visible = launch.settings.get("visible_devices")
        named = f"localhost:{visible.value}" if visible is not None else None
    host, _, slots = (named or "").partition(":")
    numbers = map(whole, slots.split(",")) if host == "localhost" else ()
    return next((number for number in numbers if number is not None and number >= there), None)


def _has_as_many(run: Run, gpus: Setting) -> bool:
    """Whether a job asks for as many GPUs as it starts processes: it runs where there are so many, or not at all."""
    seen = run.launch.seen_gpus if run.launch is not None else None
    asked = seen is not None and _asked_of_slurm(seen) and seen.value * run.hardware.nodes >= gpus.value
    return asked or _asked_of_slurm(gpus)


def _is_for_as_many(run: Run, processes: int) -> bool:
    """Whether a comment of the launch script says that it is for a machine with so many GPUs (``# 16 devices``)."""
    if run.launch is None:
        return False
    told = re.compile(rf"^[ \t]*#.*\b{processes}[ \t]*(?:x[ \t]*)?(?:\w+[ \t]+)?(?:GPUs?|GCDs?|devices)\b", re.I | re.M)
    return told.search(run.launch.document.text) is not None


def _asked_of_slurm(gpus: Setting) -> bool:
    """Whether an option of a batch job says how many GPUs these are."""
    place = gpus.provenance.place
    if place is None:
        return False
    text = place.document.text
    return text.startswith("#SBATCH", text.rfind("\n", 0, place.span.start) + 1)
