from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, UnusedContext
from lintfit.checks.helpers.fixes import spliced
from lintfit.documents.directives import without
from lintfit.findings.model import Applicability, Severity
from lintfit.settings.model import Place

MOST_OF_A_FILE = 200
"""A file may have a thousand comments with a hundred names each; who has left so many needs no list of the others."""


def check_unused(context: UnusedContext) -> Iterator[Report]:
    if not context.judged:
        return
    directive, document = context.directive, context.directive.document
    edit = without(directive, context.span, *context.again)
    others = edit.text or len(directive.names or ()) > 1 + len(context.again)
    message = f"take {context.name} out of the comment" if others else "delete it"
    yield Report(
        Place(document, context.span),
        f"this {directive.word} of {context.rule} silences nothing: it would hide the next such finding unseen",
        severity=Severity.INFO if context.for_runs else None,
        fix=spliced(document, message, Applicability.SAFE, [edit]),
    )
