"""Shell commands that stand in other files: a Makefile's recipes, a GitHub workflow's ``run`` steps, the docstring
and the leading comment of a Python script.

All that is no command is blanked out, so that every offset is one of the real file.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from lintfit.documents.model import FileText, Span
from lintfit.documents.patterns import lazy_pattern
from lintfit.documents.placeholders import without_angles
from lintfit.documents.python_syntax import UNPARSED, statements
from lintfit.documents.shell_expansion import expand
from lintfit.documents.shell_words import Fragment, Scope, Variable
from lintfit.documents.steps import Steps
from lintfit.documents.written_commands import blank, commands_in, passed_over

_MAKEFILES = frozenset({"Makefile", "makefile", "GNUmakefile"})
_ASSIGNMENT = lazy_pattern(
    r"^(?:export[ ]+|override[ ]+)?(?P<name>[A-Za-z_][\w.-]*)[ \t]*(?P<kind>:{0,3}=|\?=|\+=)[ \t]*"
    r"(?P<value>[^\r\n#]*?)[ \t]*(?:#.*)?$",
    re.MULTILINE,
)
_REFERENCE = lazy_pattern(r"\$\(([A-Za-z_]\w*)\)")
_RECIPE = lazy_pattern(r"^\t[ \t]*[@+-]*")
_EXPRESSION = lazy_pattern(r"\$\{\{[^{}\n]*(?:(?:\{(?!\{)|\}(?!\}))[^{}\n]*)*\}\}")
_STRINGS = 3
"""The first statements of a module, among which its docstring is (a licence may be a string in front of it)."""
_PASSES = 4
"""How deep variables of a Makefile may refer to one another."""


def is_makefile(path: Path) -> bool:
    return path.name in _MAKEFILES or path.suffix == ".mk"


def is_workflow(path: Path) -> bool:
    """Whether a path is that of a GitHub workflow."""
    return path.suffix in (".yml", ".yaml") and path.parts[-3:-1] == (".github", "workflows")


def is_python(path: Path) -> bool:
    """Whether a path is that of a Python script, whose docstring may say how it is started."""
    return path.suffix == ".py"


def in_docstring(text: str) -> str:
    """A Python script with blanks for all but the commands in its docstring and in the comment that it begins with."""
    lines = text.splitlines(keepends=True)
    kept = [blank(line) for line in lines]
    for first, last in (*_docstrings(text), (0, _comment(lines))):
        last = min(last, len(lines))
        said = (_uncommented(line) for line in lines[first:last])
        kept[first:last] = [without_angles(line) for line in commands_in(said)]
    return "".join(kept)


def _comment(lines: Sequence[str]) -> int:
    """How many lines of comments and blanks a module begins with."""
    return next((index for index, line in enumerate(lines) if line.strip() and not line.startswith("#")), len(lines))


def _uncommented(line: str) -> str:
    if line.startswith("#!"):
        return blank(line)
    return f" {line[1:]}" if line.startswith("#") else line


def _docstrings(text: str) -> Iterator[tuple[int, int]]:
    """The lines of the strings that a module begins with, from zero, without the last one's end."""
    try:
        first = statements(text)[:_STRINGS]
    except UNPARSED:
        return
    for statement in first:
        value = statement.value if isinstance(statement, ast.Expr) else None
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            # The first line and the last hold the quotes.
            yield value.lineno, (value.end_lineno or value.lineno) - 1


def recipes(text: str) -> str:
    """A Makefile with blanks for all but its recipes; make's ``$(NAME)`` as the shell's, ``$$`` as a plain dollar."""
    lines: list[str] = []
    goes_on = False
    for line in converted(text).splitlines(keepends=True):
        recipe = _RECIPE.match(line)
        if recipe is not None and not goes_on:
            line = " " * recipe.end() + line[recipe.end() :]
        elif not goes_on:
            line = blank(line)
        goes_on = (recipe is not None or goes_on) and line.rstrip("\r\n").endswith("\\")
        lines.append(line)
    return "".join(lines)


def converted(text: str) -> str:
    """Make's references in the shell's form, of the same length."""
    return _REFERENCE.sub(r"${\1}", text.replace("$$", "\\$"))


def make_variables(text: str, steps: Steps) -> Mapping[str, Variable]:
    """The variables of a Makefile by name, as far as their values are known."""
    source = converted(text)
    variables: dict[str, Variable] = {}
    for _ in range(_PASSES):
        known, variables = variables, {}
        for match in _ASSIGNMENT.finditer(source):
            name, kind = match["name"], match["kind"]
            old = variables.get(name)
            if kind == "?=" and old is not None:
                continue
            span = Span(*match.span("value"))
            lists = expand(source, span, Scope(variables={**known, **variables}, steps=steps))
            parts = tuple(part for fragments in lists for part in fragments)
            if kind == "+=" and old is not None:
                parts = (*old.elements[0], Fragment(" ", None), *parts)
            variables[name] = Variable(name, (parts,), Span(*match.span()), span)
    return variables


def run_steps(file: FileText) -> Iterator[str]:
    """The text of a workflow up to the end of a ``run`` step, with a comment for all above it, for each of them."""
    from lintfit.documents.yaml_reader import read_yaml

    root = read_yaml(replace(file, path=Path("workflow.yml"))).root
    text = file.text
    for _, node in root.walk() if root is not None else ():
        entry = node.entry("run")
        if entry is None or not isinstance(entry.value.value, str):
            continue
        start, end = entry.value.span.start, entry.value.span.end
        if text[start : start + 1] in ("|", ">"):
            start = text.find("\n", start, end) + 1 or end
        elif text[start : start + 1] in ("'", '"'):
            start, end = start + 1, end - 1
        step = _EXPRESSION.sub(lambda match: "$" + "_" * (len(match.group()) - 1), text[start:end])
        yield passed_over(start) + step
