"""Executes a script's statements over abstract values: branches, loops, assignments, imports and definitions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from functools import lru_cache
from typing import Any

import libcst as cst

from lintfit.documents import bounds
from lintfit.settings.model import UNKNOWN
from lintfit.sources.script.interpreter import operators
from lintfit.sources.script.interpreter.definitions import Definitions
from lintfit.sources.script.interpreter.expressions import dotted
from lintfit.sources.script.interpreter.scope import Scope
from lintfit.sources.script.interpreter.state import Walk
from lintfit.sources.script.interpreter.values import (
    Bounded,
    Class,
    Const,
    Function,
    Items,
    Object,
    Ref,
    Unknown,
    Value,
    choice,
    plain,
)

_EXITS = frozenset({"sys.exit", "exit", "quit", "os._exit", "os.abort"})

_NAMES = 50
"""Names of a scope that are kept apart for one step, where a statement may run or not."""
_MAX_UNROLLED = 160
"""Elements of a known list that a loop is run for one by one."""
_WITH_STRIDE = 3
"""Arguments of a ``range`` that says how far it steps."""


class Flow(Enum):
    """How a block of statements ends."""

    NEXT = "next"
    LEFT = "left"
    RAISED = "raised"
    MAYBE = "maybe"


class Statements(Definitions):
    """Executes statements. What a call does is the subclass's."""

    def __init__(self, module: cst.Module, walk: Walk) -> None:
        super().__init__(module, walk)
        self.has_entry = False
        """Whether there is an ``if __name__ == "__main__"``."""
        self._cut_short: list[list[dict[str, Value]]] = []
        """For each loop that is being walked, the innermost last: the names where a ``break`` or ``continue`` leaves
        its body."""
        # By type: libcst's classes are abstract ones, and to ask a node for one after the other takes long.
        self._compound: dict[type[cst.CSTNode], Callable[[Any, Scope], Flow]] = {
            cst.SimpleStatementLine: self._line,
            cst.If: self._if,
            cst.FunctionDef: self._defines,
            cst.ClassDef: self._defines_class,
            cst.For: self._loop,
            cst.While: self._while,
            cst.With: self._with,
            cst.Try: self._try,
            cst.TryStar: self._try,
            cst.Match: self._match,
        }
        self._simple: dict[type[cst.CSTNode], Callable[[Any, Scope], Flow | None]] = {
            cst.Assign: self._assign,
            cst.Expr: self._expression,
            cst.AnnAssign: self._annotated,
            cst.AugAssign: self._augmented,
            cst.Return: self._return,
            cst.Raise: lambda node, scope: Flow.RAISED,
            cst.Break: self._cut,
            cst.Continue: self._cut,
            cst.Import: self._import,
            cst.ImportFrom: self._import,
            cst.Assert: self._assert,
            cst.Global: self._declare,
            cst.Nonlocal: self._declare,
        }

    def block(self, body: Sequence[cst.CSTNode], scope: Scope) -> Flow:
        before, maybe = self.walk.branch, False
        try:
            for statement in body:
                flow = self.statement(statement, scope)
                if flow in (Flow.LEFT, Flow.RAISED):
                    return flow
                if flow is Flow.MAYBE:
                    maybe = True
                    self.walk.branch = self.walk.branch.maybe()
            return Flow.MAYBE if maybe else Flow.NEXT
        finally:
            self.walk.branch = before

    def statement(self, node: cst.CSTNode, scope: Scope) -> Flow:
        self.walk.step()
        execute = self._compound.get(type(node))
        return execute(node, scope) if execute is not None else Flow.NEXT

    def _loop(self, node: cst.For, scope: Scope) -> Flow:
        self.walk.depth += 1
        flow = self._for(node, scope)
        self.walk.depth -= 1
        return flow

    def _while(self, node: cst.While, scope: Scope) -> Flow:
        known = operators.truth(self.eval(node.test, scope))
        if known is not False:
            self._counts(node, scope)
            self.walk.depth += 1
            self.walk.loops += 1
            self._round(node, scope)
            self.walk.loops -= 1
            self.walk.depth -= 1
        return Flow.NEXT

    def _round(self, node: cst.For | cst.While, scope: Scope) -> Flow:
        """One round of a loop. Its names are those at the end of the body or where it was cut short: what a search sets
        before its ``break`` (``found = True``) may hold after the loop."""
        self._cut_short.append([])
        flow = self.block(body_of(node.body), scope)
        if cut := self._cut_short.pop():
            self.walk.step(len(cut) * len(scope.names) // _NAMES)
            scope.names = _merge([scope.names, *cut])
        return flow

    def _cut(self, node: cst.Break | cst.Continue, scope: Scope) -> Flow:
        if self._cut_short and self.walk.branch.taken is not False:
            self.walk.step(len(scope.names) // _NAMES)
            self._cut_short[-1].append(dict(scope.names))
        return Flow.LEFT

    def _with(self, node: cst.With, scope: Scope) -> Flow:
        for item in node.items:
            value = self.eval(item.item, scope)
            if item.asname is not None:
                self.bind(item.asname.name, value, scope)
        return self.block(body_of(node.body), scope)

    def _defines(self, node: cst.FunctionDef, scope: Scope) -> Flow:
        self._define(node, scope)
        return Flow.NEXT

    def _defines_class(self, node: cst.ClassDef, scope: Scope) -> Flow:
        scope.set(node.name.value, self._class(node, scope))
        return Flow.NEXT

    def _line(self, line: cst.SimpleStatementLine, scope: Scope) -> Flow:
        before = self.walk.statement
        self.walk.statement = line
        try:
            for node in line.body:
                flow = self._small(node, scope)
                if flow is not Flow.NEXT:
                    return flow
        finally:
            self.walk.statement = before
        return Flow.NEXT

    def _small(self, node: cst.BaseSmallStatement, scope: Scope) -> Flow:
        execute = self._simple.get(type(node))
        return (execute(node, scope) if execute is not None else None) or Flow.NEXT

    def _expression(self, node: cst.Expr, scope: Scope) -> Flow | None:
        value = self.eval(node.value, scope)
        return Flow.RAISED if isinstance(value, Object) and value.kind in _EXITS else None

    def _annotated(self, node: cst.AnnAssign, scope: Scope) -> None:
        if node.value is not None:
            self._named_target(node.target)
            self.bind(node.target, self.eval(node.value, scope), scope)

    def _return(self, node: cst.Return, scope: Scope) -> Flow:
        value = self.eval(node.value, scope) if node.value is not None else Const(node, None)
        if self.walk.frames and self.walk.branch.taken is not False:
            self.walk.frames[-1].returns.append(value)
        return Flow.LEFT

    def _assert(self, node: cst.Assert, scope: Scope) -> Flow | None:
        """``assert False`` stops here; what is false by values that are worked out may be another way of the script."""
        self.eval(node.test, scope)
        return Flow.RAISED if isinstance(node.test, cst.Name) and node.test.value == "False" else None

    def _declare(self, node: cst.Global | cst.Nonlocal, scope: Scope) -> None:
        scope.outer |= {item.name.value for item in node.names}

    def _if(self, node: cst.If, scope: Scope) -> Flow:
        test = self.eval(node.test, scope)
        if isinstance(node.test, cst.Comparison) and isinstance(node.test.left, cst.Name):
            self.has_entry |= node.test.left.value == "__name__"
        known = operators.truth(test)
        orelse = node.orelse
        body = body_of(node.body)
        rest: Sequence[cst.CSTNode] = (
            () if orelse is None else ([orelse] if isinstance(orelse, cst.If) else body_of(orelse.body))
        )
        sides = [(body, known, True), (rest, None if known is None else not known, False)]
        self.walk.step(len(scope.names) // _NAMES)
        before = dict(scope.names)
        ends: list[tuple[Flow, dict[str, Value]]] = []
        for statements, holds, is_body in sides:
            scope.names = dict(before)
            flow = Flow.NEXT
            if statements:
                outer = self.walk.branch
                guarded = known is None and self.guards(node.test, is_body)
                self.walk.branch = outer.into(node.test, holds, guarded)
                try:
                    flow = self.block(statements, scope)
                finally:
                    self.walk.branch = outer
            ends.append((flow, scope.names))
        if known is not None:
            flow, scope.names = ends[0] if known else ends[1]
            if flow is Flow.RAISED and body:
                # A run that fails at its own check is not what anybody means to start: some flag is not in sight.
                scope.names = before
                return Flow.NEXT
            return flow
        flow = self._join(ends, scope)
        self._clip(node, before, scope)
        return flow

    def _clip(self, node: cst.If, before: Mapping[str, Value], scope: Scope) -> None:
        """``if size > limit: size = limit``, where the limit is not known, is ``min(size, limit)``; so does
        transformers' ``run_clm.py`` cut its blocks to what the tokenizer allows."""
        test = node.test
        if node.orelse is not None or not isinstance(test, cst.Comparison) or len(test.comparisons) != 1:
            return
        limit = dotted(test.comparisons[0].comparator)
        if not isinstance(test.comparisons[0].operator, cst.GreaterThan) or not limit or not dotted(test.left):
            return
        size = before.get(test.left.value) if isinstance(test.left, cst.Name) else self.eval(test.left, scope)
        if not isinstance(size, Const) or type(size.value) is not int:
            return
        for line in body_of(node.body):
            for small in line.body if isinstance(line, cst.SimpleStatementLine) else ():
                if isinstance(small, cst.Assign) and len(small.targets) == 1 and dotted(small.value) == limit:
                    name = dotted(small.targets[0].target)
                    was = before.get(name)
                    if isinstance(was, Const) and was.value == size.value:
                        scope.set(name, Bounded(was.origin, most=was))

    def _join(self, ends: list[tuple[Flow, dict[str, Value]]], scope: Scope) -> Flow:
        """The names after branches of which one ran; a branch that raised is taken not to have run."""
        alive = [(flow, names) for flow, names in ends if flow is not Flow.RAISED]
        if not alive:
            return Flow.RAISED
        going = [names for flow, names in alive if flow is not Flow.LEFT]
        if not going:
            scope.names = alive[0][1]
            return Flow.LEFT
        self.walk.step(len(going) * len(set().union(*going)) // _NAMES)
        scope.names = _merge(going)
        certain = len(going) == len(alive) and all(flow is Flow.NEXT for flow, _ in alive)
        return Flow.NEXT if certain else Flow.MAYBE

    def _for(self, node: cst.For, scope: Scope) -> Flow:
        before, unlooped = len(self.walk.records), dict(scope.names) if _lists_folder(node.iter) else None
        source = self.eval(node.iter, scope)
        listed = [r for r in self.walk.records[before:] if r.name in ("parameters", "named_parameters")]
        if isinstance(source, Object) and source.call is not None and source.call not in listed:
            # A helper that is handed them: freeze(model.parameters()).
            listed = [r for r in (source.call,) if r.name in ("parameters", "named_parameters")] or listed
        if isinstance(source, Items) and not source.open and 1 < len(source.items) <= _MAX_UNROLLED:
            return self._unrolled(node, source, scope)
        element: Value = Unknown(node.iter)
        if isinstance(source, Items) and not source.open and source.items:
            element = choice(list(source.items), node.iter)
        self.bind(node.target, element, scope)
        repeats = not isinstance(source, Items) or source.open or len(source.items) != 1
        if repeats:
            self._counts(node, scope)
        if isinstance(node.iter, cst.Call) and dotted(node.iter.func) == "range":
            self._counted(node, node.iter.args, scope)
        self.walk.loops += repeats
        self.walk.iterated.append(listed[-1] if listed else None)
        flow = self._round(node, scope)
        if unlooped is not None:
            scope.names = _merge([scope.names, unlooped])
        self.walk.iterated.pop()
        self.walk.loops -= repeats
        if node.orelse is not None:
            self.block(body_of(node.orelse.body), scope)
        return Flow.NEXT if flow is not Flow.RAISED else flow

    def _counted(self, node: cst.For, given: Sequence[cst.Arg], scope: Scope) -> None:
        """What ``range`` is given that tells how a batch is taken: in so many steps, or in slices of so many rows."""
        if len(given) == 1 and "accum" in dotted(given[0].value):
            self.walk.accumulations.append(self.eval(given[0].value, scope))
        elif len(given) == _WITH_STRIDE and getattr(given[0].value, "value", None) == "0":
            self.walk.strides[id(node)] = self.eval(given[-1].value, scope)

    def _counts(self, node: cst.For | cst.While, scope: Scope) -> None:
        """What a loop counts up (``step += 1``) is not known within it."""
        for name in _augmented(node.body):
            if isinstance(scope.get(name), Const):
                scope.set(name, Unknown(node))

    def _unrolled(self, node: cst.For, source: Items, scope: Scope) -> Flow:
        """A loop over a few known elements, run for one after the other.

        Where a ``break`` may have ended it, its names are those after any element.
        """
        flow, broken = Flow.NEXT, []
        breaks = _breaks(node.body)
        for element in source.items:
            self.bind(node.target, element, scope)
            flow = self._round(node, scope)
            if breaks and flow in (Flow.LEFT, Flow.MAYBE):
                self.walk.step(len(scope.names) // _NAMES)
                broken.append(dict(scope.names))
            if flow is Flow.RAISED or (flow is Flow.LEFT and self.walk.frames and self.walk.frames[-1].returns):
                break
        scope.names = _merge([*broken, scope.names]) if broken else scope.names
        if node.orelse is not None:
            self.block(body_of(node.orelse.body), scope)
        return flow if flow is Flow.RAISED else Flow.NEXT

    def _try(self, node: cst.Try | cst.TryStar, scope: Scope) -> Flow:
        self.walk.tries += bool(node.handlers)
        flow = self.block(body_of(node.body), scope)
        self.walk.tries -= bool(node.handlers)
        after = scope.names
        for handler in node.handlers:
            self.walk.step(len(after) // _NAMES)
            scope.names = dict(after)
            outer = self.walk.branch
            self.walk.branch = outer.maybe()
            if handler.name is not None:
                self.bind(handler.name.name, Unknown(handler), scope)
            self.block(body_of(handler.body), scope)
            self.walk.branch = outer
        scope.names = after
        if node.orelse is not None and flow is Flow.NEXT:
            flow = self.block(body_of(node.orelse.body), scope)
        if node.finalbody is not None:
            self.block(body_of(node.finalbody.body), scope)
        return Flow.MAYBE if flow is Flow.RAISED and node.handlers else flow

    def _match(self, node: cst.Match, scope: Scope) -> Flow:
        """The first case that matches runs; where that is not known, any of those that may."""
        subject = self.eval(node.subject, scope)
        before, outer = dict(scope.names), self.walk.branch
        ends: list[tuple[Flow, dict[str, Value]]] = []
        arrives: bool | None = True
        for case in node.cases:
            self.walk.step(len(before) // _NAMES)
            scope.names = dict(before)
            holds = self._matches(case.pattern, subject, scope)
            if case.guard is not None and holds is not False:
                allowed = operators.truth(self.eval(case.guard, scope))
                holds = holds if allowed else (None if allowed is None else False)
            runs = False if arrives is False or holds is False else (holds and arrives) or None
            self.walk.branch = outer.into(node.subject, runs, guarded=False)
            flow = self.block(body_of(case.body), scope)
            if runs is not False:
                ends.append((flow, scope.names))
                arrives = False if holds else None
        self.walk.branch = outer
        if arrives is not False:
            ends.append((Flow.NEXT, before))
        elif len(ends) == 1 and ends[0][0] is Flow.RAISED:
            scope.names = before  # as for an ``if`` whose test is known
            return Flow.NEXT
        return self._join(ends, scope)

    def _matches(self, pattern: cst.MatchPattern, subject: Value, scope: Scope) -> bool | None:
        """Whether a pattern takes a value; what it captures is the value itself."""
        match pattern:
            case cst.MatchAs(pattern=inner, name=name):
                taken = True if inner is None else self._matches(inner, subject, scope)
                if name is not None:
                    scope.set(name.value, subject)
                return taken
            case cst.MatchOr():
                found = [self._matches(each.pattern, subject, scope) for each in pattern.patterns]
                return True if True in found else (None if None in found else False)
            case cst.MatchValue() | cst.MatchSingleton() if isinstance(subject, Const | Ref):
                asked, known = plain(self.eval(pattern.value, scope)), plain(subject)
                return None if UNKNOWN in (asked, known) else bool(asked == known)
        return None

    def _import(self, node: cst.Import | cst.ImportFrom, scope: Scope) -> None:
        prefix = ""
        if isinstance(node, cst.ImportFrom):
            package = self.package(scope, len(node.relative)) if node.relative else ""
            prefix = package + (dotted(node.module) + "." if node.module is not None else "")
        if prefix:
            self.noted(prefix.rstrip(".") if prefix.strip(".") else prefix)
        if isinstance(node.names, cst.ImportStar):
            found = self.exported(prefix.rstrip(".") if prefix.strip(".") else prefix)
            self.walk.step(bounds.cost(items=len(found)))
            for name, value in found.items():
                scope.set(name, value)
            return
        for alias in node.names:
            name = dotted(alias.name)
            self.noted(prefix + name)
            if alias.asname is not None and isinstance(alias.asname.name, cst.Name):
                scope.set(alias.asname.name.value, Ref(alias, prefix + name))
            elif prefix or "." not in name:
                scope.set(name, Ref(alias, prefix + name))
            else:
                first = name.partition(".")[0]
                scope.set(first, Ref(alias, first))

    def package(self, scope: Scope, dots: int) -> str:
        """What the leading dots of an import stand for in the module of a scope, with a dot at its end."""
        return "." * dots

    def noted(self, name: str) -> None:
        """Note that the run comes by an import of this module, or of this name of one."""

    def exported(self, module: str) -> dict[str, Value]:
        """The names that ``from module import *`` brings; none where the module is not at hand."""
        return {}

    def _class(self, node: cst.ClassDef, scope: Scope) -> Class:
        bases = tuple(self.eval(base.value, scope) for base in node.bases)
        cls = Class(node, node.name.value, node, bases, scope=scope)
        inner = Scope({}, scope)
        for statement in body_of(node.body):
            if isinstance(statement, cst.SimpleStatementLine):
                for small in statement.body:
                    if isinstance(small, cst.AnnAssign) and isinstance(small.target, cst.Name):
                        self._field(cls, small, inner)
                    elif isinstance(small, cst.Assign):
                        self._small(small, inner)
            elif isinstance(statement, cst.FunctionDef | cst.ClassDef | cst.If):
                self.statement(statement, inner)
        for name, value in inner.names.items():
            cls.members.setdefault(name, value)
            if isinstance(value, Function) and value.scope is inner:
                value.scope = scope
        return cls


def body_of(body: cst.BaseSuite) -> Sequence[cst.CSTNode]:
    if type(body) is cst.SimpleStatementSuite:
        return [cst.SimpleStatementLine(body.body)]
    return body.body


@lru_cache(maxsize=2048)
def _augmented(body: cst.BaseSuite) -> tuple[str, ...]:
    """Names that the statements of a suite change by ``+=`` and the like, in whatever branch."""
    waiting, names = list(body_of(body)), list[str]()
    while waiting:
        node = waiting.pop()
        if isinstance(node, cst.SimpleStatementLine):
            waiting.extend(node.body)
        elif isinstance(node, cst.AugAssign) and isinstance(node.target, cst.Name):
            names.append(node.target.value)
        elif isinstance(node, cst.If | cst.For | cst.While | cst.With | cst.Try | cst.Else):
            waiting.extend(body_of(node.body))
            waiting.extend([node.orelse] if isinstance(node, cst.If) and node.orelse is not None else [])
    return tuple(names)


def _merge(ends: list[dict[str, Value]]) -> dict[str, Value]:
    if len(ends) == 1:
        return ends[0]
    merged: dict[str, Value] = {}
    for name in dict.fromkeys(name for names in ends for name in names):
        values = [names[name] for names in ends if name in names]
        merged[name] = values[0] if all(value is values[0] for value in values) else choice(values, values[0].origin)
    return merged


_LISTINGS = ("listdir", "scandir", "glob", "iglob", "rglob", "iterdir", "walk")
_WRAPPERS = ("sorted", "list", "set", "tuple", "reversed", "enumerate", "tqdm", "tqdm.tqdm")


def _lists_folder(node: cst.BaseExpression) -> bool:
    """Whether a loop is over what lies in a folder, which may be nothing."""
    while isinstance(node, cst.Call) and node.args and dotted(node.func) in _WRAPPERS:
        node = node.args[0].value
    if not isinstance(node, cst.Call):
        return False
    called = node.func
    return isinstance(called, cst.Attribute | cst.Name) and _last(called) in _LISTINGS


def _last(node: cst.Attribute | cst.Name) -> str:
    return node.attr.value if isinstance(node, cst.Attribute) else node.value


def _breaks(body: cst.BaseSuite) -> bool:
    """Whether a ``break`` in a loop's body ends that loop, not one within it."""
    waiting: list[cst.CSTNode] = list(body_of(body))
    while waiting:
        node = waiting.pop()
        if isinstance(node, cst.Break):
            return True
        if isinstance(node, cst.SimpleStatementLine):
            waiting.extend(node.body)
        elif isinstance(node, cst.If | cst.With | cst.Try | cst.Else):
            waiting.extend(body_of(node.body))
            waiting.extend([node.orelse] if isinstance(node, cst.If) and node.orelse is not None else [])
    return False
