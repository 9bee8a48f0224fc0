"""Python that is short and that libcst takes long for all the same: chains without end, brackets in brackets."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from lintfit.documents.limits import FEW_MARKS, MAX_COPIED, MAX_LEVELS, MAX_WORDS, has_marks

_LEFT = {ast.Call: "func", ast.Attribute: "value", ast.Subscript: "value", ast.BinOp: "left"}
"""What libcst copies for every link of a chain that it is given, by the link's kind."""
_SHORT = 50
"""Nodes of a link that is copied in no time."""
_SHORT_LINE = 2000
"""Nodes that a line may have copied which nobody counts."""
_WORDS = re.compile(r"\b(?:and|or)\b")
_TOKENS = re.compile(
    r"""\"{3}(?:[^\\]|\\.)*?"{3}|'{3}(?:[^\\]|\\.)*?'{3}"""
    r"""|"[^"\\\n]*(?:\\.[^"\\\n]*)*"?|'[^'\\\n]*(?:\\.[^'\\\n]*)*'?|\#[^\n]*|\\\r?\n|[\[({\])}\n.+*/@%&|^-]""",
    re.DOTALL,
)
"""Strings, comments and continued lines, so that what stands in them is none of the brackets, joints and lines. Without
possessive repeats, which Python 3.11.2 gets wrong; a string that nothing ends goes on to the end of its line."""


def takes_long(text: str, body: Sequence[ast.stmt] | None = None) -> bool:
    """Whether libcst would take seconds for a text, of which ``body`` are the statements; without them, whether it
    might."""
    if len(_WORDS.findall(text)) > MAX_WORDS and (body is None or _in_a_row(body) > MAX_WORDS):
        return True
    if not has_marks(text, FEW_MARKS):
        return False
    levels, copied = _looked_over(text)
    # What a line may have copied is far more than what most have: only the tree tells.
    return levels > MAX_LEVELS or (copied > MAX_COPIED and (body is None or _copied(body) > MAX_COPIED))


def _in_a_row(body: Sequence[ast.AST]) -> int:
    """The most conditions that ``and`` or ``or`` joins: libcst has each within the one behind it, and where the stack
    ends, so does the process."""
    joined = (node for each in body for node in ast.walk(each) if isinstance(node, ast.BoolOp))
    return max((len(node.values) for node in joined), default=0)


def _looked_over(text: str) -> tuple[int, int]:
    """The brackets of a text, each by those around it, and the nodes that libcst copies at most."""
    level = levels = copied = joints = start = 0
    for found in _TOKENS.finditer(text + "\n"):
        token = found.group()
        if token in "([{":
            level += 1
            levels += level
            joints += 1
        elif token in ")]}":
            level -= 1
        elif token != "\n":
            joints += len(token) == 1
        elif level <= 0:
            most = joints * (found.start() - start) // 4
            copied += most if most > _SHORT_LINE else 0
            joints, start = 0, found.start()
    return levels, copied


def _copied(body: Sequence[ast.AST]) -> int:
    """The nodes of all that stands to the left of a link."""
    nodes, parents = [*body], [-1] * len(body)
    for index, node in enumerate(nodes):
        inner = [*ast.iter_child_nodes(node)]
        nodes += inner
        parents += [index] * len(inner)
    sizes, copied = [1] * len(nodes), 0
    for index in range(len(nodes) - 1, len(body) - 1, -1):
        parent = parents[index]
        sizes[parent] += sizes[index]
        left = _LEFT.get(type(nodes[parent]))
        if left is not None and sizes[index] > _SHORT and getattr(nodes[parent], left) is nodes[index]:
            copied += sizes[index]
    return copied
