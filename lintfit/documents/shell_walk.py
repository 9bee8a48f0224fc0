"""The statements of a shell script followed in order of execution: commands, variables and the files that it writes."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Literal

import tree_sitter

from lintfit.documents import bounds
from lintfit.documents.limits import MAX_BYTES, MAX_DEPTH
from lintfit.documents.model import FileText, Kind, Span
from lintfit.documents.numerals import natural
from lintfit.documents.shell_branches import after_branches
from lintfit.documents.shell_conditions import LOOPS, clauses, reads_arguments, taken, tested
from lintfit.documents.shell_directives import directives, slurm_counts
from lintfit.documents.shell_document import Assignment, Command, Filled, HereFile
from lintfit.documents.shell_expansion import words
from lintfit.documents.shell_files import filled, read_variable, redirections, written_file
from lintfit.documents.shell_refusals import refused, to_be_given, unknown
from lintfit.documents.shell_source import MOST_READINGS, Source
from lintfit.documents.shell_sourced import MAX_SOURCED, OpenText, arguments, candidates, opened, taken_over
from lintfit.documents.shell_strings import with_strings
from lintfit.documents.shell_tokens import tokens
from lintfit.documents.shell_variables import (
    assign,
    bounded,
    export,
    is_assignment,
    set_loop_variable,
    variable_at,
)
from lintfit.documents.shell_words import STEP_OF_VARIABLES, Fragment, Scope, Variable, Word
from lintfit.documents.steps import Steps
from lintfit.frozen import frozen, replace

_BRANCHES = frozenset(("if_statement", "elif_clause", "else_clause", "case_item", *LOOPS))
_BREAK = re.compile(r"(?<!\\)\n")
_DECLARATIONS = frozenset(("export", "declare", "local", "readonly", "typeset"))
_WORDS = 2
"""Words of a command that are expanded for one step."""
_MAX_CALLS = 100
"""Function calls that are followed in one script; a bound against recursion."""


@frozen
class _Where:
    """The branch that a statement stands in."""

    conditional: bool = False
    function: str | None = None
    depth: int = 0
    idle: bool = False


_SUBMITTED_FROM = ("SLURM_SUBMIT_DIR", "PBS_O_WORKDIR", "SGE_O_WORKDIR", "LS_SUBCWD")
"""What a batch system sets to the folder that a job was submitted from, which is where it starts."""


def _known(name: str, value: str) -> Variable:
    """A variable that the script finds set."""
    return Variable(name, ((Fragment(value, None),),), Span(0, 0), Span(0, 0))


class Walk:
    """Follows the statements of one script, and of those that it sources."""

    def __init__(
        self, file: FileText, steps: Steps, text: str | None = None, open_text: OpenText | None = None
    ) -> None:
        self.path, self.open_text = file.path, open_text
        self.source = Source(file.text if text is None else text)
        if self.source.given_up:
            steps.allows(MOST_READINGS + 1, MOST_READINGS, "readings of its brackets and quotes")
        self.text, self.span = self.source.text, self.source.span
        self.directives = directives(file.text)
        submitted = {name: _known(name, ".") for name in _SUBMITTED_FROM if name in file.text}
        self.scope = Scope(
            variables=dict(submitted),
            folder=file.path.parent.as_posix(),
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
        self.submitted = bool(submitted)
        """Whether it asks where it was submitted from, which may be another folder than its own."""
        self.demands = False
        """Whether the script refuses to run without arguments."""
        self.redirections: list[str] = []
        self.filled: list[Filled] = []
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
            assign(self.text, self.span(node), self.scope)
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
        elif kind == "case_statement":
            self.forget(node)
            self.children(node, where)
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
        self.forget(node)
        operator = next((child.type for child in node.children if child.type in ("&&", "||")), "&&")
        for index, child in enumerate(node.named_children):
            if not self.scope.steps.take(self.scope.size):
                break
            doubtful = index > 0 and (operator == "||" or node.named_children[0].type == "test_command")
            deeper = replace(where, conditional=where.conditional or doubtful, depth=where.depth + 1)
            before = dict(self.scope.variables)
            self.walk(child, deeper)
            if doubtful:
                self.scope.variables = after_branches(before, [before, self.scope.variables])

    def taken(self, node: tree_sitter.Node) -> tree_sitter.Node | Literal["none"] | None:
        self.forget(node)
        return taken(node, self.source, self.scope, self.functions)

    def forget(self, node: tree_sitter.Node) -> None:
        """What a script asks for before it refuses to go on is given by somebody: it is not known."""
        asked = refused(node, self.source, self.scope, self.functions)
        if any(not name[:1].isalpha() and name[:1] != "_" for name in asked):
            self.demands = True
        self.scope.variables.update(unknown(self.scope.variables, asked))

    def branch(self, node: tree_sitter.Node, where: _Where) -> None:
        if node.type == "if_statement" and (ran := self.taken(node)) is not None:
            self.decided(node, ran, where)
            return
        if not self.scope.steps.take(self.scope.size):
            return
        before, given = dict(self.scope.variables), self.scope.positional
        inside = replace(where, conditional=True, depth=where.depth + 1)
        if node.type in ("for_statement", "c_style_for_statement"):
            self.loop_variable(node)
        start = dict(self.scope.variables)
        others = clauses(node) if node.type == "if_statement" else []
        aside = {clause.id for clause in others}
        ends: list[dict[str, Variable]] = []
        for clause in (node, *others):
            if not self.scope.steps.take(self.scope.size):
                break
            self.scope.variables = dict(start)
            for child in clause.named_children:
                if child.id not in aside and (node.type != "for_statement" or child.type == "do_group"):
                    self.walk(child, inside)
            ends.append(self.scope.variables)
        reads = node.type == "while_statement" and reads_arguments(node, self.source, self.scope)
        if self.scope.positional != given:
            self.scope.positional = None  # shifted nobody knows how often
        if reads:
            self.scope.variables = before
            if self.demands:
                self.scope.variables.update(unknown(before, to_be_given(before, ends)))
            return
        if not any(clause.type == "else_clause" for clause in others):
            ends.append(before)
        if self.scope.steps.take(len(ends) * len(set().union(*ends)) // STEP_OF_VARIABLES):
            self.scope.variables = after_branches(before, ends)
        else:
            self.scope.variables = after_branches(before, [before, {}])

    def decided(self, node: tree_sitter.Node, ran: tree_sitter.Node | Literal["none"], where: _Where) -> None:
        """Follow an ``if`` whose tests are known: what its other branches set is forgotten."""
        others = clauses(node)
        besides = {clause.id for clause in others}
        for clause in (node, *others):
            if not self.scope.steps.take(self.scope.size):
                break
            here = clause == ran
            before, folder, lost = dict(self.scope.variables), self.folder, self.lost
            written = len(self.files)
            if not here:  # where it runs, what is tested is something else
                self.scope.variables.update(unknown(before, tested(node, self.source)))
            aside = where.conditional or not here
            inside = replace(where, conditional=aside, depth=where.depth + 1, idle=where.idle or not here)
            for child in clause.named_children:
                if child.id not in besides:
                    self.walk(child, inside)
            if not here:
                self.scope.variables, self.folder, self.lost = before, folder, lost
                del self.files[written:]

    def loop_variable(self, node: tree_sitter.Node) -> None:
        name = node.child_by_field_name("variable")
        if name is not None:
            values = [self.span(value) for value in node.children_by_field_name("value")]
            set_loop_variable(self.text, self.span(name), values, self.scope)

    def redirected(self, node: tree_sitter.Node, where: _Where) -> None:
        body = node.child_by_field_name("body")
        self.redirections += redirections(node, self.source, self.scope)
        if body is None:
            return
        if body.type != "command":
            self.walk(body, where)
            return
        redirects = node.children_by_field_name("redirect")
        self.command(body, [child for redirect in redirects for child in self._behind_file(redirect)], where)
        read = read_variable(node, body, self.source)
        if read is not None:
            self.scope.variables[read.name] = read
        made = filled(node, body, self.source, self.scope)
        if made is not None:
            self.filled.append(made)
        file = written_file(node, body, self.source, self.scope)
        if file is not None:
            self.files.append(replace(file, conditional=where.conditional))

    def _behind_file(self, redirect: tree_sitter.Node) -> Iterator[tree_sitter.Node]:
        """The words behind a redirect's file, which tree-sitter hands to the redirect, and bash to the command; not the
        pieces into which it takes the file's own name (``> $OUT/$NAME.log``)."""
        found = redirect.children_by_field_name("destination")
        ended = False
        for before, child in pairwise(found):
            ended |= any(mark.isspace() for mark in self.text[self.span(before).end : self.span(child).start])
            if ended:
                yield child

    def command(self, node: tree_sitter.Node, stray: list[tree_sitter.Node], where: _Where) -> None:
        name = node.child_by_field_name("name")
        whole = self.span(node)
        start = self.span(name).start if name is not None else whole.end
        assignments = self.leading(node, start)
        pieces = [Span(start, whole.end), *(self.span(child) for child in stray)]
        for redirect in (child for child in node.named_children if child.type.endswith("redirect")):
            pieces = [part for piece in pieces for part in _without(piece, self.span(redirect))]
        found = [item for piece in pieces for item in words(self.text, piece, self.scope)]
        found = with_strings(self.text, bounded(found, "words of one command", self.scope), self.scope)
        work = len(found) // _WORDS + self.scope.size
        if not found or (work and not self.scope.steps.take(work)):
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
                idle=where.idle,
            )
        )

    def source_file(self, name: str, given: Sequence[tuple[Word, tuple[Fragment, ...]]], command: Span) -> None:
        """Read the variables that a sourced file sets."""
        if self.open_text is None or self.sourced >= MAX_SOURCED:
            return
        file = opened(self.open_text, candidates(self.path, self.folder, name))
        if file is None or file.path == self.path or len(file.text) > MAX_BYTES[Kind.SHELL]:
            return
        if not self.scope.steps.take(1 + bounds.cost(len(file.text)) + self.scope.size):
            return
        inner = Walk(file, self.scope.steps, open_text=self.open_text)
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
        # A folder of another machine is kept as it is named: what it ends in may be a folder of this project.
        named = known or (target is not None and target[:1] == "/")
        self.folder = posixpath.normpath(posixpath.join(self.folder, target or "")) if named else "."
        self.lost = self.lost or not known or self.submitted

    def leading(self, node: tree_sitter.Node, start: int) -> list[Assignment]:
        """The assignments in front of a command.

        One on an earlier line is a statement of its own that tree-sitter-bash (0.25) took for part of the command.
        """
        result: list[Assignment] = []
        spans = [self.span(child) for child in node.named_children if child.type == "variable_assignment"]
        spans = [span for span in spans if span.start < start]
        # A line break between them that no backslash takes away: one within an assignment is a part of it.
        ends = [span.end for span in spans]
        gaps = zip(ends, [*(span.start for span in spans[1:]), start], strict=True) if spans else ()
        breaks = (found.start() for low, high in gaps for found in _BREAK.finditer(self.text, low, max(low, high)))
        last_break = max(breaks, default=-1)
        for span in spans:
            if span.end <= last_break:
                assign(self.text, span, self.scope)
                continue
            variable = variable_at(self.text, span, self.scope)
            if variable is not None:
                result.append(Assignment(variable.name, variable.value, span, variable.value_span))
        return result

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
                assign(self.text, self.span(child), self.scope, export=keyword == "export")
            elif child.type == "variable_name" and keyword == "export":
                export(self.text, self.span(child), self.scope)

    def declare_words(self, spans: list[Span], keyword: str) -> None:
        for span in spans:
            if is_assignment(self.text, span):
                assign(self.text, span, self.scope, export=keyword == "export")
            elif keyword == "export":
                export(self.text, span, self.scope)


def _without(piece: Span, hole: Span) -> list[Span]:
    if hole.end <= piece.start or hole.start >= piece.end:
        return [piece]
    parts = [(piece.start, hole.start), (hole.end, piece.end)]
    return [Span(start, end) for start, end in parts if start < end]
