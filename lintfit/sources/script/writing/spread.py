"""What a call spreads as ``**kwargs``, where its keywords stand: a ``dict(...)`` of the script, a section of a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from lintfit.documents.python_walk import walk
from lintfit.sources.script.interpreter.origins import Datum

if TYPE_CHECKING:
    from lintfit.documents.model import DataDocument, KeyPath, Span
    from lintfit.documents.python_reader import PythonDocument
    from lintfit.sources.script.interpreter.values import Record
    from lintfit.sources.script.reading.calls import Calls


def made_with(document: PythonDocument, value: Span) -> cst.Call | None:
    """The ``dict(...)`` of a file that has this value for one of its keywords."""
    if document.module is None:
        return None
    for node in walk(document.module):
        if not (isinstance(node, cst.Call) and isinstance(node.func, cst.Name) and node.func.value == "dict"):
            continue
        if any(each.keyword and document.span(each.value) == value for each in node.args):
            return node
    return None


def keywords_of(calls: Calls, record: Record) -> cst.Call | None:
    """The ``dict(...)`` that says all of a call's keywords; None where the call says one itself."""
    if any(passed.name is not None and passed.node.star != "**" for passed in record.passed):
        return None
    origins = (passed.value.origin for passed in record.passed if passed.node.star == "**")
    origin = next((each for each in origins if isinstance(each, cst.CSTNode)), None)
    if origin is None:
        return None
    document = calls.document_of(origin)
    return made_with(document, document.span(origin))


def dict_of(calls: Calls, record: Record) -> cst.Dict | None:
    """The dict literal that a call spreads as all of its keywords, and nothing else does; None where there is none."""
    if len(record.node.args) != 1 or not isinstance(spread := record.node.args[0].value, cst.Name):
        return None
    for passed in record.passed:
        origin = passed.value.origin
        if passed.node.star != "**" or not isinstance(origin, cst.CSTNode) or not calls.is_written(origin):
            continue
        document = calls.document_of(origin)
        made = document.parent(document.parent(origin) or origin)
        if isinstance(made, cst.Dict) and document is calls.document_of(record.node):
            name, alone = _assigned(document.parent(made)), document.text.count(f"**{spread.value}") == 1
            return made if name == spread.value and alone else None
    return None


def _assigned(statement: cst.CSTNode | None) -> str:
    """The one name that an assignment binds; empty for anything else."""
    match statement:
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))]):
            return name
        case cst.AnnAssign(target=cst.Name(value=name)):
            return name
    return ""


def data_of(record: Record) -> tuple[DataDocument, KeyPath] | None:
    """The section of a file that a call spreads as its keywords (``TrainingArguments(**config["training_args"])``)."""
    origins = [passed.value.origin for passed in record.passed if passed.node.star == "**"]
    homes = [(each.document, each.path[:-1]) for each in origins if isinstance(each, Datum) and each.path]
    return homes[0] if homes and len(homes) == len(origins) and all(home == homes[0] for home in homes) else None
