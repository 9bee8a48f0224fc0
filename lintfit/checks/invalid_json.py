from __future__ import annotations

import re
from collections.abc import Iterator

from lintfit.checks.helpers.context import FileContext, Report
from lintfit.checks.helpers.fixes import spliced
from lintfit.checks.helpers.readers import reader_of, set_too_late
from lintfit.checks.helpers.wording import united
from lintfit.documents.broken import is_broken
from lintfit.documents.conflicts import RESOLVE, conflict
from lintfit.documents.model import Document, Kind, Problem
from lintfit.findings.model import Applicability, Fix, Related, Severity
from lintfit.settings.model import Place

_SURE = ("zero_optimi", "train_micro_batch_size_per_gpu")
_NAME = re.compile(r"(?i)deepspeed|(?:^|_)(?:ds|zero[0-3]?)(?:_|$)")
_TEMPLATE_NAME = re.compile(r"template", re.IGNORECASE)
_PLACEHOLDER = re.compile(r"\{\{|\{%|<[A-Z_]{3,}>|[:\[,]\s*(?:\$\{?\w+\}?|\{?[A-Z][A-Z0-9_]{2,}\}?)\s*[,}\]\n]")


def check_file(context: FileContext) -> Iterator[Report]:
    document = context.document
    meant = context.source is not None or _is_meant(context)
    named = context.named and document.kind is Kind.JSON and is_broken(document)
    template = _TEMPLATE_NAME.search(document.path.name) or _PLACEHOLDER.search(document.text)
    if document.kind is not Kind.JSON or template or not (meant or named):
        return
    merge = conflict(document.text)
    for problem in (merge,) if merge is not None else document.problems:
        if problem.code == "syntax-error":
            yield Report(
                Place(document, problem.span),
                f"not valid JSON: {problem.detail}; no library can read this {'config' if meant else 'file'}",
                related=tuple(Related(Place(document, span), message) for span, message in problem.related),
                help=RESOLVE if merge is not None else "",
            )
    loose = [problem for problem in document.problems if problem.code == "not-strict-json"]
    reader = reader_of(context.runs)
    if not loose or not meant or reader == "deepspeed":
        return
    yield Report(
        Place(document, loose[0].span),
        f"{united([problem.detail for problem in loose])}: DeepSpeed's own loader (HJSON) reads this, "
        "transformers and accelerate (json.load) stop with JSONDecodeError",
        severity=Severity.ERROR if reader else Severity.INFO if _is_read_by_none(context) else Severity.WARNING,
        related=tuple(Related(Place(document, problem.span), problem.detail) for problem in loose[1:]),
        fix=_strict(document, loose),
        help="keep the file strict JSON, so that every library reads it",
    )


def _is_read_by_none(context: FileContext) -> bool:
    """Whether all that names the file does so where nobody opens it any more."""
    return bool(context.runs) and all(map(set_too_late, context.runs))


def _strict(document: Document, problems: list[Problem]) -> Fix | None:
    if not all(problem.edits for problem in problems):
        return None
    edits = (edit for problem in problems for edit in problem.edits)
    return spliced(document, "rewrite as strict JSON with the same values", Applicability.SAFE, edits)


def _is_meant(context: FileContext) -> bool:
    """Whether a file that could not be read was to be a DeepSpeed config."""
    text = context.document.text
    return (
        bool(context.runs)
        or (context.named and not text.strip())
        or any(word in text for word in _SURE)
        or _NAME.search(context.document.path.stem) is not None
    )
