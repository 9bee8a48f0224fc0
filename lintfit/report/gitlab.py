"""GitLab's Code Quality report: a JSON array of issues."""

from __future__ import annotations

from typing import Any

from lintfit.findings.model import Finding, Severity
from lintfit.findings.results import CheckResult
from lintfit.report import View, in_cell, shown_path
from lintfit.report.encoding import dumps
from lintfit.report.fingerprint import fingerprints

_SEVERITIES = {Severity.ERROR: "critical", Severity.WARNING: "major", Severity.INFO: "info"}


def render(result: CheckResult, view: View) -> str:
    """The findings as GitLab reads them in ``artifacts: reports: codequality``."""
    names = fingerprints(result.findings)
    return dumps([_issue(finding, name) for finding, name in zip(result.findings, names, strict=True)])


def _issue(finding: Finding, fingerprint: str) -> dict[str, Any]:
    place = finding.place
    start = place.document.position(place.span.start)
    end = place.document.position(place.span.end)
    return {
        "description": f"{finding.rule} ({finding.code}): {finding.message}{in_cell(place)}",
        "check_name": finding.rule,
        "fingerprint": fingerprint,
        "severity": _SEVERITIES[finding.severity],
        "location": {
            "path": shown_path(place.document.path),
            "positions": {
                "begin": {"line": start.line, "column": start.column},
                "end": {"line": end.line, "column": end.column},
            },
        },
    }
