"""SARIF 2.1.0 as GitHub's code scanning takes it: relative URIs, stable fingerprints, rules with their help."""

from __future__ import annotations

from collections import defaultdict
from typing import Any
from urllib.parse import quote

from lintfit import __version__
from lintfit.documents.model import Document, FileEdit, Span
from lintfit.errors import LintfitError
from lintfit.findings.model import Finding, Fix, Severity
from lintfit.findings.results import CheckResult
from lintfit.options.rules_catalog import load_rules
from lintfit.report import View, in_cell, shown_path, whole
from lintfit.report.encoding import dumps
from lintfit.report.fingerprint import fingerprints
from lintfit.report.summary import skipped_files, unknown_runs

_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def render(result: CheckResult, view: View) -> str:
    """One SARIF log with one run; columns count UTF-16 code units, as the format's default is."""
    rules = sorted({(finding.code, finding.rule) for finding in result.findings})
    index = {rule: number for number, (_, rule) in enumerate(rules)}
    names = fingerprints(result.findings)
    driver = {
        "name": "lintfit",
        "version": __version__,
        "semanticVersion": __version__,
        "rules": [_rule(code, name) for code, name in rules],
    }
    results = [
        _result(finding, index[finding.rule], name) for finding, name in zip(result.findings, names, strict=True)
    ]
    notifications = [{"level": "error", "message": {"text": error}} for error in result.errors]
    for word, open_ends in (("unknown", unknown_runs(result)), ("skipped", skipped_files(result))):
        for name, reason in open_ends:
            notifications.append({"level": "note", "message": {"text": f"{word}: {name}: {reason}"}})
    run: dict[str, Any] = {
        "tool": {"driver": driver},
        "columnKind": "utf16CodeUnits",
        "invocations": [
            {"executionSuccessful": not result.errors, "toolExecutionNotifications": notifications},
        ],
        "results": results,
    }
    return dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]})


def _rule(code: str, name: str) -> dict[str, Any]:
    described: dict[str, Any] = {"id": name, "name": name, "properties": {"tags": ["llm-training"], "code": code}}
    try:
        rule = load_rules().get(name)
    except LintfitError:
        rule = None
    if rule is None:
        return described
    text = rule.explanation()
    return {
        **described,
        "shortDescription": {"text": rule.summary},
        "fullDescription": {"text": rule.summary},
        "help": {"text": text, "markdown": text},
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
    }


def _result(finding: Finding, index: int, fingerprint: str) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": finding.rule,
        "ruleIndex": index,
        "level": _LEVELS[finding.severity],
        "message": {"text": f"{finding.message}{in_cell(finding.place)}"},
        "locations": [_location(finding.place.document, finding.place.span)],
        "partialFingerprints": {"lintfit/v1": fingerprint},
    }
    if finding.related:
        result["relatedLocations"] = [
            {
                "id": number,
                **_location(related.place.document, related.place.span),
                "message": {"text": related.message},
            }
            for number, related in enumerate(finding.related, 1)
        ]
    if finding.fix is not None and finding.fix.edits:
        result["fixes"] = [_fix(finding.fix)]
    return result


def _location(document: Document, span: Span) -> dict[str, Any]:
    return {
        "physicalLocation": {
            "artifactLocation": _artifact(shown_path(document.path)),
            "region": _region(document, span),
        }
    }


def _artifact(path: str) -> dict[str, str]:
    return {"uri": quote(path, safe="/~:@!$&'()*+,;=", errors="surrogateescape")}


def _region(document: Document, span: Span) -> dict[str, int]:
    start, end = document.position(span.start), document.position(span.end)
    return {
        "startLine": start.line,
        "startColumn": _utf16_column(document, span.start, start.column),
        "endLine": end.line,
        "endColumn": _utf16_column(document, span.end, end.column),
    }


def _utf16_column(document: Document, offset: int, column: int) -> int:
    offset = document.in_file(offset)
    before = document.whole[offset - column + 1 : offset]
    return column if before.isascii() else len(before.encode("utf-16-le", "surrogatepass")) // 2 + 1


def _fix(fix: Fix) -> dict[str, Any]:
    by_path: defaultdict[str, list[FileEdit]] = defaultdict(list)
    for edit in fix.edits:
        by_path[shown_path(edit.path)].append(edit)
    return {
        "description": {"text": fix.message},
        "artifactChanges": [
            {"artifactLocation": _artifact(path), "replacements": [_replacement(edit) for edit in edits]}
            for path, edits in by_path.items()
        ],
    }


def _replacement(edit: FileEdit) -> dict[str, Any]:
    region: dict[str, int] = {"startLine": 1, "startColumn": 1, "endLine": 1, "endColumn": 1}
    change = edit.in_file
    if edit.document is not None:
        region = _region(whole(edit.document), change.span)
    return {"deletedRegion": region, "insertedContent": {"text": change.text}}
