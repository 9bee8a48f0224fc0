"""What run rules ask of a run and its estimates."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from typing import Any

from lintfit.checks.helpers.context import RunContext
from lintfit.checks.helpers.wording import gib
from lintfit.documents.model import Span
from lintfit.documents.numerals import whole
from lintfit.documents.patterns import lazy_pattern
from lintfit.findings.model import Applicability, Fix, Severity
from lintfit.memory.result import Estimate, Moment, Verdict
from lintfit.memory.spec import DTYPE_BYTES, Spec
from lintfit.run.model import Run
from lintfit.settings.model import Place, is_count
from lintfit.sources.launchers.launch import Launch
from lintfit.sources.launchers.processes import names_devices
from lintfit.sources.training import LeavesLogitsOut
from lintfit.verdict.capped import exact_length, may_be_cap

STATES = ("parameters", "gradients", "optimizer_states", "master_weights")
"""Components that hang on the model, its dtype and the engine alone."""

SMALL = 500_000_000
"""Parameters below which an fp32 copy, and training in fp32, is nobody's problem."""


def anchor(run: Run) -> Place:
    """Where to point when no single setting is to blame: the launch line, the trainer's arguments, the model, or the
    config."""
    if run.launch is not None:
        return run.launch.place
    if run.script is not None:
        facts = run.script.facts
        call = facts.training_arguments or facts.trainer or facts.initialize or facts.accelerator
        call = call or next(iter(facts.loads), None)
        if call is not None:
            return call.place
    own = (document for document in run.documents if document.path == run.origin.path)
    document = next(own, run.documents[0])
    return Place(document, Span(0, min(1, len(document.text))))


def by_machine(run: Run) -> bool:
    """Whether the number of processes is only that of the GPUs that there are: nothing says how many the run uses."""
    gpus = run.settings.get("gpus")
    return gpus is not None and gpus.provenance.kind == "option" and not run.options.what_if


def counted(run: Run, number: int, noun: str) -> str:
    """``8 processes (all there are)``: a number that is assumed is said to be."""
    return f"{number} {noun}{' (all there are)' if by_machine(run) else ''}"


def arguments_of(run: Run) -> Place:
    """Where an argument of the trainer that nobody gave would be written."""
    if run.training is not None and run.training.uses_trainer:
        return run.training.arguments_place or anchor(run)
    return anchor(run)


def told_by(run: Run, names: Iterable[str], asked: str) -> str:
    """What a launch says of switches that are off: ``passes --fp16 False``, else that it does not pass what turns one
    of them on (``asked``)."""
    flags = [flag for name in names if run.launch is not None and (flag := run.launch.flag(name)) is not None]
    said = " and ".join(f"--{flag.name} {flag.value}" for flag in flags if flag.value is not None)
    return f"passes {said}" if said else f"does not pass {asked}"


def place_of(run: Run, *names: str) -> Place:
    """Where the first of these settings is stated that a file states, else the run's anchor."""
    return stated_at(run, *names) or anchor(run)


def stated_at(run: Run, *names: str) -> Place | None:
    """Where the first of these settings is stated that a file states."""
    for name in names:
        setting = run.settings.get(name)
        if setting is not None and setting.provenance.place is not None:
            return setting.provenance.place
    return None


def breaks_or_strains(context: RunContext) -> Severity | None:
    """What a memory anti-pattern is worth: an error where the run does not fit, a warning where it is close, else None.

    None, too, where the hardware is unknown: what a GPU cannot be compared with is not yet a mistake.
    """
    if context.verdict is Verdict.UNKNOWN:
        return None
    severity = context.severity()
    return None if severity is Severity.INFO else severity


def decisive(severity: Severity, without: Estimate | None) -> Severity:
    """An error only where the run would fit, or nearly, without this alone; a warning where other things decide too."""
    if severity is Severity.ERROR and (without is None or without.verdict is Verdict.DOES_NOT_FIT):
        return Severity.WARNING
    return severity


def most_states(estimate: Estimate) -> Moment | None:
    """The moment of a step at which model states take most: how a model is loaded is no matter of its training."""
    moments = (moment for moment in estimate.moments if moment.phase != "load" and not moment.in_evaluation)
    return max(moments, key=states_at, default=None)


