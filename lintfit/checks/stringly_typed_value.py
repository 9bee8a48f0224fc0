from __future__ import annotations

import json
from collections.abc import Iterator

from lintfit.checks.helpers.context import FileContext, Report
from lintfit.checks.helpers.fixes import spliced
from lintfit.checks.helpers.values import FoundMistake, found_in
from lintfit.documents.model import Edit, Kind
from lintfit.findings.model import Applicability
from lintfit.settings.model import Place


def check_file(context: FileContext) -> Iterator[Report]:
    for found in found_in(context):
        if found.mistake.stringly:
            yield _report(found)


def _report(found: FoundMistake) -> Report:
    mistake = found.mistake
    text = mistake.literal if mistake.literal is not None else json.dumps(str(mistake.node.value))
    what = f"{'is a string' if mistake.literal is not None else 'is not a string'}; write {text}"
    if found.document.kind is Kind.YAML and mistake.literal is None:
        text = f"'{mistake.node.value}'"
    return Report(
        Place(found.document, mistake.node.span),
        f"{found.statement} {what} ({mistake.allowed}): {found.consequence}",
        severity=found.severity,
        fix=spliced(found.document, f"write {text}", Applicability.SAFE, [Edit(mistake.node.span, text)]),
    )
