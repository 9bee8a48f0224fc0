"""Evaluates calls: what is called on what, with which arguments. What the call does is the subclass's."""

from __future__ import annotations

import libcst as cst

from lintfit.sources.script.interpreter.expressions import Expressions, dotted, is_super
from lintfit.sources.script.interpreter.operators import switched
from lintfit.sources.script.interpreter.scope import Scope
from lintfit.sources.script.interpreter.state import INITIALIZERS, Gradient, Walk
from lintfit.sources.script.interpreter.values import (
    Choice,
    Class,
    Function,
    Items,
    Object,
    Passed,
    Record,
    Ref,
    Table,
    Unknown,
    Value,
    alternatives,
    choice,
    held,
)


class Invocations(Expressions):
    """Notes every call with its receiver and its arguments."""

    def __init__(self, module: cst.Module, walk: Walk) -> None:
        super().__init__(module, walk)
        self._dispatch[cst.Call] = self._call

    def invoke(self, node: cst.Call, record: Record, function: Value, scope: Scope) -> Value:
        """The result of a call whose arguments have been evaluated."""
        raise NotImplementedError

    def _call(self, node: cst.Call, scope: Scope) -> Value:
        assigned = self.walk.assigned_to
        chained = type(node.func) is cst.Attribute and type(node.func.value) is cst.Call
        self.walk.assigned_to = assigned if chained else None
        receiver, function, name = self._callee(node, scope)
        self.walk.assigned_to = None
        passed, spreads = self._arguments(node, scope)
        branch = self.walk.branch
        record = Record(
            node=node,
            function=name,
            passed=passed,
            spreads=spreads,
            order=len(self.walk.records),
            taken=branch.taken,
            tests=branch.tests,
            guarded=branch.guarded,
            receiver=receiver,
            receiver_name=dotted(node.func.value) if type(node.func) is cst.Attribute else None,
            assigned_to=assigned,
            statement=self.walk.statement,
            loops=self.walk.depth,
            classes=tuple(option for option in alternatives(function) if isinstance(option, Class)),
            callee=function if isinstance(function, Function) else None,
        )
        self.walk.note(record)
        if record.name in INITIALIZERS:
            self.walk.initializers.append(record)
        if record.name == "requires_grad_":
            self._switched(record)
        return self.invoke(node, record, function, scope)

    def _switched(self, record: Record) -> None:
        """Note a parameter that is frozen or not within a loop over those of a module."""
        source = self.walk.iterated[-1] if self.walk.iterated else None
        if source is not None and isinstance(record.node.func, cst.Attribute):
            self.walk.gradients.append(Gradient(record.node, source, switched(record), record.taken, source.order))

    def _callee(self, node: cst.Call, scope: Scope) -> tuple[Value | None, Value, str]:
        """The receiver of a method call, the function, and its dotted name as imported."""
        func = node.func
        if not isinstance(func, cst.Attribute):
            function = self.eval(func, scope)
            return None, function, self._called(function, func)
        receiver = self.eval(func.value, scope)
        inherited = self._inherited(func, scope) if is_super(func.value) else None
        function = inherited or self.attribute(receiver, func.attr.value, func)
        if inherited is None and is_super(func.value) and func.attr.value == "from_pretrained":
            # A class's own loader that ends in the library's: it loads what the class inherits from.
            holder = self._holder(scope)
            if holder is not None and holder.library is not None:
                return receiver, function, f"{holder.library}.{func.attr.value}"
        if isinstance(function, Ref):
            return receiver, function, function.name
        if isinstance(receiver, Object) and receiver.kind:
            return receiver, function, f"{receiver.library}.{func.attr.value}"
        if isinstance(receiver, Class) and not isinstance(function, Function):
            return receiver, function, f"{receiver.library or receiver.name}.{func.attr.value}"
        return receiver, function, dotted(func)

    def _method(self) -> cst.CSTNode | None:
        """The function that is followed, or that the followed lambda stands in."""
        return next((each.node for each in reversed(self.walk.frames) if not isinstance(each.node, cst.Lambda)), None)

    def _holder(self, scope: Scope) -> Class | None:
        """The class whose method is followed, or of whose object: what its first parameter holds."""
        method = self._method()
        first = method.params.params[:1] if isinstance(method, cst.FunctionDef) else ()
        holder = scope.get(first[0].name.value) if first else None
        return holder.cls if isinstance(holder, Object) else holder if isinstance(holder, Class) else None

    def _inherited(self, func: cst.Attribute, scope: Scope) -> Function | None:
        """The method of a class above that ``super().name`` means; None where that class is not the script's own."""
        method = self._method()
        first = method.params.params[:1] if isinstance(method, cst.FunctionDef) else ()
        holder = scope.get(first[0].name.value) if first else None
        cls = self._holder(scope)
        line = cls.line() if cls is not None else []
        given = (
            self.eval(func.value.args[0].value, scope) if isinstance(func.value, cst.Call) and func.value.args else None
        )
        at = next((index for index, each in enumerate(line) if each is given or each.defines(method)), len(line))
        found = (each.members.get(func.attr.value) for each in line[at + 1 :])
        above = next((member for member in found if isinstance(member, Function)), None)
        return Function(above.origin, above.node, above.scope, holder) if above is not None else None

    @staticmethod
    def _called(function: Value, node: cst.BaseExpression) -> str:
        match function:
            case Ref():
                return function.name
            case Class():
                return function.library or function.name
            case Choice():
                named = [option for option in function.options if isinstance(option, Ref | Class)]
                names = {
                    option.library or option.name if isinstance(option, Class) else option.name for option in named
                }
                return names.pop() if len(names) == 1 else dotted(node)
        return dotted(node)

    def _arguments(self, node: cst.Call, scope: Scope) -> tuple[list[Passed], bool]:
        passed: list[Passed] = []
        spreads = False
        for argument in node.args:
            value = self.eval(argument.value, scope)
            if argument.star == "*":
                known = isinstance(value, Items)
                self.walk.step(len(value.items) if isinstance(value, Items) else 0)
                spreads |= not known or (isinstance(value, Items) and value.open)
                passed += [Passed(None, item, argument) for item in (value.items if isinstance(value, Items) else ())]
            elif argument.star == "**":
                spreads |= self._spread(value, argument, passed)
            else:
                passed.append(Passed(argument.keyword.value if argument.keyword else None, value, argument))
        return passed, spreads

    def _spread(self, value: Value, argument: cst.Arg, passed: list[Passed]) -> bool:
        """Add what ``**value`` hands in; True where some of it could not be followed."""
        self.walk.step(sum(len(option.items) for option in alternatives(value) if isinstance(option, Table)))
        if isinstance(value, Choice) and all(isinstance(option, Table) for option in value.options):
            tables = [option for option in value.options if isinstance(option, Table)]
            for key in dict.fromkeys(key for table in tables for key in table.items):
                options = [table.items.get(key) or Unknown(argument) for table in tables]
                passed.append(Passed(str(key), choice(options, argument), argument))
            return any(table.open for table in tables)
        if not isinstance(value, Table):
            return True
        for key in value.items:
            if isinstance(key, str):
                passed.append(Passed(key, held(value, key) or Unknown(argument), argument))
        return value.open
