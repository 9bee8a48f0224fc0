"""What a definition does: functions, commands of click and typer, the fields of a class."""

from __future__ import annotations

import libcst as cst

from lintfit.documents.python_walk import code_of
from lintfit.sources.script.interpreter import parsers
from lintfit.sources.script.interpreter.assignments import Assignments
from lintfit.sources.script.interpreter.expressions import dotted
from lintfit.sources.script.interpreter.scope import Scope
from lintfit.sources.script.interpreter.values import (
    Class,
    Const,
    Field,
    Function,
    Items,
    Object,
    Ref,
    Table,
    Unknown,
    Value,
)


class Definitions(Assignments):
    """Notes functions, whose bodies run when they are called, and the fields of classes."""

    def _define(self, node: cst.FunctionDef, scope: Scope) -> None:
        function = Function(node, node, scope)
        scope.set(node.name.value, function)
        for decorator in node.decorators:
            call = decorator.decorator
            if dotted(call.func if isinstance(call, cst.Call) else call).rpartition(".")[2] == "call_parse":
                self.walk.options.setdefault(id(node), {})  # fastcore fills the parameters from the command line
            if not isinstance(call, cst.Call):
                continue
            name = dotted(call.func)
            if name.rpartition(".")[2] == "main":
                self._hydra(call, node, scope)
            if name.endswith(".command"):
                self._command(call, function, scope)
            if name.endswith((".option", ".argument")):
                self._option(call, node, scope)

    def _hydra(self, call: cst.Call, node: cst.FunctionDef, scope: Scope) -> None:
        """``@hydra.main(config_path=…, config_name=…)``."""
        target = self.eval(call.func, scope)
        if isinstance(target, Ref) and target.name == "hydra.main":
            passed, _ = self._arguments(call, scope)
            self.walk.hydra[id(node)] = {p.name: p.value for p in passed if p.name is not None}

    def _option(self, call: cst.Call, node: cst.FunctionDef, scope: Scope) -> None:
        """``@click.option("--batch/--no-batch", "batch", …)``: a flag of the command that the function is."""
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
        if entry is None:
            return
        if switch:
            entry.kind = "bool"
        self.walk.options.setdefault(id(node), {})[entry.name] = entry

    def _command(self, call: cst.Call, function: Function, scope: Scope) -> None:
        """``@app.command()``: a function that a ``typer.Typer()`` runs."""
        app = self.eval(call.func.value, scope) if isinstance(call.func, cst.Attribute) else None
        if isinstance(app, Object) and app.kind == "typer.Typer":
            passed, _ = self._arguments(call, scope)
            named = next((each.value for each in passed if each.name in (None, "name")), None)
            name = str(named.value) if isinstance(named, Const) else function.name.replace("_", "-")
            self.walk.commands.setdefault(id(app), {})[name] = function

    def _field(self, cls: Class, node: cst.AnnAssign, scope: Scope) -> None:
        name = node.target.value if isinstance(node.target, cst.Name) else ""
        kind, many = parsers.kind_of(code_of(node.annotation.annotation))
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
