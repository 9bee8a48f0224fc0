"""Functions of a script that several places call: a statement in one is no place for what one model alone is to get."""

from __future__ import annotations

import re

import libcst as cst

from lintfit.errors import CannotWrite
from lintfit.sources.script.reading.calls import Calls


def for_one_caller(calls: Calls, line: cst.CSTNode) -> None:
    """Raises CannotWrite where a statement stands in a function that is called from several places.

    What is right for one of the models that it makes may be wrong for the others: a reference, a reward model, a mean
    of the weights.
    """
    document = calls.document_of(line)
    node: cst.CSTNode | None = line
    while node is not None and not isinstance(node, cst.FunctionDef):
        node = document.parent(node)
    if node is None:
        return
    name = re.escape(node.name.value)
    called, own = re.compile(rf"(?<!def )(?<!\w){name}\("), re.compile(rf"\bdef {name}\(")
    # A module that has a function of this name itself calls that one: every script has a main().
    texts = (text for text in calls.texts() if text is document.text or own.search(text) is None)
    if sum(len(called.findall(text)) for text in texts) > 1:
        raise CannotWrite(f"{node.name.value}() of {document.path.as_posix()} makes other models, too")
