from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import FileContext, Report, RunContext
from lintfit.checks.helpers.fixes import related
from lintfit.checks.helpers.readers import handed_over, older, reader_of, severity_by_reader
from lintfit.checks.helpers.trees import assigned, data_of, zero_stage
from lintfit.documents.model import DataDocument, Node
from lintfit.findings.model import Applicability, Severity
from lintfit.settings.model import Place
from lintfit.sources.script.model import Call

_UNTESTED = ("Lamb", "SGD", "RMSprop", "Adamax", "NAdam", "RAdam", "Adadelta", "ASGD", "Rprop")
"""Types that DeepSpeed builds and that are not in its ``ZERO_SUPPORTED_OPTIMIZERS``."""
_ONE_BIT = ("OneBitAdam", "ZeroOneAdam", "OneBitLamb")
_REMOVED = "0.19.7"
"""The first DeepSpeed without ``runtime/fp16/onebit``."""
_ALLOW = "zero_allow_untested_optimizer"


def check_file(context: FileContext) -> Iterator[Report]:
    """The optimizer that the JSON itself names."""
    found = data_of(context, "deepspeed")
    if found is None:
        return
    document, root = found
    kind = root.get("optimizer", "type")
    if kind is None or not isinstance(kind.value, str) or handed_over(context.runs, "optimizer"):
        return
    if kind.value.lower() in map(str.lower, _ONE_BIT):
        yield from _one_bit(context, document, root, kind)
    elif not zero_stage(root):
        return
    elif (kind.value in _UNTESTED or kind.value.lower() == "lamb") and not _allowed(root):
        yield _untested(document, root, kind.value, Place(document, kind.span), severity_by_reader(context.runs))


def check_run(context: RunContext) -> Iterator[Report]:
    """The optimizer that a script hands to ``deepspeed.initialize``."""
    run = context.run
    if run.script is None or run.deepspeed is None or reader_of((run,)) != "deepspeed":
        return
    document, root = run.deepspeed.document, run.deepspeed.document.root
    call = run.script.facts.initialize
    handed = call.argument("optimizer") if call is not None else None
    if root is None or handed is None or not zero_stage(root) or _allowed(root):
        return
    made = handed.value
    if isinstance(made, Call) and made.function in {f"torch.optim.{name}" for name in _UNTESTED}:
        yield _untested(document, root, made.name, handed.place)


def _one_bit(context: FileContext, document: DataDocument, root: Node, kind: Node) -> Iterator[Report]:
    """DeepSpeed has no one-bit optimizers any more; while it had them, ZeRO refused them."""
    gone = older(context.runs, "deepspeed", _REMOVED) is not True
    if gone:
        what = f"{kind.value} was removed: DeepSpeed {_REMOVED} and later stop with an AssertionError"
        detail, remedy = "is not a supported DeepSpeed Optimizer", f"take AdamW, or pin DeepSpeed below {_REMOVED}"
    elif zero_stage(root):
        what = f"{kind.value} cannot run with ZeRO: DeepSpeed stops with an AssertionError"
        detail, remedy = "not compatible with ZeRO", "take AdamW, or stage 0"
    else:
        return
    yield Report(
        Place(document, kind.span), f"{what} ({detail})", severity=severity_by_reader(context.runs), help=remedy
    )


def _allowed(root: Node) -> bool:
    allowed = root.get(_ALLOW)
    return allowed is not None and allowed.value is not False


def _untested(
    document: DataDocument, root: Node, name: str, place: Place, severity: Severity = Severity.ERROR
) -> Report:
    stage = root.get("zero_optimization", "stage")
    switch = Place(document, stage.span) if stage is not None else None
    return Report(
        place,
        f'{name} with ZeRO needs "{_ALLOW}": true, '
        "else DeepSpeed stops with an AssertionError (untested ZeRO Optimizer)",
        severity=severity,
        related=related(switch, "ZeRO is switched on here"),
        fix=assigned(document, f"allow it ({_ALLOW})", Applicability.SAFE, {(_ALLOW,): True}),
        help=f'write "{_ALLOW}": true',
    )
