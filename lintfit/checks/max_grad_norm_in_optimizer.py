from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import FileContext, Report
from lintfit.checks.helpers.readers import handed_over, severity_by_reader
from lintfit.checks.helpers.trees import assigned, data_of
from lintfit.documents.model import DataDocument, KeyPath, Node
from lintfit.findings.model import Applicability, Fix
from lintfit.settings.model import Place

_PATH = ("optimizer", "params", "max_grad_norm")
_CLIPPING = "gradient_clipping"


def check_file(context: FileContext) -> Iterator[Report]:
    found = data_of(context, "deepspeed")
    if found is None:
        return
    document, root = found
    params = root.get("optimizer", "params")
    entry = params.entry("max_grad_norm") if params is not None and params.shape == "mapping" else None
    if entry is None or handed_over(context.runs, "optimizer"):
        return
    yield Report(
        Place(document, entry.key_span),
        "optimizer.params.max_grad_norm stops DeepSpeed with ValueError "
        "('max_grad_norm' is not supported as an optimizer parameter)",
        severity=severity_by_reader(context.runs),
        fix=_fix(document, root, entry.value),
        help=f'delete it and write "{_CLIPPING}" at the top level',
    )


def _fix(document: DataDocument, root: Node, value: Node) -> Fix | None:
    from lintfit.sources.data_writer import REMOVE

    changes: dict[KeyPath, object] = {_PATH: REMOVE}
    if root.get(_CLIPPING) is not None:
        return assigned(document, f"delete it: {_CLIPPING} is there", Applicability.SAFE, changes)
    changes[(_CLIPPING,)] = value.plain()
    return assigned(document, f"move it to {_CLIPPING}", Applicability.SAFE, changes)
