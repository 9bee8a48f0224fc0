"""A notebook's shell commands as one script: ``!`` and ``%`` lines, ``%%bash`` cells, files that ``%%writefile`` makes.

Each ``!`` line has a shell of its own, started in the notebook's folder or where ``%cd`` leads; ``%env`` and
``os.environ`` of Python's lines hold for all that follow, and so do names of Python's that a line asks for
(``{MODEL}``, ``$MODEL``), as far as they are given plain values.
"""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from operator import attrgetter

from lintfit.documents.embedded import Embedder, Embedding, Style
from lintfit.documents.model import FileText, Span
from lintfit.documents.notebook import Cell, Notebook
from lintfit.documents.notebook_code import Line, Statements, cell_magic, is_python_cell, magic_lines, python_of
from lintfit.documents.notebook_files import Contents, Written
from lintfit.documents.patterns import lazy_pattern
from lintfit.frozen import frozen, replace

END = "LINTFIT_END_OF_CELL"
"""The word that ends a here-document in which the text of ``%%writefile`` is read."""
UNKNOWN_NAME = "_of_python"
"""A variable that nothing sets: an expression of Python's within a command."""

_SHELLS = frozenset({"bash", "sh"})
_FILE = lazy_pattern(r"(?:\s+-a)?\s+(?P<quote>[\"']?)(?P<name>[^\s\"']+)(?P=quote)\s*$")
_INSERTED = lazy_pattern(
    r"\{(?P<name>[A-Za-z_]\w*)\}|\{(?P<expression>[A-Za-z_][^{}\n]*)\}|(?P<dollars>\$\$(?=[A-Za-z_]))"
)
_OWN_SHELL = lazy_pattern(r"\b(?:cd|export|source|set|pushd)\b|^\s*[A-Za-z_]\w*=")
_SET = lazy_pattern(r"(?:env|set_env)\s+(?P<name>[A-Za-z_]\w*)(?:\s*=\s*|\s+)(?P<value>.*\S)")
_WORKS = lazy_pattern(r"![ \t]*\S|%|writefile|environ")


def has_commands(notebook: Notebook) -> bool:
    """Whether a notebook has anything for a shell; a cheap look."""
    return any(_WORKS.search(cell.source) is not None for cell in notebook.cells)


def as_shell(file: FileText, notebook: Notebook) -> FileText:
    """The notebook's commands as one script; each region is a line or a cell's text, known by the cell's number."""
    script = _Script(notebook)
    for cell in notebook.cells:
        script.add_cell(cell)
    return replace(file, text=script.embedder.text, within=script.embedding())


