"""The same training started by a file that puts no FlashAttention in: ``train.py`` beside ``train_mem.py``.

FastChat and LLaVA have the two, and so has what comes of them. The one patches transformers, or asks for FlashAttention
2 in its call, and calls a function of the other, which calls it as well where it is started itself.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from lintfit.documents.model import Document, Edit, FileEdit, Kind
from lintfit.documents.patterns import lazy_pattern

if TYPE_CHECKING:
    from lintfit.run.model import Run

_STARTED = lazy_pattern(
    r"^if __name__ *== *['\"]__main__['\"] *:[^\n]{0,80}\n(?P<body>(?:[ \t][^\n]*\n?|\n){1,20})", re.M
)
_PATCH = lazy_pattern(r"\w*flash_?att\w*|\w*xformers\w*", re.IGNORECASE)
_LONGEST = 4 << 10
"""Characters of such a script: those of fifty public repositories have a dozen lines."""


def plain_entry(run: Run) -> tuple[FileEdit, ...] | None:
    """The edit that makes the launch start the file that its script takes the training from; None where there is none.

    The script may do nothing else: imports, the patch, and the training where it is started.
    """
    launch, document = run.launch, run.script.document if run.script is not None else None
    word = launch.invocation.script if launch is not None else None
    if launch is None or document is None or word is None or launch.fixed or not word.editable:
        return None
    found = _handed_on(document)
    written = launch.document.text[word.span.start : word.span.end]
    head, stem, tail = written.rpartition(document.path.stem)
    if found is None or not stem:
        return None
    name, function = found
    path = document.path.with_name(f"{name}.py")
    other = next((each for each in run.documents if each.path == path), None)
    if other is None or path == document.path or not _starts(other, function):
        return None
    return (FileEdit(launch.document.path, Edit(word.span, f"{head}{name}{tail}"), launch.document),)


def _starts(document: Document, function: str) -> bool:
    """Whether a file calls one of its functions where it is started, and nothing else."""
    found = _STARTED.search(document.text)
    return found is not None and found["body"].strip() == f"{function}()"


def _handed_on(document: Document) -> tuple[str, str] | None:
    """The file and its function that a script calls with its attention in place; None where it does more."""
    taken: dict[str, str] = {}
    called = ""
    for statement in _statements(document):
        match statement:
            case ast.ImportFrom(module=str(module), names=names):
                taken |= {each.asname or each.name: module.rpartition(".")[2] for each in names}
            case ast.Import() | ast.Expr(value=ast.Constant()):
                pass
            case ast.Expr(value=ast.Call(func=ast.Name(id=name), args=[], keywords=[])) if _PATCH.fullmatch(name):
                pass
            case ast.If(test=ast.Compare(left=ast.Name(id="__name__")), body=[one], orelse=[]):
                called = _called(one)
            case _:
                return None
    return (taken[called], called) if called in taken else None


def _called(statement: ast.stmt) -> str:
    """The function that a statement calls, with a kernel of attention or nothing; empty where it is another one."""
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Name(id=name), args=[], keywords=keywords)):
            return name if all(each.arg == "attn_implementation" for each in keywords) else ""
    return ""


def _statements(document: Document) -> list[ast.stmt]:
    """The statements of a short script; none of any other."""
    if document.kind is not Kind.PYTHON or len(document.text) > _LONGEST:
        return []
    try:
        return ast.parse(document.text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