def states_at(moment: Moment) -> int:
    """Bytes of model states at a moment."""
    return sum(moment.components.get(name, 0) for name in STATES)


def trap(context: RunContext) -> Severity:
    """What wasted memory at start-up is worth: an error where the run does not fit, information where it has room."""
    return Severity.WARNING if context.verdict is Verdict.UNKNOWN else context.severity()


def most(estimate: Estimate, *components: str) -> int:
    """The most bytes that some components take together at any moment of a step, evaluations left out."""
    moments = (moment for moment in estimate.moments if not moment.in_evaluation)
    return max(sum(moment.components.get(name, 0) for name in components) for moment in moments)


def evaluation_moment(estimate: Estimate) -> Moment | None:
    """The largest moment of the evaluation, None where the run has none."""
    found = [moment for moment in estimate.moments if moment.in_evaluation]
    return max(found, key=lambda moment: moment.total, default=None)


def up_to(context: RunContext) -> str:
    """What stands before a size that hangs on samples: the most, where only those as long as their cap have it; the
    least of what may be; else that it is an estimate."""
    if not {"micro_batch_size", "seq_len"}.isdisjoint(context.run.doubtful):
        return "at least " if exact_length(context.run) else "about "
    return "up to " if context.at_shortest is not None or may_be_cap(context.run) else "about "


def engine_assumed(run: Run) -> bool:
    """Whether nobody states how the several processes of a run share it."""
    return run.unlaunched and run.spec is not None and run.spec.data_parallel > 1


def is_sure(context: RunContext) -> bool:
    """Whether a run that does not fit, or is close, is so on an engine that is stated, however long its samples are."""
    if engine_assumed(context.run):
        return False
    return exact_length(context.run) or context.at_short is None or context.fits_with_no_data


def of_cause(context: RunContext, without: Estimate | None) -> Severity:
    """What a cause is worth beside the finding that the run does not fit, or is close.

    A warning where the run fits ``without`` it, or nearly. Information where other things decide (what changes them
    together is the plan), where nobody states the engine, and where the run fits with short samples and nobody knows
    how long they are.
    """
    if not is_sure(context):
        return Severity.INFO
    close = without is not None and without.verdict is Verdict.TIGHT and context.verdict is Verdict.DOES_NOT_FIT
    return Severity.WARNING if close or fits(without) else Severity.INFO


def of_samples(context: RunContext, without: Estimate | None) -> Severity:
    """The same of a cause that grows with the samples: information where nobody knows how long they are or
    how many of their tokens have labels, and where Unsloth trains, of whose kernels a part is not counted."""
    if not exact_length(context.run) or context.run.mentions("unsloth") or waits_for_labels(context):
        return Severity.INFO
    return of_cause(context, without)


def likely_fits(context: RunContext) -> bool:
    """Whether a run that is close likely fits as it is: nobody pays with time for what it has room for."""
    trained = context.trained
    if context.verdict_of_training is not Verdict.TIGHT or trained is None or trained.capacity_bytes is None:
        return False
    return trained.peak.likely <= trained.capacity_bytes


def at_length(context: RunContext) -> str:
    """The length that such a size is of, where nobody knows whether samples have it."""
    spec = context.run.spec
    return f" with samples of {of_length(spec)}" if spec is not None and not exact_length(context.run) else ""


def of_length(spec: Spec) -> str:
    """The tokens of a sample, as an assumption where nobody states them."""
    return f"{spec.seq_len:,} tokens" + ("" if "seq_len" in spec.stated else " (assumed)")


_NOTEWORTHY = 0.02
"""Share of the GPU from which on what a loop holds for nothing is worth a word."""


def spared(context: RunContext, changes: Mapping[str, Any]) -> int:
    """Bytes that changes take off the peak of a run that does not fit, or is close; 0 where that is next to nothing."""
    estimate = context.estimate
    if estimate is None or estimate.capacity_bytes is None or breaks_or_strains(context) is None:
        return 0
    after = context.what_if(**changes)
    saved = estimate.peak.likely - after.peak.likely if after is not None else 0
    return saved if saved > _NOTEWORTHY * estimate.capacity_bytes else 0


