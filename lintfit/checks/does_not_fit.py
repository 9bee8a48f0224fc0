from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import SHORT, Report, RunContext
from lintfit.checks.helpers.runs import (
    STATES,
    anchor,
    at_length,
    cards,
    engine_assumed,
    most_states,
    strategy,
    waits_for_labels,
)
from lintfit.checks.helpers.wording import billions, gib, of_gib, rough, rough_of
from lintfit.findings.model import Severity
from lintfit.memory.result import BEFORE_THE_FIRST_STEP, COMPONENTS, TOTAL, Estimate, Moment, Phase, Verdict
from lintfit.memory.spec import GIB, Spec
from lintfit.memory.tensors.frozen_parts import frozen_parts, trained_parameters
from lintfit.run.called import model_name
from lintfit.run.model import Run
from lintfit.settings.model import in_words
from lintfit.verdict.capped import ONE_LINE, exact_length, shortest

_SHOWN = 4
"""How many components a message names; the rest is summed up."""
_SHARDING = frozenset({"zero_stage", "offload_optimizer", "offload_param"})
"""Settings of ZeRO of which what needs least is taken where nobody knows them."""
_TENTH = GIB // 10
"""Bytes below which a rest is not worth naming."""
_ENOUGH = (Verdict.FITS, Verdict.TIGHT)
_OF: dict[Phase, str] = {"load": " of loading the model", "resume": " of resuming", "save": " of saving the model"}
"""Phases that are no step of the training, as a message says them."""
_CLEARLY = 1.1
"""How many times the GPU a peak has to be for a sure end: 25 of 23.6 GiB is a close call to who counts by hand."""


def check_run(context: RunContext) -> Iterator[Report]:
    spec, estimate = context.run.spec, context.estimate
    if context.verdict is not Verdict.DOES_NOT_FIT or spec is None or estimate is None:
        return
    assert estimate.capacity_bytes is not None
    states = _states(context, estimate)
    doubtful = [name for name in context.run.doubtful if name not in _SHARDING]  # of which _engine speaks
    doubts = f", whatever {in_words(doubtful)} may be" if doubtful else ""
    labels = "; with logits of few labelled tokens alone it fits" if waits_for_labels(context) else ""
    yield Report(
        anchor(context.run),
        f"{model_name(context.run)}, {_method(context)}{_engine(context, spec)} on {cards(context.run)}: "
        f"{states or _peak(context, estimate)}{doubts}{labels}{_on_any_number(context)}",
        severity=_severity(context, bool(states)),
        fix=context.plan.fix if context.plan is not None else None,
        help=_help(context),
    )


def _states(context: RunContext, estimate: Estimate) -> str:
    """What model states alone take where they are more than a GPU has: then the rest, which hangs on data that nobody
    sees, changes nothing."""
    moment = most_states(estimate)
    if moment is None or estimate.capacity_bytes is None:
        return ""
    spec, peak = context.run.spec, estimate.peak
    pages = spec is not None and spec.optimizer.startswith("paged_")  # its states go to the host where there is no room
    firm = [name for name in STATES if not (pages and name == "optimizer_states")]
    states = sum(moment.components.get(name, 0) for name in firm)
    # Where the least peak has no room for them, a version or a library leaves their dtype open.
    least = states if peak.low >= states else peak.low - (peak.likely - states)
    if least <= estimate.capacity_bytes:
        return ""
    sizes = sorted(((moment.components.get(name, 0), name) for name in firm), reverse=True)
    parts = ", ".join(_size(name, size) for size, name in sizes if size >= _TENTH) if least == states else ""
    at_least = of_gib(least, estimate.capacity_bytes)
    return f"model states alone take at least {at_least} per GPU" + (f" ({parts})" if parts else "")


