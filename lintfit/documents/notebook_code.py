"""A notebook's code cells joined in order as one Python script.

What IPython alone understands (``!pip install``, ``%cd``, ``obj?``) gives way to Python of the same length that does
nothing; so does a cell that is none (``%%bash``, ``%%writefile``), and one that cannot be parsed, which costs itself.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator

from lintfit.documents.embedded import Embedder
from lintfit.documents.limits import too_long
from lintfit.documents.model import FileText
from lintfit.documents.notebook import Cell, Notebook
from lintfit.documents.patterns import lazy_pattern
from lintfit.documents.python_syntax import UNPARSED, statements
from lintfit.documents.written_commands import blank
from lintfit.frozen import frozen, replace, word_set

_TOKEN = lazy_pattern(
    r"(?P<string>(?:\"\"\"|''')|[\"'])|(?P<comment>\#[^\n]*)|(?P<open>[(\[{])|(?P<close>[)\]}])"
    r"|(?P<joined>\\\n)|(?P<line>\n)"
)
_ENDS = {
    '"""': lazy_pattern(r'(?:[^"\\]|\\.|"(?!""))*"""', re.DOTALL),
    "'''": lazy_pattern(r"(?:[^'\\]|\\.|'(?!''))*'''", re.DOTALL),
    '"': lazy_pattern(r'(?:[^"\\\n]|\\.)*"', re.DOTALL),
    "'": lazy_pattern(r"(?:[^'\\\n]|\\.)*'", re.DOTALL),
}
_MAGIC = lazy_pattern(r"(?P<indent>[ \t]*)(?P<sign>!!?|%)[ \t]*(?=\S)")
_ASSIGNED = lazy_pattern(
    r"(?P<before>[ \t]*[A-Za-z_][\w.]*(?:[ \t]*,[ \t]*[A-Za-z_]\w*)*[ \t]*=[ \t]*)(?P<sign>!|%)(?=\S)"
)
_HELP = lazy_pattern(r"[ \t]*(?:\?{1,2}[\w.%]+|%{0,2}[\w.\[\]]+\?{1,2})[ \t]*$")
_CELL_MAGIC = lazy_pattern(r"\s*%%(?P<name>\w+!?)(?P<rest>[^\n]*)")
_OTHER_LANGUAGES = word_set("""
    bash cmd cython dart file html javascript js julia latex markdown perl R ruby script sh sql svg system sx writefile
    """)
"""Cell magics whose cell is no Python, whatever it looks like."""


@frozen
class Line:
    """A line of a cell that IPython handles: ``start`` is its first character, ``command`` that of what stands behind
    ``sign``, ``end`` the line break behind it, which a backslash at its end puts off. ``indented``: in a block."""

    sign: str
    start: int
    command: int
    end: int
    indented: bool


def cell_magic(source: str) -> re.Match[str] | None:
    """The ``%%name`` that a cell begins with, if any."""
    return _CELL_MAGIC.match(source)


def is_python_cell(source: str) -> bool:
    """Whether a cell is Python, behind its cell magic too (``%%capture``, ``%%time``)."""
    found = cell_magic(source)
    return found is None or found["name"].rstrip("!") not in _OTHER_LANGUAGES


def magic_lines(source: str) -> Iterator[Line]:
    """The lines at which IPython takes over, in order: no line within a string or brackets is one."""
    for start in _statement_lines(source):
        end = source.find("\n", start)
        end = len(source) if end < 0 else end
        line = source[start:end]
        found = _MAGIC.match(line)
        assigned = _ASSIGNED.match(line) if found is None else None
        if found is not None:
            yield Line(found["sign"], start, start + found.end(), _continued(source, end), bool(found["indent"]))
        elif assigned is not None:
            sign = start + assigned.end("before")
            yield Line("=" + assigned["sign"], sign, sign + 1, _continued(source, end), line[:1].isspace())
        elif _HELP.match(line):
            yield Line("?", start, end, end, False)


def _continued(source: str, end: int) -> int:
    """The end of a line, with those that a backslash joins to it."""
    while source[:end].endswith("\\") and end < len(source):
        following = source.find("\n", end + 1)
        end = len(source) if following < 0 else following
    return end


def _statement_lines(source: str) -> Iterator[int]:
    """Where the lines begin that do not go on with a string, brackets or a backslash of the line above."""
    depth, at, last = 0, 0, -1
    yield 0
    while (found := _TOKEN.search(source, at)) is not None:
        at = found.end()
        if found["string"] is not None:
            closing = _ENDS[found["string"]].match(source, at)
            at = closing.end() if closing is not None else at
        elif found["open"] is not None:
            depth += 1
        elif found["close"] is not None:
            depth = max(0, depth - 1)
        elif found["line"] is not None and depth == 0 and at != last:
            last = at
            yield at
            skipped = _MAGIC.match(source, at) or _ASSIGNED.match(source, at)
            if skipped is not None:
                # What a shell reads may hold a quote of its own.
                end = source.find("\n", at)
                at = _continued(source, len(source) if end < 0 else end)


def _masked_lines(source: str) -> str:
    """A cell's source with Python of the same length for what IPython alone understands."""
    parts: list[str] = []
    at = 0
    first = cell_magic(source)
    if first is not None:
        parts.append(blank(source[: first.end()]))
        at = first.end()
    for line in magic_lines(source):
        if line.start < at:
            continue
        parts += (source[at : line.start], _nothing(source[line.start : line.end], line.sign))
        at = line.end
    return "".join((*parts, source[at:]))


def _nothing(text: str, sign: str) -> str:
    """Python that does nothing and is as long as a line of IPython's, its indentation and line breaks kept."""
    indent = len(text) - len(text.lstrip(" \t"))
    room = len(text.split("\n", 1)[0]) - indent
    word = "_" if sign.startswith("=") else "pass" if room >= 4 else "..." if room == 3 else "0"
    return text[:indent] + word + blank(text[indent + len(word) :])


def python_of(cell: Cell) -> tuple[str, bool]:
    """The cell's source as Python of the same length, and whether it could be parsed; blank where it is none."""
    if not is_python_cell(cell.source):
        return blank(cell.source), True
    masked = cell.source if cell_magic(cell.source) is None and _parses(cell.source) else _masked_lines(cell.source)
    if _parses(masked):
        return masked, True
    return blank(cell.source), False


def _parses(source: str) -> bool:
    if too_long(source):
        return False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(source, "cell", "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def as_python(file: FileText, notebook: Notebook) -> FileText:
    """The notebook as one script. Each cell is a region, known by its number."""
    embedder = Embedder(notebook.text)
    for region, cell in enumerate(notebook.cells):
        text, _ = python_of(cell)
        if text.isspace():
            embedder.made_up(text)  # nothing is to be written into it
        else:
            cell.add_to(embedder, region, text)
        embedder.made_up("\n")
    styles = tuple(cell.style for cell in notebook.cells)
    labels = tuple((cell.number, 0) for cell in notebook.cells)
    return replace(file, text=embedder.text, within=embedder.embedding(styles, labels))


def unparsed(notebook: Notebook) -> tuple[int, ...]:
    """The numbers of the cells that are Python and cannot be parsed."""
    return tuple(cell.number for cell in notebook.cells if not python_of(cell)[1])


class Statements:
    """The statements at the top of a cell's Python, and where they and their parts stand in the cell."""

    def __init__(self, source: str) -> None:
        self.source = source
        self._starts = [0, *(found.end() for found in re.finditer("\n", source))]
        try:
            self.body = statements(source)
        except UNPARSED:
            self.body = []

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        """The offsets of a node's first character and of the one behind its last."""
        end_line, end_column = node.end_lineno or node.lineno, node.end_col_offset or 0
        return self._offset(node.lineno, node.col_offset), self._offset(end_line, end_column)

    def _offset(self, line: int, column: int) -> int:
        """``ast`` counts bytes of UTF-8."""
        start = self._starts[line - 1]
        text = self.source[start : start + column]
        if not text.isascii():
            text = self.source[start:].encode()[:column].decode("utf-8", "ignore")
        return start + len(text)
