"""Whether a file of no known use is broken for everybody, not only for the libraries that lintfit knows."""

from __future__ import annotations

import json
import re

from lintfit.documents.model import SYNTAX_ERROR, DataDocument, Document, Kind
from lintfit.documents.patterns import lazy_pattern

_TEMPLATE = lazy_pattern(r"\{\{|\{%")
_TEMPLATE_LINE = lazy_pattern(r"^[ \t]*+\{%.*%\}[ \t\r]*$", re.MULTILINE)


def is_broken(document: Document) -> bool:
    """Whether a document has a syntax error that every reader of its kind stops at.

    Several YAML documents in one file, tags of other tools, JSON Lines and templates are none.
    """
    if not any(problem.code == SYNTAX_ERROR for problem in document.problems):
        return False
    if not isinstance(document, DataDocument):
        return _TEMPLATE_LINE.search(document.text) is None
    if document.root is not None or _TEMPLATE.search(document.text) or not document.text.strip():
        return False
    return document.kind is Kind.YAML or not _is_json_lines(document.text)


def is_refused(document: DataDocument) -> bool:
    """Whether the library that is handed this config stops as it parses it: of YAML also at a second document, which
    ``safe_load`` takes for none of its own (PyYAML's ``Composer.get_single_node``, by which Accelerate, axolotl and
    ``HfArgumentParser`` read theirs; OmegaConf's loader is one of PyYAML's, too)."""
    told = document.kind is Kind.YAML and any(problem.code == SYNTAX_ERROR for problem in document.problems)
    return document.root is None or (told and document.text.strip() != "")  # of an empty file they get None


def _is_json_lines(text: str) -> bool:
    first, _, rest = text.lstrip().partition("\n")
    if not rest.strip():
        return False
    try:
        json.loads(first)
    except (ValueError, RecursionError):
        return False
    return True