def fits(estimate: Estimate | None) -> bool:
    """Whether a run would fit its GPUs, and its host as far as that is known."""
    return estimate is not None and estimate.verdict is Verdict.FITS and not estimate.host_is_short


def change(run: Run, message: str, applicability: Applicability, changes: Mapping[str, Any]) -> Fix | None:
    """A fix that makes the run's files say something else, None where they cannot."""
    from lintfit.run.write import write

    edits = write(run, changes)
    return Fix(message, applicability, edits, dict(changes)) if edits else None


def enough(context: RunContext, message: str, applicability: Applicability, changes: Mapping[str, Any]) -> Fix | None:
    """A fix for changes of the spec, None where they alone do not make the run fit."""
    if context.verdict is Verdict.FITS or not fits(context.what_if(**changes)):
        return None
    return change(context.run, message, applicability, changes)


def strategy(spec: Spec) -> str:
    """How a run spreads over its GPUs, in the words of a message: ``ZeRO-2 on 8 GPUs``."""
    match spec.engine:
        case "single":
            return "one process"
        case "ddp":
            return "DDP"
        case "fsdp":
            return "FSDP"
    offloaded = [
        what
        for what, device in (("optimizer", spec.offload_optimizer), ("parameters", spec.offload_param))
        if device != "none"
    ]
    return f"ZeRO-{spec.zero_stage}" + (f" with {' and '.join(offloaded)} offloaded" if offloaded else "")


