"""Reviewdog's diagnostic format: what turns fixes into suggestions on a pull request."""

from __future__ import annotations

from typing import Any

from lintfit.documents.model import Document, Edit, Span
from lintfit.findings.model import Applicability, Finding, Severity
from lintfit.findings.results import CheckResult
from lintfit.report import View, in_cell, shown_path, whole
from lintfit.report.encoding import dumps

_SEVERITIES = {Severity.ERROR: "ERROR", Severity.WARNING: "WARNING", Severity.INFO: "INFO"}


def render(result: CheckResult, view: View) -> str:
    """One ``DiagnosticResult``. Columns count bytes of UTF-8, as the format wants."""
    return dumps(
        {
            "source": {"name": "lintfit"},
            "diagnostics": [_diagnostic(finding) for finding in result.findings],
        }
    )


def _diagnostic(finding: Finding) -> dict[str, Any]:
    place = finding.place
    suggestions = _suggestions(finding)
    said, message = _said(finding, bool(suggestions)), f"{finding.message}{in_cell(place)}"
    diagnostic: dict[str, Any] = {
        "message": "\n".join(filter(None, (f"{message} ({finding.code})", said))),
        "location": _location(place.document, place.span),
        "severity": _SEVERITIES[finding.severity],
        "code": {"value": finding.rule},
    }
    if suggestions:
        diagnostic["suggestions"] = suggestions
    if finding.related:
        diagnostic["related_locations"] = [
            {"message": related.message, "location": _location(related.place.document, related.place.span)}
            for related in finding.related
        ]
    return diagnostic


def _said(finding: Finding, is_suggested: bool) -> str:
    """What to do, where nothing can be suggested; of a suggestion, that it is unsafe."""
    fix = finding.fix
    if is_suggested:
        if fix is None or fix.applicability is not Applicability.UNSAFE:
            return ""
        return f"The suggestion is unsafe: {fix.why_unsafe}."
    return finding.help or (fix.message if fix is not None else "")


def _suggestions(finding: Finding) -> list[dict[str, Any]]:
    """The edits of a fix that stays in the finding's own file: a suggestion cannot reach into another."""
    fix, document = finding.fix, finding.place.document
    if fix is None or fix.applicability is Applicability.DISPLAY:
        return []
    if any(edit.document is not document for edit in fix.edits):
        return []
    return [_suggestion(whole(document), edit.in_file) for edit in fix.edits]


def _suggestion(document: Document, edit: Edit) -> dict[str, Any]:
    return {"range": _range(document, edit.span), "text": edit.text}


def _location(document: Document, span: Span) -> dict[str, Any]:
    return {"path": shown_path(document.path), "range": _range(document, span)}


def _range(document: Document, span: Span) -> dict[str, Any]:
    return {"start": _position(document, span.start), "end": _position(document, span.end)}


def _position(document: Document, offset: int) -> dict[str, int]:
    at = document.position(offset)
    offset = document.in_file(offset)
    before = document.whole[offset - at.column + 1 : offset]
    return {"line": at.line, "column": len(before.encode("utf-8", "surrogatepass")) + 1}
