from __future__ import annotations

import json
from collections.abc import Iterator

from lintfit.checks.helpers.context import FileContext, Report
from lintfit.checks.helpers.fixes import spliced
from lintfit.checks.helpers.readers import reader_of
from lintfit.checks.helpers.values import FoundMistake, found_in
from lintfit.documents.model import Edit, Kind
from lintfit.findings.model import Applicability, Severity
from lintfit.settings.model import Place


def check_file(context: FileContext) -> Iterator[Report]:
    for found in found_in(context):
        if found.mistake.stringly:
            harmless = found.mistake.coerced and found.dialect == "deepspeed" and not _is_compared(context)
            yield _report(found, Severity.INFO if harmless else found.severity)


def _is_compared(context: FileContext) -> bool:
    """Whether transformers or accelerate read the file, as far as anybody knows: DeepSpeed alone takes it as meant."""
    return not context.runs or reader_of(context.runs) != "deepspeed"


def _report(found: FoundMistake, severity: Severity) -> Report:
    mistake = found.mistake
    text = mistake.literal if mistake.literal is not None else json.dumps(str(mistake.node.value))
    what = f"{'is a string' if mistake.literal is not None else 'is not a string'}; write {text}"
    if found.document.kind is Kind.YAML and mistake.literal is None:
        text = f"'{mistake.node.value}'"
    return Report(
        Place(found.document, mistake.node.span),
        f"{found.statement} {what} ({mistake.allowed}): {found.consequence}",
        severity=severity,
        fix=spliced(found.document, f"write {text}", Applicability.SAFE, [Edit(mistake.node.span, text)]),
    )
