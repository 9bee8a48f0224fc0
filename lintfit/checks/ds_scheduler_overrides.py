from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.fixes import related
from lintfit.checks.helpers.readers import reader_of
from lintfit.checks.helpers.trees import without
from lintfit.findings.model import Applicability, Severity

_SHAPES = {
    "WarmupLR": ("constant", "constant_with_warmup"),
    "WarmupDecayLR": ("linear",),
    "WarmupCosineLR": ("cosine",),
}
"""What each of DeepSpeed's schedulers comes to in transformers' words."""
_DOES = {
    "WarmupLR": "the learning rate stays constant after the warm-up",
    "WarmupDecayLR": "the learning rate falls linearly",
    "WarmupCosineLR": "the learning rate follows a cosine",
}
_DECAYING = (
    "linear",
    "cosine",
    "polynomial",
    "cosine_with_restarts",
    "cosine_with_min_lr",
    "inverse_sqrt",
    "reduce_lr_on_plateau",
    "constant",
    "constant_with_warmup",
)


def check_run(context: RunContext) -> Iterator[Report]:
    run = context.run
    if run.deepspeed is None or run.script is None or reader_of((run,)) != "transformers":
        return
    kind = run.deepspeed.node("scheduler", "type")
    asked = run.script.argument("lr_scheduler_type")
    if kind is None or kind.value not in _SHAPES or asked is None or not asked.known:
        return
    if asked.value not in _DECAYING or asked.value in _SHAPES[kind.value]:
        return
    place = run.deepspeed.place("scheduler", "type")
    assert place is not None
    stated = asked.provenance.kind == "file"
    yield Report(
        place,
        f"DeepSpeed's {kind.value} takes the place of lr_scheduler_type={asked.value}"
        f"{'' if stated else f' ({asked.provenance.detail})'}: {_DOES[kind.value]}",
        severity=Severity.WARNING if stated else Severity.INFO,
        related=related(asked.provenance.place if stated else None, "the schedule is asked for here"),
        fix=without(
            run.deepspeed.document,
            "delete the scheduler block: the arguments then decide",
            Applicability.UNSAFE,
            ("scheduler",),
        ),
        help="delete the scheduler block, or ask for the same schedule in the arguments",
    )