def _severity(context: RunContext, states: bool) -> Severity:
    """An error where the run surely ends out of memory, and information where it may well fit or be another one.

    A warning where only the length of its samples is open.
    """
    run = context.run
    if run.doubtful or run.engine_by_name or _waits_for_evaluation(context) or waits_for_labels(context):
        return Severity.INFO  # what is not read may decide; so may the data that is evaluated, if any is, and labels
    if engine_assumed(run):
        return Severity.INFO  # whoever has a script or a recipe that one GPU does not hold starts it on several
    if _certain(context, states):
        return Severity.WARNING if _is_shown(run) else Severity.ERROR
    if context.fits_at or _is_shown(run) or _is_open_when_short(context):
        return Severity.INFO
    return Severity.WARNING if exact_length(run) or _is_clear(context.estimate) else Severity.INFO


def _certain(context: RunContext, states: bool) -> bool:
    """Whether a run on a stated engine surely ends out of memory: whatever samples' length is, or with a length that
    all have."""
    return states or (_is_clear(context.estimate) and (exact_length(context.run) or context.fits_with_no_data))


def _is_open_when_short(context: RunContext) -> bool:
    """Whether nobody knows whether short samples fit, of a step of which not all is counted, nor how long they are."""
    short = context.at_short
    return not exact_length(context.run) and short is not None and short.verdict is Verdict.UNKNOWN


def _waits_for_evaluation(context: RunContext) -> bool:
    """Whether the training has room, and only an evaluation has none: where the length is a cap, with samples as long
    as the message says."""
    estimate = context.estimate
    if estimate is None or not estimate.peaks_in_evaluation:
        return False
    if context.verdict_of_training in _ENOUGH:
        return True
    short = _with_short_samples(context, estimate) if context.at_shortest is not None else None
    if short is None or not short[0].peaks_in_evaluation:
        return False
    trained = context.what_if(eval_batch_size=0, seq_len=short[1])
    return trained is not None and trained.verdict in _ENOUGH


def _is_shown(run: Run) -> bool:
    """Whether a run is one of a notebook's cells, or of a script's docstring: an example, of which nobody knows whether
    it is run as it stands."""
    launch = run.launch
    return run.origin.in_notebook or (launch is not None and launch.document.path.suffix == ".py")


def _is_clear(estimate: Estimate | None) -> bool:
    """Whether the least peak is above the GPU by more than what activations and buffers vary by with releases."""
    if estimate is None or estimate.capacity_bytes is None:
        return False
    return estimate.peak.low >= _CLEARLY * estimate.capacity_bytes


def _peak(context: RunContext, estimate: Estimate) -> str:
    """The peak with its parts: of the shortest samples that do not fit, where nobody knows how long they are, as what
    longer ones take is nothing that surely happens."""
    short, capacity = _with_short_samples(context, estimate), estimate.capacity_bytes
    assert capacity is not None
    low, tokens = short or (estimate, None)
    stops = _where_it_stops(low)
    size = f"the peak{_when(context, estimate, stops)} is {'at least' if _is_bound(context) else 'about'} "
    size += f"{rough_of(stops.total, capacity)} per GPU"
    even = "even " if tokens == ONE_LINE else ""
    size += f" {even}with samples of {tokens:,} tokens" if tokens is not None else ""
    if context.fits_at is not None:
        return f"{size} ({_parts(stops, 2)}); with {context.fits_at:,} it fits"
    return f"{size} ({_parts(stops, _SHOWN - 1 if stops.in_evaluation or short is not None else _SHOWN)})"


def _where_it_stops(estimate: Estimate) -> Moment:
    """The largest moment of what comes first of all that clearly has no room: start-up, the training, its evaluation, a
    save. What comes later is never reached.
    """
    capacity = _CLEARLY * (estimate.capacity_bytes or 0)
    largest = [max(moments, key=TOTAL) for moments in _in_order(estimate) if moments]
    return next((moment for moment in largest if moment.total >= capacity), estimate.peak_moment)


def _in_order(estimate: Estimate) -> Iterator[list[Moment]]:
    """The moments of start-up, of the training, of its evaluation and of a save."""
    start = BEFORE_THE_FIRST_STEP
    yield [each for each in estimate.moments if each.phase in start]
    yield [each for each in estimate.moments if each.phase not in (*start, "save") and not each.in_evaluation]
    yield [each for each in estimate.moments if each.in_evaluation]
    yield [each for each in estimate.moments if each.phase == "save"]


