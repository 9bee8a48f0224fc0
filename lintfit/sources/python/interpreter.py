"""Walks through a script statement by statement, following the calls of its own functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum

import libcst as cst

from lintfit.sources.python import library, operators, parsers
from lintfit.sources.python.expressions import Expressions, dotted
from lintfit.sources.python.modules import Modules
from lintfit.sources.python.state import MAX_DEPTH, Branch, Frame, OutOfBudget, Walk
from lintfit.sources.python.values import (
    Choice,
    Class,
    Const,
    Environment,
    Field,
    Function,
    Items,
    Object,
    Record,
    Ref,
    Scope,
    Table,
    Unknown,
    Value,
    choice,
)

_RANKS = frozenset({"RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "NODE_RANK", "GROUP_RANK"})
_ENTRIES = frozenset({"main", "train", "run", "finetune", "training_function", "cli", "sft", "start"})
_MAX_FOLLOWS = 6
"""How often one function is followed; more calls of it add nothing new."""
_OPERATORS: dict[type[cst.BaseAugOp], type[cst.BaseBinaryOp]] = {
    cst.AddAssign: cst.Add,
    cst.SubtractAssign: cst.Subtract,
    cst.MultiplyAssign: cst.Multiply,
    cst.DivideAssign: cst.Divide,
    cst.FloorDivideAssign: cst.FloorDivide,
    cst.BitOrAssign: cst.BitOr,
}
_EXITS = frozenset({"sys.exit", "exit", "quit", "os._exit", "os.abort"})


class Flow(Enum):
    """How a block of statements ends."""

    NEXT = "next"
    LEFT = "left"
    RAISED = "raised"
    MAYBE = "maybe"


class Interpreter(Expressions):
    """Executes statements over abstract values; ``walk.records`` holds the calls afterwards."""

    def __init__(self, module: cst.Module, walk: Walk, modules: Modules | None = None) -> None:
        super().__init__(module, walk)
        self._modules = modules
        self._scopes: dict[str, Scope | None] = {}
        self.globals = Scope({"__name__": Const(None, "__main__")})
        self._follows: dict[int, int] = {}
        self._has_entry = False

    def run(self) -> None:
        """Walk the module, then the functions that nothing in it called."""
        try:
            self.block(self.module.body, self.globals)
            self._uncalled()
        except (OutOfBudget, RecursionError):
            self.walk.branch = Branch()

    def _uncalled(self) -> None:
        values = list(self.globals.names.values())
        functions = [
            value for value in values if isinstance(value, Function) and isinstance(value.node, cst.FunctionDef)
        ]
        entries = [function for function in functions if function.name in _ENTRIES and not self._has_entry]
        for function in (*entries, *(function for function in functions if function not in entries)):
            if id(function.node) not in self.walk.entered:
                self.walk.branch = Branch() if function in entries else Branch(None)
                self.enter(function)
        for cls in values:
            if isinstance(cls, Class):
                for member in list(cls.members.values()):
                    if isinstance(member, Function) and id(member.node) not in self.walk.entered:
                        self.walk.branch = Branch(None)
                        self.enter(
                            Function(member.origin, member.node, member.scope, Object(cls.node, cls.name, cls=cls))
                        )
        self.walk.branch = Branch()

    # -- statements ------------------------------------------------------------------------------------------

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
                return self._for(node, scope)
            case cst.While():
                known = operators.truth(self.eval(node.test, scope))
                if known is not False:
                    self.walk.loops += 1
                    self.block(_body(node.body), scope)
                    self.walk.loops -= 1
            case cst.With():
                for item in node.items:
                    value = self.eval(item.item, scope)
                    if item.asname is not None:
                        self.bind(item.asname.name, value, scope)
                return self.block(_body(node.body), scope)
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
            case cst.Tuple() | cst.List():
                self._unpack(target, value, scope)
            case cst.Attribute():
                for holder in self._holders(self.eval(target.value, scope)):
                    if isinstance(holder, Object):
                        self._store(holder.attributes, target.attr.value, value)
            case cst.Subscript():
                self._store_item(target, value, scope)

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
        if not isinstance(key, Const):
            return
        if isinstance(holder, Ref) and holder.name == "os.environ":
            self._store(self.globals.names, f"os.environ[{key.value}]", value)
        if isinstance(holder, Table):
            self._store(holder.items, key.value, value)
        elif isinstance(holder, Object) and isinstance(key.value, str):
            self._store(holder.attributes, key.value, value)

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
            self._has_entry |= node.test.left.value == "__name__"
        known = operators.truth(test)
        orelse = node.orelse
        body = _body(node.body)
        rest: Sequence[cst.CSTNode] = (
            () if orelse is None else ([orelse] if isinstance(orelse, cst.If) else _body(orelse.body))
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
        source = self.eval(node.iter, scope)
        element: Value = Unknown(node.iter)
        if isinstance(source, Items) and not source.open and source.items:
            element = choice(list(source.items), node.iter)
        self.bind(node.target, element, scope)
        repeats = not isinstance(source, Items) or source.open or len(source.items) != 1
        self.walk.loops += repeats
        flow = self.block(_body(node.body), scope)
        self.walk.loops -= repeats
        if node.orelse is not None:
            self.block(_body(node.orelse.body), scope)
        return Flow.NEXT if flow is not Flow.RAISED else flow

    def _try(self, node: cst.Try | cst.TryStar, scope: Scope) -> Flow:
        flow = self.block(_body(node.body), scope)
        after = scope.names
        for handler in node.handlers:
            scope.names = dict(after)
            outer = self.walk.branch
            self.walk.branch = outer.maybe()
            if handler.name is not None:
                self.bind(handler.name.name, Unknown(handler), scope)
            self.block(_body(handler.body), scope)
            self.walk.branch = outer
        scope.names = after
        if node.orelse is not None and flow is Flow.NEXT:
            flow = self.block(_body(node.orelse.body), scope)
        if node.finalbody is not None:
            self.block(_body(node.finalbody.body), scope)
        return Flow.MAYBE if flow is Flow.RAISED and node.handlers else flow

    def _match(self, node: cst.Match, scope: Scope) -> None:
        self.eval(node.subject, scope)
        before = dict(scope.names)
        ends = [before]
        outer = self.walk.branch
        for case in node.cases:
            scope.names = dict(before)
            self.walk.branch = outer.maybe()
            if self.block(_body(case.body), scope) not in (Flow.LEFT, Flow.RAISED):
                ends.append(scope.names)
        self.walk.branch = outer
        scope.names = _merge(ends)

    def _import(self, node: cst.Import | cst.ImportFrom, scope: Scope) -> None:
        if isinstance(node.names, cst.ImportStar):
            return
        prefix = ""
        if isinstance(node, cst.ImportFrom):
            prefix = "." * len(node.relative) + (dotted(node.module) + "." if node.module is not None else "")
        for alias in node.names:
            name = dotted(alias.name)
            if alias.asname is not None and isinstance(alias.asname.name, cst.Name):
                scope.set(alias.asname.name.value, Ref(alias, prefix + name))
            elif prefix or "." not in name:
                scope.set(name, Ref(alias, prefix + name))
            else:
                first = name.partition(".")[0]
                scope.set(first, Ref(alias, first))

    def imported(self, ref: Ref) -> Value:
        """What a name imported from a module of the same repository stands for there."""
        if self._modules is None or len(self.walk.frames) >= MAX_DEPTH:
            return ref
        name, _, attribute = ref.name.rpartition(".")
        if not name or name in ("", "."):
            return ref
        scope = self._module_scope(name)
        found = scope.names.get(attribute) if scope is not None else None
        return found if found is not None else ref

    def _module_scope(self, name: str) -> Scope | None:
        if name in self._scopes:
            return self._scopes[name]
        self._scopes[name] = None
        module = self._modules.find(name) if self._modules is not None else None
        if module is None:
            return None
        scope = Scope({"__name__": Const(None, name)})
        self._scopes[name] = scope
        walk, entry = self.walk, self._has_entry
        before = walk.branch, walk.statement, walk.assigned_to, walk.frames
        walk.branch, walk.statement, walk.assigned_to, walk.frames = Branch(), None, None, []
        try:
            self.block(module.body, scope)
        finally:
            walk.branch, walk.statement, walk.assigned_to, walk.frames = before
            self._has_entry = entry
        return scope

    # -- definitions -----------------------------------------------------------------------------------------

    def _define(self, node: cst.FunctionDef, scope: Scope) -> None:
        function = Function(node, node, scope)
        scope.set(node.name.value, function)
        for decorator in node.decorators:
            call = decorator.decorator
            if isinstance(call, cst.Call) and dotted(call.func).endswith((".option", ".argument")):
                passed, _ = self._arguments(call, scope)
                names = [str(p.value.value) for p in passed if p.name is None and isinstance(p.value, Const)]
                keywords = {p.name: p.value for p in passed if p.name is not None}
                is_flag = keywords.get("is_flag")
                if isinstance(is_flag, Const) and is_flag.value:
                    keywords["action"] = Const(call, "store_true")
                names = [part for name in names for part in name.split("/")[:1]]
                entry = parsers.argument_field([n for n in names if n.startswith("-")] or names, keywords, call)
                if entry is not None:
                    self.walk.options.setdefault(id(node), {})[entry.name] = entry

    def _class(self, node: cst.ClassDef, scope: Scope) -> Class:
        bases = tuple(self.eval(base.value, scope) for base in node.bases)
        cls = Class(node, node.name.value, node, bases, scope=scope)
        inner = Scope({}, scope)
        for statement in _body(node.body):
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
        cls.fields[name] = Field(name, kind, default, node, many)
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
                if isinstance(factory, Function) and isinstance(factory.node, cst.Lambda):
                    return self.eval(factory.node.body, scope)
                if isinstance(factory, Ref) and factory.name in ("list", "dict"):
                    return Items(argument) if factory.name == "list" else Table(argument)
                return Unknown(argument)
        return None

    # -- calls -----------------------------------------------------------------------------------------------

    def invoke(self, node: cst.Call, record: Record, function: Value, scope: Scope) -> Value:
        match function:
            case Function():
                if id(function.node) in self.walk.options and not record.passed:
                    return self.enter(function)
                return self.follow(function, record)
            case Class():
                return self._instantiate(function, record)
            case Choice() if all(isinstance(option, Function | Class) for option in function.options):
                results = [
                    self.under(node, None, False, lambda option=option: self.invoke(node, record, option, scope))  # type: ignore[misc]
                    for option in function.options
                ]
                return choice(results, node)
        return library.call(self, record, function)

    def follow(self, function: Function, record: Record) -> Value:
        """Run one of the script's own functions with the arguments of a call."""
        scope = Scope({}, function.scope or self.globals)
        if function.node is None:
            return Unknown(record.node)
        parameters = function.node.params
        names = [parameter.name.value for parameter in (*parameters.posonly_params, *parameters.params)]
        positional = record.positional
        if function.bound is not None and names and not _is_static(function.node):
            positional = [function.bound, *positional]
        given = dict(zip(names, positional, strict=False))
        known = {*names, *(parameter.name.value for parameter in parameters.kwonly_params)}
        extra = Table(record.node, open=record.spreads)
        for passed in record.passed:
            if passed.name in known:
                given[passed.name] = passed.value
            elif passed.name is not None:
                extra.items[passed.name] = passed.value
        self._parameters(parameters, given, scope, record.spreads)
        if isinstance(parameters.star_arg, cst.Param):
            rest = positional[len(names) :]
            scope.names[parameters.star_arg.name.value] = Items(record.node, rest, open=record.spreads)
        if parameters.star_kwarg is not None:
            scope.names[parameters.star_kwarg.name.value] = extra
        return self._run(function.node, scope)

    def _parameters(self, parameters: cst.Parameters, given: Mapping[str, Value], scope: Scope, spreads: bool) -> None:
        for parameter in (*parameters.posonly_params, *parameters.params, *parameters.kwonly_params):
            name = parameter.name.value
            if name in given:
                scope.names[name] = given[name]
            elif parameter.default is not None and not spreads:
                scope.names[name] = self.eval(parameter.default, scope.parent or self.globals)
            else:
                scope.names[name] = Unknown(parameter)

    def _run(self, node: cst.FunctionDef | cst.Lambda, scope: Scope) -> Value:
        self.walk.entered.add(id(node))
        follows = self._follows.get(id(node), 0)
        frames = self.walk.frames
        if isinstance(node, cst.Lambda):
            return self.eval(node.body, scope) if len(frames) < MAX_DEPTH else Unknown(node)
        if follows >= _MAX_FOLLOWS or len(frames) >= MAX_DEPTH or any(frame.node is node for frame in frames):
            return Unknown(node)
        self._follows[id(node)] = follows + 1
        frame = Frame(node)
        frames.append(frame)
        statement = self.walk.statement
        try:
            self.block(_body(node.body), scope)
        finally:
            frames.pop()
            self.walk.statement = statement
        return choice(frame.returns, node) if frame.returns else Const(node, None)

    def enter(self, function: Function) -> Value:
        """Run a function that nobody calls with arguments: its parameters are filled by flags or defaults."""
        node = function.node
        if not isinstance(node, cst.FunctionDef):
            return Unknown(node)
        scope = Scope({}, function.scope or self.globals)
        declared = dict(self.walk.options.get(id(node), {}))
        given: dict[str, Value] = {}
        for index, parameter in enumerate((*node.params.params, *node.params.kwonly_params)):
            name = parameter.name.value
            if index == 0 and function.bound is not None and not _is_static(node):
                given[name] = function.bound
            elif name not in declared:
                kind, many = ("", False)
                if parameter.annotation is not None:
                    kind, many = parsers.kind_of(self.module.code_for_node(parameter.annotation.annotation))
                default = self.eval(parameter.default, self.globals) if parameter.default is not None else None
                declared[name] = Field(name, kind, default, parameter, many)
        filled = parsers.assign(declared.values(), self.walk.flags)
        given |= {n: parsers.fill(entry, filled.get(n), self.walk.assume) for n, entry in declared.items()}
        self.walk.parses |= bool(declared)
        self.walk.parsed.append(Object(node, function.name, attributes=dict(given), parsed=True))
        self._parameters(node.params, given, scope, spreads=True)
        return self._run(node, scope)

    def _instantiate(self, cls: Class, record: Record) -> Value:
        if cls.library is not None and library.is_dataclass_parser(cls.library):
            return library.call(self, record, Ref(record.node, cls.library))
        made = Object(record.node, cls.name, record, cls, open=record.spreads)
        for name, entry in cls.all_fields().items():
            made.attributes[name] = entry.default or Unknown(entry.node)
        names = list(cls.all_fields())
        for index, passed in enumerate(record.passed):
            target = passed.name or (names[index] if index < len(names) else None)
            if target is not None:
                made.attributes[target] = passed.value
        constructor = cls.member("__init__")
        if isinstance(constructor, Function):
            self.follow(Function(constructor.origin, constructor.node, constructor.scope, made), record)
        library.constructed(made, record)
        return made

    # -- what libraries and the environment fill in ----------------------------------------------------------

    def environment(self, name: str, default: Value | None, node: cst.CSTNode) -> Value:
        stored = self.globals.names.get(f"os.environ[{name}]")
        if stored is not None:
            return stored
        if name in self.walk.environment:
            return Const(Environment(name), self.walk.environment[name])
        if name in _RANKS:
            return Unknown(node)
        return default if default is not None else Unknown(node)

    def field_default(self, holder: Object, name: str, node: cst.CSTNode) -> Value | None:
        if holder.open:
            return None
        if library.is_arguments(holder.library) or holder.parsed:
            found = self.walk.defaults.get(holder.library, name)
            return Const(found[1], found[0]) if found is not None else None
        if holder.cls is None and holder.call is not None:
            part = Object(node, f"{holder.library}.{name}")
            holder.attributes[name] = part
            return part
        return None


def _body(body: cst.BaseSuite) -> Sequence[cst.CSTNode]:
    if isinstance(body, cst.SimpleStatementSuite):
        return [cst.SimpleStatementLine(body.body)]
    return body.body


def _is_static(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.FunctionDef) and any(
        isinstance(d.decorator, cst.Name) and d.decorator.value == "staticmethod" for d in node.decorators
    )


def _merge(ends: list[dict[str, Value]]) -> dict[str, Value]:
    if len(ends) == 1:
        return ends[0]
    merged: dict[str, Value] = {}
    for name in dict.fromkeys(name for names in ends for name in names):
        values = [names[name] for names in ends if name in names]
        merged[name] = values[0] if all(value is values[0] for value in values) else choice(values, values[0].origin)
    return merged
