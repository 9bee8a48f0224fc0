from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.runs import arguments_of, fits, most, place_of
from lintfit.checks.helpers.wording import gib, peak
from lintfit.memory.result import Verdict


def check_run(context: RunContext) -> Iterator[Report]:
    run, spec, estimate = context.run, context.run.spec, context.estimate
    if spec is None or estimate is None or context.verdict_of_training is not Verdict.DOES_NOT_FIT:
        return
    if spec.method != "lora" or spec.quantization is not None or spec.engine not in ("single", "ddp"):
        return
    smaller = context.what_if(quantization="nf4")
    if smaller is None or not fits(smaller):
        return
    yield Report(
        place_of(run, "weights_dtype", "model") if run.script is None else arguments_of(run),
        f"the frozen base takes {gib(most(estimate, 'parameters'))}, quantized to NF4 "
        f"{gib(most(smaller, 'parameters'))}: the peak would be {peak(smaller)}",
        help="BitsAndBytesConfig(load_in_4bit=True, …) with prepare_model_for_kbit_training; the base loses precision",
    )