class _Script:
    def __init__(self, notebook: Notebook) -> None:
        self.embedder = Embedder(notebook.text)
        self._styles: list[Style] = []
        self._labels: list[tuple[int, int]] = []
        self._cells: list[Cell] = []
        self._contents = Contents()

    def embedding(self) -> Embedding:
        return self.embedder.embedding(tuple(self._styles), tuple(self._labels))

    def add_cell(self, cell: Cell) -> None:
        self._cells.append(cell)
        magic = cell_magic(cell.source)
        name = magic["name"].rstrip("!") if magic is not None else ""
        if magic is not None and name in ("writefile", "file"):
            self._file(cell, magic)
        elif magic is not None and (name in _SHELLS or (name == "script" and magic["rest"].split()[:1] == ["bash"])):
            self.embedder.made_up("(\n")
            self._own(cell, magic.end(), len(cell.source))
            self.embedder.made_up("\n)\n")
        elif is_python_cell(cell.source):
            self._python_cell(cell)

    def _file(self, cell: Cell, magic: re.Match[str]) -> None:
        found = _FILE.match(magic["rest"])
        if found is None or " -a" in magic["rest"]:
            return
        self.embedder.made_up(f"cat > {found['name']} <<'{END}'\n")
        self._own(cell, min(magic.end() + 1, len(cell.source)), len(cell.source))
        self.embedder.made_up(f"{'' if cell.source.endswith(chr(10)) else chr(10)}{END}\n")

    def _python_cell(self, cell: Cell) -> None:
        python, _ = python_of(cell)
        statements = Statements(python)
        files = self._contents.of_cell(len(self._cells) - 1, statements)
        found: list[_Assigned | Written | Line] = [*_assignments(statements), *files, *magic_lines(cell.source)]
        for each in sorted(found, key=attrgetter("start")):
            if isinstance(each, Line):
                self._line(cell, each)
            elif isinstance(each, Written):
                self._written(each)
            else:
                self._made(each.text, cell, each.start, each.end)
                self.embedder.made_up("\n")

    def _written(self, file: Written) -> None:
        """A file that Python writes, as a here-document."""
        content = file.content
        cell = self._cells[content.cell]
        self.embedder.made_up(f"cat > {file.name} <<'{END}'\n")
        if content.plain:
            self._own(cell, content.start, content.end)
        else:
            self._made(content.text, cell, content.start, content.end)
        self.embedder.made_up(f"\n{END}\n")

    def _made(self, text: str, cell: Cell, start: int, end: int) -> None:
        """Text that stands for some of a cell's, which is another."""
        outer = cell.outer(start, end)
        self.embedder.add(text, outer.start, outer.end, self._region(cell, start))

    def _line(self, cell: Cell, line: Line) -> None:
        if line.sign in ("!", "!!", "=!"):
            self._command(cell, line, line.command)
            return
        if not line.sign.endswith("%"):
            return
        text = cell.source[line.command : line.end]
        word = re.match(r"\w+", text)
        name = word.group() if word is not None else ""
        if name in ("pip", "conda", "cd", "sx", "system"):
            self._command(cell, line, line.command + (len(name) if name in ("sx", "system") else 0))
        elif name == "run" and re.match(r"run\s+(?:-\w+\s+)*\S+\.py\b", text):
            self.embedder.made_up("python ")
            self._command(cell, line, line.command + len(name))
        elif (found := _SET.match(text)) is not None:
            value = Span(line.command + found.start("value"), line.command + found.end("value"))
            self.embedder.made_up(f"export {found['name']}=")
            self._inserted(cell, value.start, value.end, quote=True)
            self.embedder.made_up("\n")

    def _command(self, cell: Cell, line: Line, start: int) -> None:
        """A command as the shell gets it, in a shell of its own where it would change the script's.

        One whose quotes do not close is left out: it would take the next ones along.
        """
        if not _closes(cell.source[start : line.end]):
            return
        own = line.sign != "%" and _OWN_SHELL.search(cell.source, start, line.end) is not None
        if line.indented:
            self.embedder.made_up(f'if [ "${UNKNOWN_NAME}" ]; then\n')
        if own:
            self.embedder.made_up("(\n")
        self._inserted(cell, start, line.end)
        self.embedder.made_up("\n)\n" if own else "\n")
        if line.indented:
            self.embedder.made_up("fi\n")

    def _inserted(self, cell: Cell, start: int, end: int, quote: bool = False) -> None:
        """The text of a command, with the shell's form for what IPython inserts from Python."""
        at = start
        region = self._region(cell, start)
        text = cell.source[start:end]
        quotes = quote and re.search(r"\s", text) is not None and text[0] not in "\"'"
        self.embedder.made_up('"' if quotes else "")
        for found in _INSERTED.finditer(cell.source, start, end):
            if found.start() and cell.source[found.start() - 1] == "$":
                continue  # the shell's own ${NAME}
            cell.add_to(self.embedder, region, cell.source, at, found.start())
            outer = cell.outer(*found.span())
            shell = "$" if found["dollars"] else f"${{{found['name'] or UNKNOWN_NAME}}}"
            self.embedder.add(shell, outer.start, outer.end, region)
            at = found.end()
        cell.add_to(self.embedder, region, cell.source, at, end)
        self.embedder.made_up('"' if quotes else "")

    def _own(self, cell: Cell, start: int, end: int) -> None:
        cell.add_to(self.embedder, self._region(cell, start), cell.source, start, end)

    def _region(self, cell: Cell, start: int) -> int:
        self._styles.append(cell.style)
        self._labels.append((cell.number, cell.source.count("\n", 0, start)))
        return len(self._styles) - 1


def _closes(command: str) -> bool:
    try:
        shlex.split(command, comments=True)
    except ValueError:
        return False
    return True


@frozen
class _Assigned:
    """A statement of Python's that sets something, and the same in the shell's words."""

    text: str
    start: int
    end: int


def _assignments(statements: Statements) -> Iterator[_Assigned]:
    """What Python's lines at the top of a cell set that commands may ask for, in the shell's words.

    A name that is given something else than a plain value is known no longer.
    """
    for statement in statements.body:
        if isinstance(statement, ast.Assign):
            found = (_in_shell(target, statement.value) for target in statement.targets)
            yield from (_Assigned(text, *statements.span(statement)) for text in found if text is not None)


def _in_shell(target: ast.expr, value: ast.expr) -> str | None:
    plain = isinstance(value, ast.Constant) and isinstance(value.value, str | int | float)
    text = shlex.quote(str(value.value)) if isinstance(value, ast.Constant) and plain else f"${UNKNOWN_NAME}"
    if isinstance(target, ast.Name):
        return f"{target.id}={text}" if len(text) < 500 else None
    if not (isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant)):
        return None
    name, owner = target.slice.value, target.value
    environ = isinstance(owner, ast.Attribute) and owner.attr == "environ"
    return f"export {name}={text}" if environ and isinstance(name, str) and name.isidentifier() else None
