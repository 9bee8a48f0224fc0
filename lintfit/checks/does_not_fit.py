from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.runs import anchor, cards, strategy
from lintfit.checks.helpers.wording import billions, gib, of_gib
from lintfit.memory.result import COMPONENTS, Estimate, Verdict
from lintfit.memory.spec import GIB, Spec
from lintfit.memory.tensors.frozen_parts import frozen_parts, trained_parameters
from lintfit.settings.model import in_words
from lintfit.verdict.capped import SAMPLE, may_be_cap, shortest

_SHOWN = 4
"""How many components a message names; the rest is summed up."""
_TENTH = GIB // 10
"""Bytes below which a rest is not worth naming."""


def check_run(context: RunContext) -> Iterator[Report]:
    spec, estimate = context.run.spec, context.estimate
    if context.verdict is not Verdict.DOES_NOT_FIT or spec is None or estimate is None:
        return
    assert estimate.capacity_bytes is not None
    doubts = f", whatever {in_words(context.run.doubtful)} may be" if context.run.doubtful else ""
    yield Report(
        anchor(context.run),
        f"{spec.facts.name}, {_method(context)}{_engine(context, spec)} on {cards(context.run)}: "
        f"the peak{_when(context, spec, estimate)} is {_peak(context, estimate, estimate.capacity_bytes)}"
        f"{doubts}{_on_any_number(context)}",
        fix=context.plan.fix if context.plan is not None else None,
        help=_help(context),
    )


def _peak(context: RunContext, estimate: Estimate, capacity: int) -> str:
    """The peak with its parts; where samples may all be shorter than their cap, what short ones take, which does not
    fit either, and then the most."""
    low, spec = context.at_shortest, context.run.spec
    if low is None or spec is None or low.peak.likely >= estimate.peak.likely:
        return f"{of_gib(estimate.peak.likely, capacity)} per GPU ({_parts(estimate)})"
    return (
        f"{of_gib(low.peak.likely, capacity)} per GPU with samples of {shortest(context.run):,} tokens "
        f"({_parts(low)}), and up to {gib(estimate.peak.likely)} with {spec.seq_len:,}, at which they are cut"
    )


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
    """The engine: with what needs least where a file of the machine decides it, as an assumption where no file does."""
    if context.run.engine_open:
        return f"any engine, even {strategy(spec)},"
    return f"{strategy(spec)} (assumed)" if context.run.unlaunched else strategy(spec)


def _when(context: RunContext, spec: Spec, estimate: Estimate) -> str:
    """That it is no step of the training that needs so much, where it is none; the length, where it is what decides and
    nobody knows whether samples have it."""
    batch = spec.eval_batch_size
    if estimate.peaks_in_evaluation and batch is not None:
        return f" of the evaluation with batch {batch}"
    return f" with samples of {spec.seq_len:,} tokens" if may_be_cap(context.run) and _by_length(context) else ""


def _by_length(context: RunContext) -> bool:
    """Whether the run fits with short samples, so that their length decides."""
    spec = context.run.spec
    short = context.what_if(seq_len=min(SAMPLE, spec.seq_len)) if spec is not None else None
    return short is not None and short.verdict is not Verdict.DOES_NOT_FIT


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


def _parts(estimate: Estimate) -> str:
    sizes = {name: estimate.component(name) for name in COMPONENTS}
    largest = sorted(sizes, key=lambda name: -sizes[name])[:_SHOWN]
    shown = [f"{name.replace('_', ' ')} {gib(sizes[name])}" for name in largest if sizes[name]]
    rest = sum(size for name, size in sizes.items() if name not in largest)
    return ", ".join([*shown, *([f"the rest {gib(rest)}"] if rest >= _TENTH else [])])
