"""The JSON contract: one object with runs, findings and a summary; bytes, 1-based lines and columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from lintfit import __version__
from lintfit.documents.model import Edit, FileEdit, Span
from lintfit.findings.model import Finding, Fix, Plan, Severity
from lintfit.findings.questions import Sweep, WhatIf
from lintfit.findings.results import CheckResult, RunResult
from lintfit.memory.result import Verdict
from lintfit.memory.spec import GIB
from lintfit.report import View, shown_path
from lintfit.report.encoding import SCHEMA_VERSION, dumps
from lintfit.settings.model import UNKNOWN, Place, Provenance, Special
from lintfit.verdict.would_fit import WouldFit


def render(result: CheckResult, view: View) -> str:
    """The result as one JSON document."""
    return dumps(to_json(result))


def to_json(result: CheckResult) -> dict[str, Any]:
    """The result as plain dicts and lists, keys in the order of the contract."""
    count = dict.fromkeys(Severity, 0)
    for finding in result.findings:
        count[finding.severity] += 1
    return {
        "schema_version": SCHEMA_VERSION,
        "lintfit_version": __version__,
        "runs": [run_json(run) for run in result.runs],
        "findings": [finding_json(finding) for finding in result.findings],
        "skipped": [{"path": shown_path(each.path), "reason": each.reason} for each in result.skipped],
        "summary": {
            "errors": count[Severity.ERROR],
            "warnings": count[Severity.WARNING],
            "infos": count[Severity.INFO],
            "fixed": len(result.fixed),
            "ignored": len(result.ignored),
            "baselined": len(result.baselined),
            "refused_fixes": result.refused_fixes,
            "runs": {str(verdict): sum(run.verdict is verdict for run in result.runs) for verdict in Verdict},
            "files": result.files_read,
            "skipped": len(result.skipped),
        },
    }


def run_json(result: RunResult) -> dict[str, Any]:
    """One run: its documents, settings with where each comes from, estimate, verdict and plan."""
    run = result.run
    return {
        "id": run.id,
        "documents": [*dict.fromkeys(shown_path(document.path) for document in run.documents)],
        "settings": {
            name: {"value": plain(setting.value), "from": _provenance(setting.provenance)}
            for name, setting in run.settings.items()
        },
        "estimate": result.estimate.to_json() if result.estimate else None,
        "verdict": str(result.verdict),
        "unknown": list(result.unknown),
        **({"would_fit": [_would_fit(each) for each in result.would_fit]} if result.would_fit else {}),
        "plan": plan_json(result.plan) if result.plan else None,
        **({"alternatives": [plan_json(plan) for plan in result.alternatives]} if result.alternatives else {}),
    }


def what_if_json(answer: WhatIf, stated: Mapping[str, Any]) -> dict[str, Any]:
    """One run as it was asked about; what its files say of it stands under ``what_if``, where they say enough."""
    content = run_json(answer.after)
    before = answer.before
    if before is None or before.estimate is None:
        return content
    asked = {
        "changes": plain(stated),
        "before": before.estimate.to_json(),
        "verdict_before": str(before.verdict),
        "effects": list(answer.effects),
    }
    return {**content, "what_if": asked}


def sweep_json(found: Sweep) -> dict[str, Any]:
    """A run with every combination of a sweep: its peak and verdict, or the reason why there is no such run."""
    return {
        "id": found.run.run.id,
        "settings": list(found.settings),
        "cells": [
            {"values": plain(cell.values), "error": cell.reason}
            if cell.estimate is None
            else {
                "values": plain(cell.values),
                "peak_bytes": cell.estimate.to_json()["peak_bytes"],
                "verdict": str(cell.estimate.verdict),
            }
            for cell in found.cells
        ],
    }


def _would_fit(each: WouldFit) -> dict[str, Any]:
    """A usual GPU: whether the run fits on ``gpus`` of it, and with which changes of its settings (null for none)."""
    changes = [{"setting": name, "to": plain(value)} for name, value in each.changes.items()]
    memory = each.gpu.usable_bytes / GIB
    return {
        "gpu": each.gpu.name,
        "gpu_memory_gib": round(memory, 2),
        "gpus": each.gpus,
        "with": changes or None,
        "fits": each.fits,
    }


def finding_json(finding: Finding) -> dict[str, Any]:
    """One finding with its places, 1-based, ends exclusive."""
    place = finding.place
    end = place.document.position(place.span.end)
    return {
        "rule": finding.rule,
        "code": finding.code,
        "severity": str(finding.severity),
        "message": finding.message,
        **place_json(place),
        "end_line": end.line,
        "end_column": end.column,
        "related": [{**place_json(related.place), "message": related.message} for related in finding.related],
        "run": finding.run,
        "fix": _fix(finding.fix) if finding.fix else None,
    }


def place_json(place: Place) -> dict[str, Any]:
    """Path, line and column of the start of a place; of a notebook's also the cell (of all its cells) and its line."""
    position, cell = place.document.position(place.span.start), place.document.cell(place.span.start)
    found = {"path": shown_path(place.document.path), "line": position.line, "column": position.column}
    return found if cell is None else {**found, "cell": cell.cell, "cell_line": cell.line}


def plain(value: Any) -> Any:
    """A setting's value as JSON can say it; what is not statically known is null, ``auto`` is ``"auto"``."""
    if isinstance(value, Special):
        return None if value is UNKNOWN else value.value
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if value - value == 0 else str(value)
    if isinstance(value, Enum):
        return plain(value.value)
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted((plain(item) for item in value), key=str)
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, Path):
        return shown_path(value)
    if is_dataclass(value) and not isinstance(value, type):
        return plain(asdict(value))
    return str(value)


def _provenance(provenance: Provenance) -> dict[str, Any]:
    if provenance.place is not None:
        return {"kind": provenance.kind, **place_json(provenance.place)}
    return {"kind": provenance.kind, "detail": provenance.detail}


def _fix(fix: Fix) -> dict[str, Any]:
    return {
        "applicability": str(fix.applicability),
        "message": fix.message,
        "edits": [_edit(edit.path, edit.in_file) for edit in in_order(fix.edits)],
    }


def in_order(edits: tuple[FileEdit, ...]) -> list[FileEdit]:
    """Edits by path and place."""
    return sorted(edits, key=lambda edit: (shown_path(edit.path), edit.in_file.span))


def _edit(path: Path, edit: Edit) -> dict[str, Any]:
    span: Span = edit.span
    return {"path": shown_path(path), "start": span.start, "end": span.end, "text": edit.text}


def plan_json(plan: Plan) -> dict[str, Any]:
    return {
        "applicability": str(plan.applicability),
        "steps": [
            {
                "setting": step.setting,
                "from": plain(step.before),
                "to": plain(step.after),
                "path": shown_path(step.path),
            }
            for step in plan.steps
        ],
        "estimate": plan.estimate.to_json(),
        "verdict": str(plan.estimate.verdict),
        "relative_step_time": plan.relative_step_time,
        "name": plan.name,
        "effects": list(plan.effects),
        "files": [shown_path(path) for path in plan_files(plan)],
        "proof": plan.proof,
        **({"by_hand": plan.by_hand} if plan.by_hand else {}),
    }


def plan_files(plan: Plan) -> list[Path]:
    """The files that a plan edits, those that it makes first named last; none where it is to be carried out by hand."""
    found: dict[Path, bool] = {}
    for edit in plan.fix.edits:
        found[edit.path] = edit.document is None
    return sorted(found, key=lambda path: (found[path], path.as_posix()))