def _with_short_samples(context: RunContext, estimate: Estimate) -> tuple[Estimate, int] | None:
    """The estimate with the shortest samples with which it surely does not fit either, and their tokens, where it is
    less."""
    spec = context.run.spec
    assert spec is not None
    if exact_length(context.run):
        return None
    tried = ((context.at_line, ONE_LINE), (context.at_short, SHORT), (context.at_shortest, shortest(context.run)))
    over = [(low, tokens) for low, tokens in tried if low is not None and low.verdict is Verdict.DOES_NOT_FIT]
    sure = next((each for each in over if each[0].peak.low > (each[0].capacity_bytes or 0)), None)
    if sure is None and (_is_clear(estimate) or not over):
        return None
    low, tokens = sure or over[0]
    return (low, min(tokens, spec.seq_len)) if low.peak.likely < estimate.peak.likely else None


def _method(context: RunContext) -> str:
    """What is trained, with a comma; nothing where no file says so and the estimate is of what needs least."""
    spec = context.run.spec
    if spec is None or "method" in context.run.doubtful:
        return ""
    if spec.method == "lora":
        return "LoRA, "
    trained = f" of {billions(trained_parameters(spec))}" if frozen_parts(spec).of_text else ""
    return f"full fine-tuning{trained}, "


def _engine(context: RunContext, spec: Spec) -> str:
    """The engine: with what needs least where a file of the machine or something unknown decides it, as an assumption
    where no file does."""
    if context.run.engine_by_name:
        return f"even {strategy(spec)} (the stage by the name of a config that is not there)"
    if context.run.engine_open:
        return f"any engine, even {strategy(spec)},"
    if not _SHARDING.isdisjoint(context.run.doubtful):
        return f"even {strategy(spec)}"
    return f"{strategy(spec)} (assumed)" if context.run.unlaunched else strategy(spec)


def _when(context: RunContext, estimate: Estimate, stops: Moment) -> str:
    """That it is no step of the training that needs so much, where it is none; the length, where nobody knows whether
    samples have it and the sentence does not name it later."""
    batch = context.run.spec.eval_batch_size if context.run.spec is not None else None
    of = f" of the evaluation with batch {batch}" if stops.in_evaluation and batch is not None else ""
    of = _OF.get(stops.phase, of)
    length = at_length(context) if _with_short_samples(context, estimate) is None else ""
    return of + (length.replace(" with", " and") if of else length)


def _is_bound(context: RunContext) -> bool:
    """Whether something is not counted, or taken as what needs least."""
    return bool(context.run.doubtful) or (context.estimate is not None and bool(context.estimate.not_modelled))


def _help(context: RunContext) -> str:
    if context.plan is not None:
        by_hand = f" (by hand: {context.plan.by_hand})" if context.plan.by_hand else ""
        return f"what fits: {context.plan.fix.message}{by_hand}"
    return "for a plan, say how many there are (--gpus, or gpus in lintfit.toml)" if context.run.count_open else ""


def _on_any_number(context: RunContext) -> str:
    """What is left on as many GPUs as anybody has, where nobody states their number."""
    if context.scaling is None or context.estimate is None:
        return ""
    count, result = context.scaling.least
    return f"; it fits on no number of such GPUs ({gib(result.peak.likely)} each on {count})"


def _parts(moment: Moment, most: int = _SHOWN) -> str:
    sizes = {name: moment.components.get(name, 0) for name in COMPONENTS}
    largest = sorted(sizes, key=lambda name: -sizes[name])[:most]
    shown = [_size(name, sizes[name]) for name in largest if sizes[name]]
    rest = sum(size for name, size in sizes.items() if name not in largest)
    return ", ".join([*shown, *([f"the rest {rough(rest)}"] if rest >= _TENTH else [])])


def _size(component: str, size: int) -> str:
    return f"{component.replace('_', ' ')} {rough(size)}"
