"""Evaluates expressions of a script over abstract values; what it does not understand is Unknown, never an error."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import libcst as cst

from lintfit.documents import bounds
from lintfit.documents.python_walk import code_of
from lintfit.frozen import word_set
from lintfit.sources.script.interpreter import literals, models, operators
from lintfit.sources.script.interpreter.protocol import Evaluator
from lintfit.sources.script.interpreter.scope import Scope
from lintfit.sources.script.interpreter.state import MAX_NESTED, Walk, guards_device
from lintfit.sources.script.interpreter.values import (
    Choice,
    Class,
    Const,
    Function,
    Items,
    Object,
    Ref,
    Table,
    Unknown,
    Value,
    choice,
    dtype,
    held,
    size,
)

BUILTINS = word_set("""
    abs all any bool bytes dict enumerate filter float frozenset getattr hasattr int isinstance issubclass iter len
    list map max min next open print range repr reversed round set setattr sorted str sum super tuple type vars zip
    eval exec exit globals locals object quit
    """)
_INTEGER_DTYPE = re.compile(r"torch\.(u?int\d+|long|short|bool|char|quint\w+)")
_MAX_LOOP = 64
"""Elements of a comprehension that are evaluated one by one."""
_MAKING = frozenset({
    cst.BinaryOperation, cst.FormattedString, cst.ConcatenatedString, cst.List, cst.Tuple, cst.Set, cst.Dict,
    cst.Subscript, cst.ListComp, cst.SetComp, cst.GeneratorExp, cst.DictComp,
})  # fmt: skip
"""Expressions that make a value of the size of those that it is made of."""
_FAILURES = (ArithmeticError, LookupError, TypeError, ValueError, AttributeError, RecursionError)


PATH_PARTS: dict[str, Callable[[str], str]] = {
    "parent": posixpath.dirname,
    "name": posixpath.basename,
    "stem": lambda path: posixpath.splitext(posixpath.basename(path))[0],
    "suffix": lambda path: posixpath.splitext(path)[1],
}
"""Attributes of a ``pathlib.Path``, which is a string here."""


def dotted(node: cst.BaseExpression) -> str:
    """The source text of a chain of names (``self.model.float``), with ``()`` for what is not a name."""
    parts: list[str] = []
    # libcst's classes are abstract ones: to ask for an instance takes five times as long, and nobody inherits of these.
    while type(node) is cst.Attribute:
        parts.append(node.attr.value)
        node = node.value
    parts.append(node.value if type(node) is cst.Name else "()")
    return ".".join(reversed(parts))


def is_super(node: cst.BaseExpression) -> bool:
    """Whether an expression is a call of ``super``."""
    return type(node) is cst.Call and type(node.func) is cst.Name and node.func.value == "super"


@lru_cache(maxsize=1 << 16)
def _guards(test: cst.BaseExpression) -> tuple[bool, bool]:
    """Whether the body and the ``else`` of a branch under this test run only without CUDA."""
    text = code_of(test)
    return guards_device(text, True), guards_device(text, False)


def is_decorated(node: cst.CSTNode | None, *names: str) -> bool:
    """Whether a function has a decorator with one of these last names."""
    decorators = node.decorators if isinstance(node, cst.FunctionDef) else ()
    return any(dotted(each.decorator).rpartition(".")[2] in names for each in decorators)


class Expressions(Evaluator):
    """Evaluates expressions. Statements and calls of functions are the subclass's."""

    def __init__(self, module: cst.Module, walk: Walk) -> None:
        self.module = module
        self.walk = walk
        self._dispatch: dict[type[cst.CSTNode], Callable[[Any, Scope], Value]] = {
            cst.Name: self._name,
            cst.Attribute: self._attribute,
            cst.SimpleString: self._literal,
            cst.ConcatenatedString: self._concatenated,
            cst.FormattedString: self._formatted,
            cst.Integer: self._literal,
            cst.Float: self._literal,
            cst.List: self._items,
            cst.Tuple: self._items,
            cst.Set: self._items,
            cst.Dict: self._dict,
            cst.Subscript: self._subscript,
            cst.BinaryOperation: self._binary,
            cst.UnaryOperation: self._unary,
            cst.BooleanOperation: self._boolean,
            cst.Comparison: self._comparison,
            cst.IfExp: self._conditional,
            cst.Lambda: lambda node, scope: Function(node, node, scope),
            cst.NamedExpr: self._named,
            cst.Await: lambda node, scope: self.eval(node.expression, scope),
            cst.ListComp: self._comprehension,
            cst.SetComp: self._comprehension,
            cst.GeneratorExp: self._comprehension,
            cst.DictComp: self._dict_comprehension,
        }

    def eval(self, node: cst.CSTNode, scope: Scope) -> Value:
        """What an expression comes to. It takes a step, and what it makes, copies or compares takes more."""
        walk = self.walk
        walk.step()
        evaluate = self._dispatch.get(type(node))
        if evaluate is None or walk.nested >= MAX_NESTED:
            return Unknown(node)
        walk.nested += 1
        try:
            made = evaluate(node, scope)
        except _FAILURES:
            return Unknown(node)
        finally:
            walk.nested -= 1
        if type(node) in _MAKING:
            walk.step(size(made))
        return made

    def imported(self, ref: Ref) -> Value:
        """What a dotted name stands for in a module of the same repository; itself where there is none."""
        raise NotImplementedError

    def property_value(self, getter: Function) -> Value:
        """What a property of an object comes to."""
        raise NotImplementedError

    def bind(self, target: cst.CSTNode, value: Value, scope: Scope) -> None:
        raise NotImplementedError

    def _name(self, node: cst.Name, scope: Scope) -> Value:
        match node.value:
            case "None":
                return Const(node, None)
            case "True" | "False":
                return Const(node, node.value == "True")
        found = scope.get(node.value)
        if found is not None:
            return (
                self.imported(found) if isinstance(found, Ref) and isinstance(found.origin, cst.ImportAlias) else found
            )
        return Ref(node, node.value) if node.value in BUILTINS else Unknown(node)

    def _attribute(self, node: cst.Attribute, scope: Scope) -> Value:
        return self.attribute(self.eval(node.value, scope), node.attr.value, node)

    def attribute(self, holder: Value, name: str, node: cst.CSTNode) -> Value:
        """``holder.name``."""
        if isinstance(holder, Ref):
            if holder.name == "sys" and name == "argv":
                return self._argv(node)
            if name == "is_floating_point" and (dtype(holder) is not None or _INTEGER_DTYPE.fullmatch(holder.name)):
                return Const(node, dtype(holder) is not None)
            return self.imported(Ref(node, f"{holder.name}.{name}"))
        if isinstance(holder, Choice):
            return choice([self.attribute(option, name, node) for option in holder.options], node)
        if isinstance(holder, Class):
            found = holder.member(name)
            if isinstance(found, Function) and is_decorated(found.node, "classmethod"):
                return Function(found.origin, found.node, found.scope, holder)
            return found or Unknown(node)
        if isinstance(holder, Table):
            return held(holder, name) or Unknown(node)
        if isinstance(holder, Const) and isinstance(holder.value, str) and name in PATH_PARTS:
            return Const(holder.origin, PATH_PARTS[name](holder.value))
        if isinstance(holder, Object):
            return self._member(holder, name, node)
        return Unknown(node)

    def _member(self, holder: Object, name: str, node: cst.CSTNode) -> Value:
        if name in holder.attributes:
            if holder.parsed:
                self.walk.read.setdefault(id(holder), set()).add(name)
            if name == "do_eval" and models.has_strategy(holder.attributes):
                return Const(node, True)  # whatever it was given (``TrainingArguments.__post_init__``)
            return holder.attributes[name]
        if name == "__dict__":
            return Table(node, holder.attributes, open=not holder.parsed)
        if name in ("module", "model") and holder.base is not None:
            return holder.base
        if holder.cls is not None and (found := holder.cls.member(name)) is not None:
            if isinstance(found, Function):
                method = Function(found.origin, found.node, found.scope, holder)
                return (
                    self.property_value(method) if is_decorated(found.node, "property", "cached_property") else method
                )
            return Unknown(node) if holder.parsed and holder.open else found
        return self.field_default(holder, name, node) or Unknown(node)

    def _argv(self, node: cst.CSTNode) -> Value:
        words = self.walk.words
        if words is None:
            return Unknown(node)
        return Items(node, [Const(node, word) for word in ("train.py", *words)])

    def _literal(self, node: cst.SimpleString | cst.Integer | cst.Float, scope: Scope) -> Value:
        self.walk.step(bounds.cost(len(node.value)))
        return Const(node, literals.value_of(node))

    def _concatenated(self, node: cst.ConcatenatedString, scope: Scope) -> Value:
        left, right = self.eval(node.left, scope), self.eval(node.right, scope)
        return operators.binary(cst.Add(), left, right, node)

    def _formatted(self, node: cst.FormattedString, scope: Scope) -> Value:
        text, known = "", True
        for part in node.parts:
            if isinstance(part, cst.FormattedStringText):
                text += part.value
                continue
            value = self.eval(part.expression, scope) if isinstance(part, cst.FormattedStringExpression) else Unknown()
            plain_part = isinstance(part, cst.FormattedStringExpression) and not (part.conversion or part.format_spec)
            if isinstance(value, Const) and plain_part:
                more = str(value.value)
                bounds.fits(len(text) + len(more))
                text += more
            else:
                known = False
        return Const(node, text) if known else Unknown(node)

    def _items(self, node: cst.List | cst.Tuple | cst.Set, scope: Scope) -> Value:
        result = Items(node)
        for element in node.elements:
            value = self.eval(element.value, scope)
            if isinstance(element, cst.StarredElement):
                known = isinstance(value, Items)
                bounds.fits(len(result.items) + (len(value.items) if isinstance(value, Items) else 0), bounds.MAX_ITEMS)
                result.items.extend(value.items if isinstance(value, Items) else ())
                result.open |= not known or (isinstance(value, Items) and value.open)
            else:
                result.items.append(value)
        return result

    def _dict(self, node: cst.Dict, scope: Scope) -> Value:
        result = Table(node)
        for element in node.elements:
            value = self._imported_later(element.value, scope) or self.eval(element.value, scope)
            if isinstance(element, cst.DictElement):
                key = self.eval(element.key, scope)
                if isinstance(key, Const) and bounds.is_key(key.value):
                    result.items[key.value] = value
                else:
                    result.open = True
            elif isinstance(value, Table):
                result.items |= value.items
                result.open |= value.open
            else:
                result.open = True
        return result

    def _subscript(self, node: cst.Subscript, scope: Scope) -> Value:
        holder = self.eval(node.value, scope)
        if len(node.slice) != 1 or not isinstance(node.slice[0].slice, cst.Index):
            return self._slice(node, holder, scope)
        index = self.eval(node.slice[0].slice.value, scope)
        if isinstance(holder, Ref) and holder.name == "os.environ" and isinstance(index, Const):
            return self.environment(str(index.value), None, node)
        if isinstance(holder, Object) and isinstance(index, Const) and isinstance(index.value, str):
            return holder.attributes.get(index.value) or Unknown(node)
        self._lacks(node, holder, index)
        found = operators.item(holder, index, node)
        return self.imported(found) if isinstance(found, Ref) and isinstance(found.origin, cst.ImportAlias) else found

    def _lacks(self, node: cst.Subscript, holder: Value, index: Value) -> None:
        """Note a key that a dict which the script writes out has not, where that is surely asked for."""
        if not isinstance(holder, Table) or holder.open or holder.root is not None or not holder.items:
            return
        sure = self.walk.branch.taken is True and not self.walk.tries and isinstance(holder.origin, cst.Dict)
        if sure and isinstance(index, Const) and isinstance(index.value, str) and index.value not in holder.items:
            self.walk.lacking.append((node, len(self.walk.records)))

    def _imported_later(self, node: cst.BaseExpression, scope: Scope) -> Ref | None:
        """An imported name in a table of classes or functions: its module is read once it is picked."""
        found = scope.get(node.value) if isinstance(node, cst.Name) else None
        return found if isinstance(found, Ref) and isinstance(found.origin, cst.ImportAlias) else None

    def _slice(self, node: cst.Subscript, holder: Value, scope: Scope) -> Value:
        # The bounds are asked for whatever is cut: a field that is one of them is read.
        bounds = [
            None if bound is None else self.eval(bound, scope)
            for each in node.slice
            for bound in ((each.slice.lower, each.slice.upper) if isinstance(each.slice, cst.Slice) else ())
        ]
        part = node.slice[0].slice
        text = holder.value if isinstance(holder, Const) and isinstance(holder.value, str) else None
        if (
            (text is None and (not isinstance(holder, Items) or holder.open))
            or not isinstance(part, cst.Slice)
            or part.step is not None
            or len(node.slice) != 1
        ):
            return Unknown(node)
        if any(bound is not None and not isinstance(bound, Const) for bound in bounds):
            return Unknown(node)
        lower, upper = (bound.value if isinstance(bound, Const) else None for bound in bounds)
        if text is not None:
            return Const(node, text[lower:upper])
        return Items(node, holder.items[lower:upper]) if isinstance(holder, Items) else Unknown(node)

    def _binary(self, node: cst.BinaryOperation, scope: Scope) -> Value:
        left, right = self.eval(node.left, scope), self.eval(node.right, scope)
        if isinstance(node.operator, cst.Modulo) and not isinstance(left, Const):
            self.walk.divisors[id(node)] = right
            if "accum" in (dotted(node.right) or ""):
                self.walk.accumulations.append(right)
        return operators.binary(node.operator, left, right, node)

    def _unary(self, node: cst.UnaryOperation, scope: Scope) -> Value:
        return operators.unary(node.operator, self.eval(node.expression, scope), node)

    def _boolean(self, node: cst.BooleanOperation, scope: Scope) -> Value:
        left = self.eval(node.left, scope)
        known = operators.truth(left)
        wanted = isinstance(node.operator, cst.And)
        if known is not None:
            return self.eval(node.right, scope) if known is wanted else left
        right = self.under(node.left, None, False, lambda: self.eval(node.right, scope))
        settled = operators.truth(right)
        if settled is not None and settled is not wanted and isinstance(right, Const) and isinstance(right.value, bool):
            return right
        return choice([left, right], node)

    def _comparison(self, node: cst.Comparison, scope: Scope) -> Value:
        left = self.eval(node.left, scope)
        results: list[bool | None] = []
        for target in node.comparisons:
            right = self.eval(target.comparator, scope)
            results.append(self._compared(target.operator, left, right))
            left = right
        if False in results:
            return Const(node, False)
        return Unknown(node) if None in results else Const(node, True)

    def _compared(self, operator: cst.BaseCompOp, left: Value, right: Value) -> bool | None:
        named = left.value if isinstance(left, Const) else None
        if isinstance(right, Ref) and right.name == "os.environ" and isinstance(operator, cst.In | cst.NotIn):
            known = self.is_set(named) if isinstance(named, str) else None
            return known if known is None or isinstance(operator, cst.In) else not known
        return operators.compare(operator, left, right, self.walk.steps)

    def is_set(self, name: str) -> bool | None:
        """Whether an environment variable is there; None where that is not known."""
        raise NotImplementedError

    def _conditional(self, node: cst.IfExp, scope: Scope) -> Value:
        known = operators.truth(self.eval(node.test, scope))
        if known is not None:
            return self.eval(node.body if known else node.orelse, scope)
        guards = [self.guards(node.test, body) for body in (True, False)]
        body = self.under(node.test, None, guards[0], lambda: self.eval(node.body, scope))
        orelse = self.under(node.test, None, guards[1], lambda: self.eval(node.orelse, scope))
        return choice([body, orelse], node)

    def guards(self, test: cst.BaseExpression, body: bool) -> bool:
        """Whether a branch under this test runs only without CUDA."""
        return _guards(test)[not body]

    def under(self, test: cst.BaseExpression, holds: bool | None, guarded: bool, run: Callable[[], Value]) -> Value:
        """Run something one test further in."""
        before = self.walk.branch
        self.walk.branch = before.into(test, holds, guarded)
        try:
            return run()
        finally:
            self.walk.branch = before

    def _named(self, node: cst.NamedExpr, scope: Scope) -> Value:
        value = self.eval(node.value, scope)
        self.bind(node.target, value, scope)
        return value

    def _comprehension(self, node: cst.ListComp | cst.SetComp | cst.GeneratorExp, scope: Scope) -> Value:
        results = self._each(node.for_in, scope, lambda inner: self.eval(node.elt, inner))
        return Unknown(node) if results is None else Items(node, results)

    def _dict_comprehension(self, node: cst.DictComp, scope: Scope) -> Value:
        def pair(inner: Scope) -> Value:
            return Items(node, [self.eval(node.key, inner), self.eval(node.value, inner)])

        undecided: list[Value] = []
        results = self._each(node.for_in, scope, pair, undecided)
        if results is None:
            return Table(node, open=True)
        table = Table(node)
        for result in results:
            key = result.items[0] if isinstance(result, Items) else None
            if isinstance(result, Items) and isinstance(key, Const) and bounds.is_key(key.value):
                maybe = any(result is each for each in undecided)
                table.items[key.value] = Unknown(result.items[1].origin) if maybe else result.items[1]
            else:
                table.open = True
        return table

    def _each(
        self,
        loop: cst.CompFor,
        scope: Scope,
        body: Callable[[Scope], Value],
        undecided: list[Value] | None = None,
    ) -> list[Value] | None:
        """What a comprehension makes of each element; None where that is not known. Those that its tests may leave out
        are among ``undecided``, too, where the caller can do with them."""
        source = self.eval(loop.iter, scope)
        inner = Scope({}, scope)
        known = isinstance(source, Items) and not source.open and len(source.items) <= _MAX_LOOP
        if not isinstance(source, Items) or not known or loop.inner_for_in is not None:
            self.bind(loop.target, Unknown(loop.iter), inner)
            body(inner)
            return None
        results: list[Value] = []
        for element in source.items:
            self.walk.step()
            self.bind(loop.target, element, inner)
            tests = [operators.truth(self.eval(condition.test, inner)) for condition in loop.ifs]
            if False in tests:
                continue
            if None in tests and undecided is None:
                return None
            results.append(body(inner))
            if None in tests and undecided is not None:
                undecided.append(results[-1])
        return results
