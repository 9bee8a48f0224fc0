"""Shell scripts: their commands with every word and the place it is written at, followed in order of execution.

tree-sitter-bash tells where commands, assignments, redirects and branches are; what a word comes to is worked out in
:mod:`lintfit.documents.shell_words`. Nothing is run.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Literal

import tree_sitter

from lintfit.documents.limits import MAX_BYTES, MAX_DEPTH, too_large
from lintfit.documents.model import NOT_READ, FileText, Kind, Problem, Span
from lintfit.documents.numerals import natural
from lintfit.documents.shell_conditions import LOOPS, clauses, reads_arguments, taken
from lintfit.documents.shell_directives import directives, slurm_counts
from lintfit.documents.shell_document import Assignment, Command, HereFile, ShellDocument
from lintfit.documents.shell_elsewhere import is_makefile, is_workflow, make_variables, recipes, run_steps
from lintfit.documents.shell_files import read_variable, redirections, written_file
from lintfit.documents.shell_source import Source
from lintfit.documents.shell_sourced import MAX_SOURCED, OpenText, arguments, candidates, opened, taken_over
from lintfit.documents.shell_words import (
    MAX_STEPS,
    Fragment,
    Scope,
    Variable,
    Word,
    as_words,
    expand,
    split,
    tokens,
    whole_substitutions,
    words,
)
from lintfit.documents.steps import Steps
from lintfit.frozen import frozen, replace

_ASSIGNMENT = re.compile(r"(?P<name>[A-Za-z_]\w*)(?P<subscript>\[[^\]]*\])?(?P<append>\+?)=")
_OPERATOR = re.compile(r"(?:[0-9]?>|<|&>|\||&|;)")
"""What a word begins with that ends a command or redirects it."""
JOINTS = frozenset((";", "&&"))
"""Words of a string that is run which part its commands."""
_BRANCHES = frozenset(("if_statement", "elif_clause", "else_clause", "case_item", *LOOPS))
_DECLARATIONS = frozenset(("export", "declare", "local", "readonly", "typeset"))
_MAX_CALLS = 100
"""Function calls that are followed in one script; a bound against recursion."""
_MAX_WORDS = 5000
"""Words of one command after expansion; a bound against variables that double themselves."""


def read_shell(file: FileText, open_text: OpenText | None = None) -> ShellDocument:
    """Read a shell script. Never raises for bad text.

    What tree-sitter cannot parse is one ``syntax-error``, or ``not-read`` where bash takes it; the commands around it
    are still there. ``open_text`` opens
    the files that it takes variables from (``source common.sh``).
    """
    if len(file.text) > MAX_BYTES[Kind.SHELL]:
        large = Problem(NOT_READ, too_large(Kind.SHELL), Span(0, 0))
        return ShellDocument(file, Kind.SHELL, (large,), variables={})
    if is_workflow(file.path):
        return _workflow(file)
    steps = Steps(MAX_STEPS, "steps of a shell script")
    reader = _Reader(file, steps, open_text=open_text)
    if is_makefile(file.path):
        reader = _Reader(file, steps, recipes(file.text))
        reader.scope.variables.update(make_variables(file.text))
    reader.run()
    return ShellDocument(
        file,
        Kind.SHELL,
        # What make itself fills in need not be bash.
        () if is_makefile(file.path) else tuple(_problems(reader.source, file, steps)),
        commands=tuple(reader.commands),
        directives=reader.directives,
        variables=reader.scope.variables,
        files=tuple(reader.files),
        redirected=tuple(reader.redirections),
        open_text=open_text,
    )


def _problems(source: Source, file: FileText, steps: Steps) -> Iterator[Problem]:
    if steps.spent:
        yield Problem(NOT_READ, steps.reason, Span(0, 0))
    problem = source.problem()
    if problem is None:
        return
    from lintfit.documents.bash_syntax import refuses

    line = file.text.find("\n", problem.span.end)
    written = file.text[file.text.rfind("\n", 0, problem.span.start) + 1 : line if line >= 0 else None]
    yield problem if refuses(file.text, written) else replace(problem, code=NOT_READ)


def _workflow(file: FileText) -> ShellDocument:
    """The steps of a GitHub workflow, each in a shell of its own."""
    steps = Steps(MAX_STEPS, "steps of a shell script")
    readers = [_Reader(file, steps, text) for text in run_steps(file)]
    for reader in readers:
        reader.run()
    commands = tuple(command for reader in readers for command in reader.commands)
    return ShellDocument(
        file,
        Kind.SHELL,
        commands=commands,
        files=tuple(f for r in readers for f in r.files),
        redirected=tuple(name for r in readers for name in r.redirections),
    )


@frozen
class _Where:
    """The branch that a statement stands in."""

    conditional: bool = False
    function: str | None = None
    depth: int = 0


class _Reader:
    def __init__(
        self, file: FileText, steps: Steps, text: str | None = None, open_text: OpenText | None = None
    ) -> None:
        self.path, self.open_text = file.path, open_text
        self.source = Source(file.text if text is None else text)
        self.text, self.span = self.source.text, self.source.span
        self.directives = tuple(directives(file.text))
        self.scope = Scope(
            folder=file.path.parent.as_posix(),
            assign=self.assign_default,
            batch=slurm_counts(self.directives),
            steps=steps,
        )
        self.commands: list[Command] = []
        self.files: list[HereFile] = []
        self.functions: dict[str, tree_sitter.Node] = {}
        self.called: set[str] = set()
        self.calls = steps.within(_MAX_CALLS, "calls of functions")
        self.folder = "."
        self.lost = False
        self.redirections: list[str] = []
        self.sourced = 0
        """How many files deep this one is that the script sources."""

    def run(self) -> None:
        self.walk(self.source.root, _Where())
        for name in [name for name in self.functions if name not in self.called]:
            if name not in self.called:
                self.call(name, None, _Where(conditional=True))

    def walk(self, node: tree_sitter.Node, where: _Where) -> None:
        if where.depth > MAX_DEPTH or not self.scope.steps.take():
            return
        kind = node.type
        if kind == "command":
            self.command(node, [], where)
        elif kind == "redirected_statement":
            self.redirected(node, where)
        elif kind == "variable_assignment":
            self.assign(self.span(node), export=False)
        elif kind == "declaration_command":
            self.declare(node)
        elif kind == "function_definition":
            name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
            if name is not None and body is not None:
                self.functions[self.source.of(name)] = body
        elif kind == "list":
            self.chain(node, where)
        elif kind in _BRANCHES:
            self.branch(node, where)
        elif kind == "subshell":
            before, folder, lost = dict(self.scope.variables), self.folder, self.lost
            self.children(node, where)
            self.scope.variables, self.folder, self.lost = before, folder, lost
        elif kind not in ("comment", "test_command", "heredoc_body", "command_substitution"):
            self.children(node, where)

    def children(self, node: tree_sitter.Node, where: _Where) -> None:
        deeper = replace(where, depth=where.depth + 1)
        for child in node.named_children:
            self.walk(child, deeper)

    def chain(self, node: tree_sitter.Node, where: _Where) -> None:
        operator = next((child.type for child in node.children if child.type in ("&&", "||")), "&&")
        for index, child in enumerate(node.named_children):
            doubtful = index > 0 and (operator == "||" or node.named_children[0].type == "test_command")
            deeper = replace(where, conditional=where.conditional or doubtful, depth=where.depth + 1)
            before = dict(self.scope.variables)
            self.walk(child, deeper)
            if doubtful:
                self.forget_changes(before)

    def branch(self, node: tree_sitter.Node, where: _Where) -> None:
        if node.type == "if_statement" and (ran := taken(node, self.source, self.scope)) is not None:
            self.decided(node, ran, where)
            return
        before = dict(self.scope.variables)
        inside = replace(where, conditional=True, depth=where.depth + 1)
        if node.type in ("for_statement", "c_style_for_statement"):
            self.loop_variable(node)
        changed: dict[str, Variable] = {}
        for child in node.named_children:
            if node.type == "for_statement" and child.type != "do_group":
                continue
            if child.type in ("elif_clause", "else_clause"):
                changed |= {
                    name: value for name, value in self.scope.variables.items() if before.get(name) is not value
                }
                self.scope.variables = dict(before)
            self.walk(child, inside)
        if node.type == "while_statement" and reads_arguments(node, self.source, self.scope):
            self.scope.variables = before
            return
        self.scope.variables = {**changed, **self.scope.variables} | {
            name: value for name, value in changed.items() if self.scope.variables.get(name) is before.get(name)
        }
        self.forget_changes(before)

    def decided(self, node: tree_sitter.Node, ran: tree_sitter.Node | Literal["none"], where: _Where) -> None:
        """Follow an ``if`` whose tests are known: what its other branches set is forgotten."""
        others = clauses(node)
        for clause in (node, *others):
            here = clause == ran
            before, folder, lost = dict(self.scope.variables), self.folder, self.lost
            inside = replace(where, conditional=where.conditional or not here, depth=where.depth + 1)
            for child in clause.named_children:
                if child not in others:
                    self.walk(child, inside)
            if not here:
                self.scope.variables, self.folder, self.lost = before, folder, lost

    def forget_changes(self, before: Mapping[str, Variable]) -> None:
        """What a branch that may not run has set is not known after it."""
        for name, variable in list(self.scope.variables.items()):
            old = before.get(name)
            if old is not variable and (old is None or old.value != variable.value or variable.array):
                unknown = Fragment(f"${{{name}}}", variable.value_span, known=False)
                self.scope.variables[name] = replace(variable, elements=((unknown,),), array=False)

    def loop_variable(self, node: tree_sitter.Node) -> None:
        name = node.child_by_field_name("variable")
        if name is None:
            return
        values = node.children_by_field_name("value")
        span = self.span(name)
        label = self.text[span.start : span.end]
        elements: tuple[tuple[Fragment, ...], ...] = ((Fragment(f"${label}", span, known=False),),)
        if len(values) == 1:
            found = split(expand(self.text, self.span(values[0]), self.scope))
            elements = tuple(found) if len(found) == 1 else elements
        value_span = self.span(values[0]) if values else span
        self.scope.variables[label] = Variable(label, elements, span, value_span)

    def redirected(self, node: tree_sitter.Node, where: _Where) -> None:
        body = node.child_by_field_name("body")
        self.redirections += redirections(node, self.source, self.scope)
        if body is None:
            return
        if body.type != "command":
            self.walk(body, where)
            return
        # tree-sitter hands the words behind a redirect's file to the redirect; bash to the command.
        stray = [
            child
            for redirect in node.children_by_field_name("redirect")
            for child in redirect.children_by_field_name("destination")[1:]
        ]
        self.command(body, stray, where)
        read = read_variable(node, body, self.source)
        if read is not None:
            self.scope.variables[read.name] = read
        file = written_file(node, body, self.source, self.scope)
        if file is not None:
            self.files.append(file)

    def command(self, node: tree_sitter.Node, stray: list[tree_sitter.Node], where: _Where) -> None:
        name = node.child_by_field_name("name")
        whole = self.span(node)
        start = self.span(name).start if name is not None else whole.end
        assignments = self.leading(node, start)
        pieces = [Span(start, whole.end), *(self.span(child) for child in stray)]
        for redirect in (child for child in node.named_children if child.type.endswith("redirect")):
            pieces = [part for piece in pieces for part in _without(piece, self.span(redirect))]
        found = [item for piece in pieces for item in words(self.text, piece, self.scope)][:_MAX_WORDS]
        found = self.inner(found)
        if not found:
            return
        first = found[0][0].value
        if first in _DECLARATIONS:
            self.declare_words([token for piece in pieces for token in tokens(self.text, piece)][1:], first)
        if first in self.functions:
            arguments = [fragments for _, fragments in found[1:]]
            self.call(first, arguments, where)
            return
        if first in ("unset", "read", "shift"):
            self.side_effect(first, [word for word, _ in found[1:]])
        if first in ("source", ".") and len(found) > 1 and found[1][0].value:
            self.source_file(found[1][0].value, found[2:], Span(start, whole.end))
        if first in ("cd", "pushd", "popd"):
            self.change_folder(first, [word for word, _ in found[1:]])
        span = Span(assignments[0].span.start if assignments else start, max(piece.end for piece in pieces if piece))
        environment = self.scope.exported()
        self.commands.append(
            Command(
                tuple(word for word, _ in found),
                tuple(assignments),
                environment,
                span,
                max(word.at.end for word, _ in found),
                where.conditional,
                where.function,
                self.folder,
                self.lost,
            )
        )

    def source_file(self, name: str, given: Sequence[tuple[Word, tuple[Fragment, ...]]], command: Span) -> None:
        """Read the variables that a sourced file sets."""
        if self.open_text is None or self.sourced >= MAX_SOURCED:
            return
        file = opened(self.open_text, candidates(self.path, self.folder, name))
        if file is None or file.path == self.path or len(file.text) > MAX_BYTES[Kind.SHELL]:
            return
        inner = _Reader(file, self.scope.steps, open_text=self.open_text)
        inner.sourced = self.sourced + 1
        inner.scope.variables = dict(self.scope.variables)
        inner.scope.positional = arguments(given, command) or self.scope.positional
        inner.walk(inner.source.root, _Where())
        self.scope.variables = taken_over(self.scope.variables, inner.scope.variables, command)

    def change_folder(self, name: str, arguments: list[Word]) -> None:
        values = [word.value for word in arguments if word.text not in ("--", "-L", "-P")]
        target = values[0] if name != "popd" and len(values) == 1 else None
        own = self.scope.folder
        below = target is not None and own[:1] == "/" and (target == own or target.startswith(f"{own}/"))
        known = below or (target is not None and target not in ("", "-") and target[0] not in "/~")
        self.folder = posixpath.normpath(posixpath.join(self.folder, target or "")) if known else "."
        self.lost = self.lost or not known

    def leading(self, node: tree_sitter.Node, start: int) -> list[Assignment]:
        """The assignments in front of a command.

        One on an earlier line is a statement of its own that tree-sitter-bash (0.25) took for part of the command.
        """
        result: list[Assignment] = []
        spans = [self.span(child) for child in node.named_children if child.type == "variable_assignment"]
        spans = [span for span in spans if span.start < start]
        last_break = -1
        for match in re.finditer(r"\n", self.text[spans[0].start : start] if spans else ""):
            at = spans[0].start + match.start()
            inside = any(span.start <= at < span.end for span in spans)
            if not inside and not self.text[:at].endswith("\\"):
                last_break = at
        for span in spans:
            if span.end <= last_break:
                self.assign(span, export=False)
                continue
            variable = self.variable(span)
            if variable is not None:
                result.append(Assignment(variable.name, variable.value, span, variable.value_span))
        return result

    def inner(self, found: list[tuple[Word, tuple[Fragment, ...]]]) -> list[tuple[Word, tuple[Fragment, ...]]]:
        """The words with those inside the string that ``eval`` or ``bash -c`` runs."""
        values = [word.value for word, _ in found]
        run: int | None = None
        if values[:1] == ["eval"]:
            run = 1
        else:
            for index, value in enumerate(values[:-1]):
                if (
                    value in ("-c", "-lc", "-ec")
                    and index
                    and (values[index - 1] or "").rpartition("/")[2] in ("bash", "sh")
                ):
                    run = index + 1
                    break
        if run is None:
            return found
        result = found[:run]
        for word, fragments in found[run : None if run == 1 else run + 1]:
            literal = self.single_quoted(word, fragments)
            if literal is not None:
                result.extend(words(self.text, literal, self.scope))
                continue
            # What is written in the string itself is split as if it came through a reference to it.
            loose = [replace(part, quoted=False, through=(*part.through, word.at)) for part in fragments]
            lists = split([whole_substitutions(loose)])
            result.extend(zip(as_words(lists, word.at), lists, strict=True))
        # The redirects and pipes of the string are no arguments; its further commands stay, with what parts them.
        inside = takewhile(lambda item: item[0].text in JOINTS or not _OPERATOR.match(item[0].text), result[run:])
        return [*result[:run], *inside]

    def single_quoted(self, word: Word, fragments: tuple[Fragment, ...]) -> Span | None:
        """The text of a word that is one string in single quotes, which the shell that runs it expands itself."""
        inside = Span(word.at.start + 1, word.at.end - 1)
        quoted = self.text[word.at.start : word.at.start + 1] == "'"
        return inside if quoted and len(fragments) == 1 and fragments[0].origin == inside else None

    def call(self, name: str, arguments: list[tuple[Fragment, ...]] | None, where: _Where) -> None:
        self.called.add(name)
        if not self.calls.take() or where.depth > MAX_DEPTH // 4:
            return
        outer = self.scope.positional
        self.scope.positional = arguments
        self.children(self.functions[name], replace(where, function=name, depth=where.depth + 1))
        self.scope.positional = outer

    def side_effect(self, name: str, arguments: list[Word]) -> None:
        if name == "shift":
            if self.scope.positional is not None:
                asked = natural(arguments[0].value) if arguments else None
                self.scope.positional = self.scope.positional[asked if asked is not None else 1 :]
            return
        for word in arguments if name in ("unset", "read") else ():
            self.scope.variables.pop(word.value or "", None)

    def declare(self, node: tree_sitter.Node) -> None:
        keyword = self.text[self.span(node).start :].split(None, 1)[0]
        for child in node.named_children:
            if child.type == "variable_assignment":
                self.assign(self.span(child), export=keyword == "export")
            elif child.type == "variable_name" and keyword == "export":
                self.export(self.span(child))

    def declare_words(self, spans: list[Span], keyword: str) -> None:
        for span in spans:
            if _ASSIGNMENT.match(self.text, span.start, span.end):
                self.assign(span, export=keyword == "export")
            elif keyword == "export":
                self.export(span)

    def export(self, span: Span) -> None:
        name = self.text[span.start : span.end]
        if name in self.scope.variables:
            self.scope.variables[name] = replace(self.scope.variables[name], exported=True)

    def assign(self, span: Span, export: bool) -> None:
        variable = self.variable(span)
        if variable is not None:
            old = self.scope.variables.get(variable.name)
            exported = export or bool(old and old.exported)
            self.scope.variables[variable.name] = replace(variable, exported=exported)

    def assign_default(self, name: str, fragments: tuple[Fragment, ...], span: Span) -> None:
        self.scope.variables[name] = Variable(name, (fragments,), span, span)

    def variable(self, span: Span) -> Variable | None:
        """What the assignment at ``span`` sets."""
        match = _ASSIGNMENT.match(self.text, span.start, span.end)
        if match is None:
            return None
        name, value_span = match["name"], Span(match.end(), span.end)
        old = self.scope.variables.get(name)
        kept = old.elements if old and match["append"] else ()
        if match["subscript"]:
            unknown = Fragment(self.text[span.start : span.end], span, known=False)
            return Variable(name, ((unknown,),), span, value_span)
        if self.text.startswith("(", value_span.start):
            inner = Span(value_span.start + 1, max(value_span.start + 1, value_span.end - 1))
            found = words(self.text, inner, self.scope)
            elements = (*kept, *(fragments for _, fragments in found))[:_MAX_WORDS]
            return Variable(name, elements, span, value_span, array=True)
        parts = [part for parts in expand(self.text, value_span, self.scope) for part in parts]
        first = (*(kept[0] if kept else ()), *parts)
        if len(first) > _MAX_WORDS:
            first = (Fragment(f"${{{name}}}", value_span, known=False),)
        return Variable(name, (first, *kept[1:]), span, value_span)


def _without(piece: Span, hole: Span) -> list[Span]:
    if hole.end <= piece.start or hole.start >= piece.end:
        return [piece]
    parts = [(piece.start, hole.start), (hole.end, piece.end)]
    return [Span(start, end) for start, end in parts if start < end]