def ranks_per_node(run: Run) -> int | None:
    """Processes on one node, None where their number is not known."""
    return max(1, run.hardware.gpus // max(1, run.hardware.nodes)) if run.hardware.gpus is not None else None


def copies(run: Run, size: int) -> str:
    """What a copy of something on every rank takes: ``8 ranks × 25.1 GiB on a node``."""
    ranks = ranks_per_node(run)
    return f"{ranks} ranks × {gib(size)} on a node" if ranks is not None else f"{gib(size)} on every rank"


def whole_copies(run: Run, where: str = "") -> str:
    """What it costs that ZeRO-3 cannot partition a model while it loads, as a clause."""
    size = f" ({copies(run, load_bytes(run.spec))})" if run.spec is not None else ""
    return f"every rank first holds a whole copy{where}{size}"


def copies_outgrow_host(run: Run) -> bool | None:
    """Whether the host has no room for a whole copy of the model on every rank of a node; None where nobody knows."""
    spec, ranks = run.spec, ranks_per_node(run)
    if spec is None or ranks is None or spec.host_memory_bytes is None:
        return None
    return ranks * load_bytes(spec) > spec.host_memory_bytes


def load_bytes(spec: Spec) -> int:
    """Bytes of the whole model as it is loaded."""
    return spec.facts.parameters * DTYPE_BYTES[spec.full_load_dtype or spec.weights_dtype]


def cards(run: Run) -> str:
    """The GPUs of a run: ``8 × RTX 3090``."""
    hardware = run.hardware
    name = hardware.gpu.name if hardware.gpu is not None else "GPU"
    count = run.spec.gpus if run.spec is not None else hardware.gpus
    return f"{count} × {name}" if count is not None else name


_OF_ARGUMENTS = lazy_pattern(r"(?:^|_)(?:config|cfg|args|arguments|params|recipe|yaml)(?:_|$)")
"""Words in the names of flags that hand a script a file of arguments (``--model_config_file``)."""


def names_unread_file(run: Run) -> bool:
    """Whether a launch hands its script a file of arguments that the run is not read from: it may say anything."""
    if run.launch is None:
        return False
    flags = (flag for flag in run.launch.flags if flag.value is not None and _OF_ARGUMENTS.search(flag.name))
    words = (*run.launch.positional, *(flag.value for flag in flags if flag.value is not None))
    named = {PurePosixPath(word).name for word in words if word.endswith((".json", ".yaml", ".yml"))}
    return bool(named.difference(document.path.name for document in run.documents))


VISIBLE = "CUDA_VISIBLE_DEVICES"
_OTHERS = frozenset(
    {"ASCEND_RT_VISIBLE_DEVICES", "HABANA_VISIBLE_DEVICES", "HABANA_VISIBLE_MODULES", "MLU_VISIBLE_DEVICES"}
)
"""The variables of torch_npu, Gaudi and torch_mlu for the same."""


def on_other_devices(run: Run) -> bool:
    """Whether the launch names devices that are no GPUs: what is known of the machine's GPUs says nothing of those."""
    return run.launch is not None and not _OTHERS.isdisjoint(run.launch.environment)


def may_leave_logits_out(run: Run) -> bool:
    """Whether a front end may make logits of labelled tokens alone: how many these are, data decides."""
    training, spec = run.training, run.spec
    if spec is None or spec.loss != "full" or not isinstance(training, LeavesLogitsOut):
        return False
    return training.leaves_logits_out(spec.facts)


def waits_for_labels(context: RunContext) -> bool:
    """Whether logits of labelled tokens alone may be made, and there is room without those of the others."""
    without = context.what_if(loss="liger") if may_leave_logits_out(context.run) else None
    return without is not None and without.verdict in (Verdict.FITS, Verdict.TIGHT)


def too_few_shown(run: Run) -> int | None:
    """How many GPUs the launch line shows, where it starts more processes than that; None where it does not, or nobody
    knows, or the launcher does not listen."""
    gpus, nodes, launch = run.settings.get("gpus"), run.settings.get("nodes"), run.launch
    if launch is None or launch.launcher == "deepspeed" or run.hardware.nodes != 1 or gpus is None:
        return None  # deepspeed takes the variable for --include, or drops it when --num_gpus is given
    if gpus.provenance.place is None or (nodes is not None and not nodes.known) or on_other_devices(run):
        return None
    value = launch.environment.get(VISIBLE)
    if value is None or not names_devices(value) or not is_count(gpus.value) or gpus.provenance.kind == "option":
        return None
    if launch.conditional and _is_a_default(launch):
        return None
    shown = sum(1 for device in value.split(",") if device.strip())
    return shown if 0 < shown < gpus.value else None


_NAMED = re.compile(r"\$\{?(\w+)")


def _is_a_default(launch: Launch) -> bool:
    """Whether the GPUs that a launch shows are only what a variable comes to where nobody gives it
    (``GPU_IDS="${GPU_IDS:-0}"``): where it stands in an ``if`` that is not decided, the branch for three GPUs is meant
    for those who give three."""
    visible = launch.settings.get("visible_devices")
    place = visible.provenance.place if visible is not None else None
    if place is None:
        return False
    text = place.document.text
    written = text[place.span.start : place.span.end]
    names = "|".join(re.escape(name) for name in _NAMED.findall(written))
    default = rf"""\$\{{(?:{names}):?[-=]|^\s*(?:\w+ )?(?:{names})=["']?\$\{{\w+:?[-=]"""
    return bool(names) and re.search(default, text, re.MULTILINE) is not None


def shown_before(run: Run, there: int) -> int | None:
    """How many GPUs CUDA shows where a launch names one that there is not: those before the first such (CUDA C++
    Programming Guide, "CUDA Environment Variables"; ``torch/cuda/__init__.py:_device_count_nvml``); None where it
    names no such."""
    visible = run.launch.settings.get("visible_devices") if run.launch is not None else None
    numbers = visible.value.split(",") if visible is not None and isinstance(visible.value, str) else []
    return next((at for at, number in enumerate(map(whole, numbers)) if number is not None and number >= there), None)


def starts_too_many(run: Run) -> bool:
    """Whether a launch starts more processes than there are GPUs or than it shows, or than it names before a number
    beyond: its ranks are others as soon as that is mended, and so is what fits.
    """
    gpus, there = run.settings.get("gpus"), run.hardware.available
    if too_few_shown(run) is not None:
        return True
    if there is None:
        return False
    beyond = shown_before(run, there)
    if beyond is not None and (gpus is None or not is_count(gpus.value) or gpus.value > beyond * run.hardware.nodes):
        return True
    return gpus is not None and is_count(gpus.value) and gpus.provenance.kind != "option" and gpus.value > there
