"""Executes a script's statements over abstract values: branches, loops, assignments, imports and definitions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from enum import Enum

import libcst as cst

from lintfit.sources.python import operators, parsers
from lintfit.sources.python.expressions import Expressions, dotted
from lintfit.sources.python.models import is_model
from lintfit.sources.python.state import Flagged, Gradient, Walk
from lintfit.sources.python.values import (
    Choice,
    Class,
    Const,
    Field,
    Function,
    Items,
    Object,
    Ref,
    Scope,
    Table,
    Unknown,
    Value,
    choice,
    objects,
)

_OPERATORS: dict[type[cst.BaseAugOp], type[cst.BaseBinaryOp]] = {
    cst.AddAssign: cst.Add,
    cst.SubtractAssign: cst.Subtract,
    cst.MultiplyAssign: cst.Multiply,
    cst.DivideAssign: cst.Divide,
    cst.FloorDivideAssign: cst.FloorDivide,
    cst.BitOrAssign: cst.BitOr,
}
LENGTHS = ("max_length", "max_seq_length", "max_seq_len", "model_max_length", "cutoff_len", "block_size", "seq_length",
           "sequence_length", "seq_len", "max_len", "context_length")  # fmt: skip
"""What scripts call the length of a sequence in tokens."""
_EXITS = frozenset({"sys.exit", "exit", "quit", "os._exit", "os.abort"})


_MAX_UNROLLED = 160
"""Elements of a known list that a loop is run for one by one."""


class Flow(Enum):
    """How a block of statements ends."""

    NEXT = "next"
    LEFT = "left"
    RAISED = "raised"
    MAYBE = "maybe"


class Statements(Expressions):
    """Executes statements. What a call does is the subclass's."""

    def __init__(self, module: cst.Module, walk: Walk) -> None:
        super().__init__(module, walk)
        self.globals = Scope({"__name__": Const(None, "__main__")})
        self.has_entry = False
        """Whether there is an ``if __name__ == "__main__"``."""

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
        match node:
            case cst.SimpleStatementLine():
                return self._line(node, scope)
            case cst.If():
                return self._if(node, scope)
            case cst.FunctionDef():
                self._define(node, scope)
            case cst.ClassDef():
                scope.set(node.name.value, self._class(node, scope))
            case cst.For():
                self.walk.depth += 1
                flow = self._for(node, scope)
                self.walk.depth -= 1
                return flow
            case cst.While():
                known = operators.truth(self.eval(node.test, scope))
                if known is not False:
                    self._counts(node, scope)
                    self.walk.depth += 1
                    self.walk.loops += 1
                    self.block(body_of(node.body), scope)
                    self.walk.loops -= 1
                    self.walk.depth -= 1
            case cst.With():
                for item in node.items:
                    value = self.eval(item.item, scope)
                    if item.asname is not None:
                        self.bind(item.asname.name, value, scope)
                return self.block(body_of(node.body), scope)
            case cst.Try() | cst.TryStar():
                return self._try(node, scope)
            case cst.Match():
                self._match(node, scope)
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
        match node:
            case cst.Expr():
                value = self.eval(node.value, scope)
                if isinstance(value, Object) and value.kind in _EXITS:
                    return Flow.RAISED
            case cst.Assign():
                self._assign(node, scope)
            case cst.AnnAssign() if node.value is not None:
                self._named_target(node.target)
                self.bind(node.target, self.eval(node.value, scope), scope)
            case cst.AugAssign():
                self._augmented(node, scope)
            case cst.Return():
                value = self.eval(node.value, scope) if node.value is not None else Const(node, None)
                if self.walk.frames and self.walk.branch.taken is not False:
                    self.walk.frames[-1].returns.append(value)
                return Flow.LEFT
            case cst.Raise():
                return Flow.RAISED
            case cst.Break() | cst.Continue():
                return Flow.LEFT
            case cst.Import() | cst.ImportFrom():
                self._import(node, scope)
            case cst.Assert():
                self.eval(node.test, scope)
            case cst.Global() | cst.Nonlocal():
                scope.outer |= {item.name.value for item in node.names}
        return Flow.NEXT

    def _named_target(self, target: cst.CSTNode) -> None:
        self.walk.assigned_to = dotted(target) if isinstance(target, cst.Name | cst.Attribute) else None

    def _assign(self, node: cst.Assign, scope: Scope) -> None:
        first: cst.BaseExpression = node.targets[0].target
        if isinstance(first, cst.Tuple) and isinstance(node.value, cst.Call) and first.elements:
            first = first.elements[0].value
        self._named_target(first)
        value = self.eval(node.value, scope)
        self.walk.assigned_to = None
        for target in node.targets:
            self.bind(target.target, value, scope)

    def _augmented(self, node: cst.AugAssign, scope: Scope) -> None:
        value = self.eval(node.value, scope)
        operator = _OPERATORS.get(type(node.operator))
        before = self.eval(node.target, scope)
        try:
            after = operators.binary(operator(), before, value, node) if operator else Unknown(node)
        except (ArithmeticError, TypeError, ValueError):
            after = Unknown(node)
        self.bind(node.target, after, scope)

    def bind(self, target: cst.CSTNode, value: Value, scope: Scope) -> None:
        match target:
            case cst.Name():
                scope.set(target.value, value)
                if target.value in LENGTHS and isinstance(value, Const) and _is_computed(value):
                    self.walk.lengths.append(value)
            case cst.Tuple() | cst.List():
                self._unpack(target, value, scope)
            case cst.Attribute():
                if target.attr.value == "requires_grad" and self.walk.iterated and self.walk.iterated[-1] is not None:
                    known = operators.truth(value)
                    source = self.walk.iterated[-1]
                    self.walk.gradients.append(Gradient(target, source, known, self.walk.branch.taken))
                if target.attr.value == "gradient_checkpointing" and operators.truth(value) is not False:
                    self._flagged(target, value, scope)
                for holder in self._holders(self.eval(target.value, scope)):
                    if isinstance(holder, Object):
                        self._store(holder.attributes, target.attr.value, value)
            case cst.Subscript():
                self._store_item(target, value, scope)

    def _flagged(self, target: cst.Attribute, value: Value, scope: Scope) -> None:
        """Note a model, or a part of one, that is told to recompute; its config has no say once it is built."""
        owner = target.value
        while isinstance(owner, cst.Attribute) and owner.attr.value != "config":
            if any(is_model(each) for each in objects(self.eval(owner, scope))):
                break
            owner = owner.value
        made = objects(self.eval(owner, scope)) if isinstance(owner, cst.Name | cst.Attribute) else ()
        if dotted(owner) != "self" and not dotted(owner).endswith("config") and any(is_model(each) for each in made):
            taken = self.walk.branch.taken if operators.truth(value) else None
            self.walk.recomputing.append(Flagged(target, taken))

    def _holders(self, value: Value) -> tuple[Value, ...]:
        return value.options if isinstance(value, Choice) else (value,)

    def _store(self, table: dict[str, Value], key: str, value: Value) -> None:
        """Set an item of something that other branches see, too."""
        if self.walk.branch.taken is False:
            return
        if self.walk.branch.undecided:
            value = choice([table.get(key) or Unknown(value.origin), value], value.origin)
        table[key] = value

    def _store_item(self, target: cst.Subscript, value: Value, scope: Scope) -> None:
        holder = self.eval(target.value, scope)
        if len(target.slice) != 1 or not isinstance(target.slice[0].slice, cst.Index):
            return
        key = self.eval(target.slice[0].slice.value, scope)
        if isinstance(target.value, cst.Call) and dotted(target.value.func) == "globals":
            self._override(key, value)
            return
        if not isinstance(key, Const):
            return
        if isinstance(holder, Ref) and holder.name == "os.environ":
            self._store(self.globals.names, f"os.environ[{key.value}]", value)
        if isinstance(holder, Table):
            self._store(holder.items, key.value, value)
        elif isinstance(holder, Object) and isinstance(key.value, str):
            self._store(holder.attributes, key.value, value)

    def _override(self, key: Value, value: Value) -> None:
        """``globals()[key] = value``: a constant of the script that its command line may change.

        Where the key is not known, every flag that is named like a constant is taken to change it.
        """
        names, flags = self.globals.names, self.walk.flags
        if self.walk.branch.taken is False:
            return
        for name in [key.value] if isinstance(key, Const) else [name for name in flags if name in names]:
            if name in flags:
                names[name] = replace(parsers.convert(flags[name], None), over=names.get(name))
            else:
                self._store(names, name, value)

    def _unpack(self, target: cst.Tuple | cst.List, value: Value, scope: Scope) -> None:
        elements = [element.value for element in target.elements]
        starred = any(isinstance(element, cst.StarredElement) for element in target.elements)
        if isinstance(value, Choice):
            rows = [o for o in value.options if isinstance(o, Items) and len(o.items) == len(elements)]
            value = (
                Items(
                    value.origin,
                    [choice(list(column), value.origin) for column in zip(*(r.items for r in rows), strict=True)],
                )
                if len(rows) == len(value.options)
                else value
            )
        if isinstance(value, Items) and not value.open and len(value.items) == len(elements) and not starred:
            parts: list[Value] = value.items
        elif isinstance(value, Object) and value.call is not None and not starred:
            parts = [value, *(Unknown(target) for _ in elements[1:])]
        elif isinstance(value, Items) and starred:
            parts = [*value.items[: len(elements)], *(Unknown(target) for _ in elements)][: len(elements)]
        else:
            parts = [Unknown(target) for _ in elements]
        for element, part in zip(elements, parts, strict=True):
            self.bind(element, part, scope)

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
        return self._join(ends, scope)

    @staticmethod
    def _join(ends: list[tuple[Flow, dict[str, Value]]], scope: Scope) -> Flow:
        """The names after branches of which one ran; a branch that raised is taken not to have run."""
        alive = [(flow, names) for flow, names in ends if flow is not Flow.RAISED]
        if not alive:
            return Flow.RAISED
        going = [names for flow, names in alive if flow is not Flow.LEFT]
        if not going:
            scope.names = alive[0][1]
            return Flow.LEFT
        scope.names = _merge(going)
        certain = len(going) == len(alive) and all(flow is Flow.NEXT for flow, _ in alive)
        return Flow.NEXT if certain else Flow.MAYBE

    def _for(self, node: cst.For, scope: Scope) -> Flow:
        before = len(self.walk.records)
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
        if isinstance(node.iter, cst.Call) and dotted(node.iter.func) == "range" and len(node.iter.args) == 1:
            count = node.iter.args[0].value
            if "accum" in dotted(count):
                self.walk.accumulations.append(self.eval(count, scope))
        self.walk.loops += repeats
        self.walk.iterated.append(listed[-1] if listed else None)
        flow = self.block(body_of(node.body), scope)
        self.walk.iterated.pop()
        self.walk.loops -= repeats
        if node.orelse is not None:
            self.block(body_of(node.orelse.body), scope)
        return Flow.NEXT if flow is not Flow.RAISED else flow

    def _counts(self, node: cst.For | cst.While, scope: Scope) -> None:
        """What a loop counts up (``step += 1``) is not known within it."""
        for name in _augmented(node.body):
            if isinstance(scope.get(name), Const):
                scope.set(name, Unknown(node))

    def _unrolled(self, node: cst.For, source: Items, scope: Scope) -> Flow:
        """A loop over a few known elements, run for one after the other; ``break`` is taken for ``continue``."""
        flow = Flow.NEXT
        for element in source.items:
            self.bind(node.target, element, scope)
            flow = self.block(body_of(node.body), scope)
            if flow is Flow.RAISED or (flow is Flow.LEFT and self.walk.frames and self.walk.frames[-1].returns):
                break
        if node.orelse is not None:
            self.block(body_of(node.orelse.body), scope)
        return flow if flow is Flow.RAISED else Flow.NEXT

    def _try(self, node: cst.Try | cst.TryStar, scope: Scope) -> Flow:
        flow = self.block(body_of(node.body), scope)
        after = scope.names
        for handler in node.handlers:
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

    def _match(self, node: cst.Match, scope: Scope) -> None:
        self.eval(node.subject, scope)
        before = dict(scope.names)
        ends = [before]
        outer = self.walk.branch
        for case in node.cases:
            scope.names = dict(before)
            self.walk.branch = outer.maybe()
            if self.block(body_of(case.body), scope) not in (Flow.LEFT, Flow.RAISED):
                ends.append(scope.names)
        self.walk.branch = outer
        scope.names = _merge(ends)

    def _import(self, node: cst.Import | cst.ImportFrom, scope: Scope) -> None:
        prefix = ""
        if isinstance(node, cst.ImportFrom):
            package = self.package(scope, len(node.relative)) if node.relative else ""
            prefix = package + (dotted(node.module) + "." if node.module is not None else "")
        if isinstance(node.names, cst.ImportStar):
            for name, value in self.exported(prefix.rstrip(".") if prefix.strip(".") else prefix).items():
                scope.set(name, value)
            return
        for alias in node.names:
            name = dotted(alias.name)
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

    def exported(self, module: str) -> dict[str, Value]:
        """The names that ``from module import *`` brings; none where the module is not at hand."""
        return {}

    def _define(self, node: cst.FunctionDef, scope: Scope) -> None:
        function = Function(node, node, scope)
        scope.set(node.name.value, function)
        for decorator in node.decorators:
            call = decorator.decorator
            if isinstance(call, cst.Call) and dotted(call.func).rpartition(".")[2] == "main":
                target = self.eval(call.func, scope)
                if isinstance(target, Ref) and target.name == "hydra.main":
                    passed, _ = self._arguments(call, scope)
                    self.walk.hydra[id(node)] = {p.name: p.value for p in passed if p.name is not None}
            if isinstance(call, cst.Call) and dotted(call.func).endswith(".command"):
                self._command(call, function, scope)
            if isinstance(call, cst.Call) and dotted(call.func).endswith((".option", ".argument")):
                passed, _ = self._arguments(call, scope)
                names = [str(p.value.value) for p in passed if p.name is None and isinstance(p.value, Const)]
                keywords = {p.name: p.value for p in passed if p.name is not None}
                is_flag = keywords.get("is_flag")
                switch = any("/" in name for name in names)
                if switch or (isinstance(is_flag, Const) and is_flag.value):
                    keywords["action"] = Const(call, "store_true")
                names = [part for name in names for part in name.split("/")[:1]]
                own = [name for name in names if not name.startswith("-")]
                if own:
                    keywords["dest"] = Const(call, own[0])
                entry = parsers.argument_field([n for n in names if n.startswith("-")] or names, keywords, call)
                if entry is not None and switch:
                    entry.kind = "bool"
                if entry is not None:
                    self.walk.options.setdefault(id(node), {})[entry.name] = entry

    def _command(self, call: cst.Call, function: Function, scope: Scope) -> None:
        """``@app.command()``: a function that a ``typer.Typer()`` runs."""
        app = self.eval(call.func.value, scope) if isinstance(call.func, cst.Attribute) else None
        if isinstance(app, Object) and app.kind == "typer.Typer":
            passed, _ = self._arguments(call, scope)
            named = next((each.value for each in passed if each.name in (None, "name")), None)
            name = str(named.value) if isinstance(named, Const) else function.name.replace("_", "-")
            self.walk.commands.setdefault(id(app), {})[name] = function

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

    def _field(self, cls: Class, node: cst.AnnAssign, scope: Scope) -> None:
        name = node.target.value if isinstance(node.target, cst.Name) else ""
        kind, many = parsers.kind_of(self.module.code_for_node(node.annotation.annotation))
        default = self._field_value(node.value, scope) if node.value is not None else None
        annotation = node.annotation.annotation
        inner = self.eval(annotation, scope) if isinstance(annotation, cst.Name | cst.Attribute) else None
        cls.fields[name] = Field(name, kind, default, node, many, cls=inner if isinstance(inner, Class) else None)
        if default is not None:
            cls.members[name] = default

    def _field_value(self, node: cst.BaseExpression, scope: Scope) -> Value | None:
        if not (isinstance(node, cst.Call) and dotted(node.func).rpartition(".")[2] in ("field", "Field", "HfArg")):
            return self.eval(node, scope)
        for argument in node.args:
            keyword = argument.keyword.value if argument.keyword is not None else None
            if keyword == "default" or (
                keyword is None and dotted(node.func).endswith("Field") and argument is node.args[0]
            ):
                return self.eval(argument.value, scope)
            if keyword == "default_factory":
                factory = self.eval(argument.value, scope)
                if isinstance(factory, Class):
                    return parsers.defaults_of(factory, argument)
                if isinstance(factory, Function) and isinstance(factory.node, cst.Lambda):
                    return self.eval(factory.node.body, scope)
                if isinstance(factory, Ref) and factory.name in ("list", "dict"):
                    return Items(argument) if factory.name == "list" else Table(argument)
                return Unknown(argument)
        return None


