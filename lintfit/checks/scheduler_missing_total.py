from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import FileContext, Report
from lintfit.checks.helpers.readers import handed_over, reader_of, severity_by_reader
from lintfit.checks.helpers.trees import assigned, data_of
from lintfit.findings.model import Applicability
from lintfit.settings.model import Place

_NEED_A_TOTAL = ("WarmupDecayLR", "WarmupCosineLR")
_PATH = ("scheduler", "params", "total_num_steps")


def check_file(context: FileContext) -> Iterator[Report]:
    found = data_of(context, "deepspeed")
    if found is None:
        return
    document, root = found
    kind, total = root.get("scheduler", "type"), root.get(*_PATH)
    if kind is None or kind.value not in _NEED_A_TOTAL or handed_over(context.runs, "lr_scheduler"):
        return
    if total is not None and not (total.shape == "scalar" and total.value is None):
        return
    yield Report(
        Place(document, total.span if total is not None else kind.span),
        f"{kind.value} needs total_num_steps: DeepSpeed stops with TypeError when it builds the scheduler",
        severity=severity_by_reader(context.runs),
        fix=assigned(document, 'let the library fill it ("auto")', Applicability.SAFE, {_PATH: "auto"})
        if reader_of(context.runs) in ("transformers", "accelerate")
        else None,
        help="write how many optimizer steps the run makes",
    )
