from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.runs import change, evaluation_moment, stated_at
from lintfit.checks.helpers.wording import gib, small
from lintfit.findings.model import Applicability, Severity
from lintfit.frozen import replace
from lintfit.memory import estimate as made
from lintfit.memory.engines.host import ranks_per_node
from lintfit.memory.evaluation.kept import kept_of_a_sample, kept_on_host_of_a_sample, open_ended
from lintfit.memory.spec import Evaluation, Spec

TOKEN = 8
"""Bytes of a predicted token (torch's argmax gives int64)."""


def check_run(context: RunContext) -> Iterator[Report]:
    run = context.run
    metrics, place = run.settings.get("eval_predictions"), stated_at(run, "eval_predictions")
    if metrics is None or place is None or not _endless(context):
        return
    if metrics.value == "listed" and run.value("eval_graph") is True:
        return  # eval-without-no-grad says so
    if metrics.value == "listed":
        yield Report(
            place,
            f"the logits of every batch are put into a list, which keeps them on the GPU{_cost(context)}",
            severity=_severity(context),
            help="keep what is made of them (argmax, a sum), or move them to the host first (.cpu())",
        )
        return
    why = "predict" if metrics.provenance.detail else "compute_metrics"
    yield Report(
        place,
        f"{why} has the Trainer keep the logits of the whole evaluation on the GPU{_cost(context)}",
        severity=_severity(context),
        fix=change(
            run,
            f"move them to the host after each batch{_there(context)}",
            Applicability.SAFE,
            {"eval_accumulation_steps": 1},
        ),
        help=f"eval_accumulation_steps=1 moves them to the host{_there(context)}; prediction_loss_only keeps none",
    )


def _severity(context: RunContext) -> Severity:
    """A warning where a command starts the run: what nobody starts is often tried out on a few samples."""
    return Severity.WARNING if context.run.launch is not None or context.run.recipe is not None else Severity.INFO


def _there(context: RunContext) -> str:
    """What the host then holds, and what keeps less."""
    less = "an argmax in preprocess_logits_for_metrics keeps the predicted tokens only"
    spec = context.run.spec
    if spec is None:
        return f", which then holds those of all samples ({less})"
    one, ranks = kept_on_host_of_a_sample(spec), ranks_per_node(spec)
    each = f" in each of {ranks} processes" if ranks > 1 else ""
    room = ""
    if spec.host_memory_bytes is not None:
        room = f": {gib(spec.host_memory_bytes)} have room for {spec.host_memory_bytes // (one * ranks):,}"
    return f", which takes {small(one)} of RAM for each sample{each}{room} ({less}, {small(spec.seq_len * TOKEN)})"


def _endless(context: RunContext) -> bool:
    """Whether the logits of all samples are kept; read from the settings where the model is not known."""
    run = context.run
    if run.spec is not None:
        return open_ended(run.spec)
    kept, generates = run.value("eval_predictions") in ("kept", "listed"), run.value("predict_with_generate") is True
    return kept and not generates and run.value("eval_accumulation_steps") is None


def _cost(context: RunContext) -> str:
    """What a sample takes, and for how many there is room."""
    spec, estimate = context.run.spec, context.estimate
    if spec is None:
        return ""
    one = kept_of_a_sample(spec)
    text = f": {small(one)} for each sample of {spec.seq_len:,} tokens"
    moment = evaluation_moment(estimate) if estimate is not None else None
    if estimate is None or estimate.capacity_bytes is None or moment is None or moment.total >= estimate.capacity_bytes:
        return text
    if spec.evaluation is not None and spec.evaluation.predictions == "kept":
        return f"{text}, so that about {_evaluated(spec, spec.evaluation, estimate.capacity_bytes):,} samples fit"
    return f"{text}, so that {(estimate.capacity_bytes - moment.total) // one:,} samples fit at most"


def _evaluated(spec: Spec, evaluation: Evaluation, capacity: int) -> int:
    """Samples, in whole batches, of the longest evaluation whose every moment has room: while a batch is evaluated,
    what it makes stands beside the logits of those before it, and while it is put to them, these are there twice."""
    batch = evaluation.batch_size * spec.data_parallel

    def is_too_long(batches: int) -> bool:
        moment = evaluation_moment(made(replace(spec, evaluation=replace(evaluation, samples=batches * batch))))
        return moment is not None and moment.total >= capacity

    most = capacity // (kept_of_a_sample(spec) * batch) + 1
    return batch * max(1, bisect_left(range(1, most + 1), True, key=is_too_long))