def _is_computed(value: Const) -> bool:
    """Whether a number is the result of an operation rather than read off somewhere."""
    return type(value.value) is int and isinstance(value.origin, cst.BinaryOperation)


def body_of(body: cst.BaseSuite) -> Sequence[cst.CSTNode]:
    if isinstance(body, cst.SimpleStatementSuite):
        return [cst.SimpleStatementLine(body.body)]
    return body.body


def _augmented(body: cst.BaseSuite) -> Iterator[str]:
    """Names that the statements of a suite change by ``+=`` and the like, in whatever branch."""
    waiting: list[cst.CSTNode] = list(body_of(body))
    while waiting:
        node = waiting.pop()
        if isinstance(node, cst.SimpleStatementLine):
            waiting.extend(node.body)
        elif isinstance(node, cst.AugAssign) and isinstance(node.target, cst.Name):
            yield node.target.value
        elif isinstance(node, cst.If | cst.For | cst.While | cst.With | cst.Try | cst.Else):
            waiting.extend(body_of(node.body))
            if isinstance(node, cst.If) and node.orelse is not None:
                waiting.append(node.orelse)


def _merge(ends: list[dict[str, Value]]) -> dict[str, Value]:
    if len(ends) == 1:
        return ends[0]
    merged: dict[str, Value] = {}
    for name in dict.fromkeys(name for names in ends for name in names):
        values = [names[name] for names in ends if name in names]
        merged[name] = values[0] if all(value is values[0] for value in values) else choice(values, values[0].origin)
    return merged
