from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import FileContext, Report
from lintfit.documents.broken import is_broken
from lintfit.documents.conflicts import RESOLVE, conflict
from lintfit.documents.model import SYNTAX_ERROR, Kind
from lintfit.findings.model import Related
from lintfit.settings.model import Place

_STOPS = {
    Kind.PYTHON: "Python does not run this file",
    Kind.SHELL: "bash stops here",
    Kind.YAML: "no library can read this file",
}


def check_file(context: FileContext) -> Iterator[Report]:
    document = context.document
    launched = any(document in run.broken for run in context.runs)
    named = context.named and (context.source is not None or is_broken(document))
    if document.kind not in _STOPS or not (launched or named):
        return
    merge = conflict(document.text) if is_broken(document) else None
    for problem in (merge,) if merge is not None else document.problems:
        if problem.code == SYNTAX_ERROR:
            yield Report(
                Place(document, problem.span),
                f"{problem.detail}: {_STOPS[document.kind]}",
                related=tuple(Related(Place(document, span), message) for span, message in problem.related),
                help=RESOLVE if merge is not None else "the parser noticed it here; what is not closed may stand above",
            )
