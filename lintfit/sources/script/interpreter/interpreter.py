"""Walks through a script from its entry, following the calls of its own functions and modules."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import libcst as cst

from lintfit.documents.python_blocks import FunctionBlock
from lintfit.documents.python_walk import children, code_of, walk
from lintfit.sources.script.interpreter import hydra, library, models, parsers
from lintfit.sources.script.interpreter.expressions import dotted, is_decorated
from lintfit.sources.script.interpreter.imports import Imports
from lintfit.sources.script.interpreter.modules import Modules
from lintfit.sources.script.interpreter.origins import Environment
from lintfit.sources.script.interpreter.scope import Scope
from lintfit.sources.script.interpreter.state import MAX_DEPTH, Branch, Frame, OutOfBudget, Walk
from lintfit.sources.script.interpreter.statements import body_of
from lintfit.sources.script.interpreter.values import (
    Choice,
    Class,
    Const,
    Function,
    Items,
    Object,
    Record,
    Ref,
    Table,
    Unknown,
    Value,
    alternatives,
    choice,
)
from lintfit.sources.training_arguments import of_text

_RANKS = frozenset({"RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "NODE_RANK", "GROUP_RANK"})
_BY_EVERY_LAUNCHER = frozenset({"RANK", "LOCAL_RANK", "WORLD_SIZE"})
"""What torchrun, Accelerate's and DeepSpeed's launchers set for each of several processes (of a single one that
Accelerate starts: nothing; accelerate 1.15, ``utils/launch.py:prepare_simple_launcher_cmd_env``)."""
_ENTRIES = frozenset({"main", "train", "run", "finetune", "training_function", "cli", "sft", "start"})
_MAPPERS = frozenset({"map", "filter", "with_transform", "set_transform"})
"""Methods of datasets that call what they are handed."""
_INSTALLED = re.compile(r"is_(trl|peft|deepspeed|accelerate|bitsandbytes|bnb|vllm|ray|datasets|torch)_available")
"""Tests for packages that a training which asks for them has."""
_ELSEWHERE = re.compile(r"is_(sagemaker_[md]p_enabled|torch_(tpu|xla|npu|mlu|musa|hpu)_available)")
"""Tests for machines that have none of the GPUs that lintfit knows."""
_DEF = re.compile(r"\s*(?:async +)?def ")
_NAME = re.compile(r"\b[^\W\d]\w*")
_BY_NAME = re.compile(
    r"\bFire\(|\b(?:globals|locals|vars|eval|exec)\(|__dict__|sys\.modules|\bgetattr\(sys|\bplac\b|\bdefopt\b"
)
"""What may call a function of a script by a name that nobody reads in it."""
_MAX_RECURSION = 3
"""How often a function is followed from within itself: it may apply itself to the parts of a list."""
_MAX_FOLLOWS = 6
"""How often one function is followed; more calls of it add nothing new."""
_MAX_SMALL_FOLLOWS = 300
"""The same for a function of a few statements, as those that convert values are."""
_MAX_EXECUTED = 8
"""Files that are run by ``exec``, into one another or one after the other."""
_SMALL = 3
"""Statements of such a function."""


@lru_cache(maxsize=64)
def _named(text: str) -> frozenset[str]:
    """The names in a script outside of the first lines of functions and of comments; asked again for each launch."""
    lines = (line.partition("#")[0] for line in text.split("\n") if not _DEF.match(line))
    return frozenset(_NAME.findall("\n".join(lines)))


class Interpreter(Imports):
    """Executes statements over abstract values; ``walk.records`` holds the calls afterwards."""

    def __init__(self, module: cst.Module, walk: Walk, modules: Modules | None = None, path: str = "") -> None:
        super().__init__(module, walk, modules)
        if path:
            self.globals.names["__file__"] = Const(None, path)
        self._follows: dict[tuple[int, bool], int] = {}
        self._executed = walk.steps.within(_MAX_EXECUTED, "files run by exec")

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
        entries = [function for function in functions if function.name in _ENTRIES and not self.has_entry]
        if not entries:
            entries = self._only_training(functions)
        for function in (*entries, *(function for function in functions if function not in entries)):
            if id(function.node) not in self.walk.entered:
                left = False if self._is_left(function) else None
                self.walk.branch = Branch() if function in entries else Branch(left)
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

    def _only_training(self, functions: Sequence[Function]) -> list[Function]:
        """The one function that makes a trainer where nothing that runs has made one: a callback of a web page, not a
        command, which has a decorator, nor one whose call beneath ``__main__`` is commented out.
        """
        if any(record.name.endswith("Trainer") for record in self.walk.records):
            return []
        makers = [found for found in functions if found.node is not None and _makes_trainer(found.node)]
        plain = (found for found in makers if isinstance(found.node, cst.FunctionDef) and not found.node.decorators)
        if len(makers) != 1:
            return []
        return [each for each in plain if id(each.node) not in self.walk.entered and self._may_be_called(each)]

    def _may_be_called(self, function: Function) -> bool:
        """Whether a function is named outside of its own first line and of comments, or the script is run by nobody."""
        if not self.has_entry or self._modules is None:
            return True
        return function.name in _named(self._modules.documents[0].text)

    def _is_left(self, function: Function) -> bool:
        """Whether nothing of a script that is run calls a function: its name stands nowhere else in it, no decorator
        hands it on, and nothing calls functions by names that it is given (``fire.Fire()``, ``globals()[name]``). One
        that makes a trainer is what the script is for, and its call may be put back."""
        if not isinstance(function.node, cst.FunctionDef) or function.node.decorators or self._may_be_called(function):
            return False
        if _makes_trainer(function.node):
            return False
        return self._modules is not None and not _BY_NAME.search(self._modules.documents[0].text)

    def invoke(self, node: cst.Call, record: Record, function: Value, scope: Scope) -> Value:
        found = self._invoked(node, record, function, scope)
        if record.name.startswith("is_") and not isinstance(found, Const):
            for known, tests in ((True, _INSTALLED), (False, _ELSEWHERE)):
                if tests.fullmatch(record.name):
                    return Const(node, known)
        return found

    def _invoked(self, node: cst.Call, record: Record, function: Value, scope: Scope) -> Value:
        match function:
            case Function():
                if id(function.node) in self.walk.hydra and not record.passed:
                    return self._configured(function, record)
                if id(function.node) in self.walk.options and not record.passed:
                    return self.enter(function)
                found = self.follow(function, record)
                return _loaded(found) if record.name == "from_pretrained" else found
            case Class():
                return self._instantiate(function, record)
            case Object(kind="typer.Typer"):
                return self._commanded(function)
            case Object(call=Record() as fixed) if _is_partial(function):
                return self._completed(node, record, fixed, scope)
            case Choice() if all(isinstance(o, Function | Class) or _is_partial(o) for o in function.options):
                results = [
                    self.under(node, None, False, lambda option=option: self.invoke(node, record, option, scope))  # type: ignore[misc]
                    for option in function.options
                ]
                return choice(results, node)
        if isinstance(function, Ref) and function.name == "locals" and scope.parent is not None:
            self.walk.step(len(scope.names))
            return Table(node, dict(scope.names))
        result = library.call(self, record, function)
        if record.name in _MAPPERS:
            self._handed_over(record)
        return result

    def _commanded(self, app: Object) -> Value:
        """``app()``: the one command of a ``typer.Typer()``, else the one that the command line begins with."""
        commands, words = self.walk.commands.get(id(app), {}), list(self.walk.positional)
        chosen = next(iter(commands.values())) if len(commands) == 1 else commands.get(words.pop(0)) if words else None
        if chosen is None or self.walk.branch.taken is False:
            return Unknown(app.origin)
        return self.enter(chosen, words)

    def _completed(self, node: cst.Call, record: Record, fixed: Record, scope: Scope) -> Value:
        """Call what ``functools.partial`` was made of, with the arguments that it has fixed."""
        target, given = fixed.passed[0].value, {passed.name for passed in record.passed}
        kept = [passed for passed in fixed.passed[1:] if passed.name is None or passed.name not in given]
        whole = replace(
            record,
            function=target.name if isinstance(target, Ref) else record.function,
            passed=[*kept, *record.passed],
            spreads=record.spreads or fixed.spreads,
            taken=self.walk.branch.taken,
            order=len(self.walk.records),
        )
        self.walk.note(whole)
        return self._invoked(node, whole, target, scope)

    def _handed_over(self, record: Record) -> None:
        """Run the functions that a dataset is told to call: ``data.map(tokenize, fn_kwargs={...})``."""
        extra = record.keyword("fn_kwargs")
        handed = {str(name): value for name, value in extra.items.items()} if isinstance(extra, Table) else {}
        for value in [option for passed in record.passed for option in alternatives(passed.value)]:
            function, given = _partial(value)
            if function is not None and function.node is not None:
                given = {**handed, **given}
                if function.bound is not None and function.node.params.params:
                    given[function.node.params.params[0].name.value] = function.bound
                scope = Scope({}, function.scope or self.globals)
                self._parameters(function.node.params, given, scope, spreads=False)
                self._run(function.node, scope)

    def follow(self, function: Function, record: Record) -> Value:
        """Run one of the script's own functions with the arguments of a call."""
        scope = Scope({}, function.scope or self.globals)
        if function.node is None:
            return Unknown(record.node)
        parameters = function.node.params
        names = [parameter.name.value for parameter in (*parameters.posonly_params, *parameters.params)]
        positional = record.positional
        if function.bound is not None and names and not is_decorated(function.node, "staticmethod"):
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
        if self.walk.branch.taken is not False:
            self.walk.ran.add(id(node))
        known = (id(node), self.walk.branch.taken is False)  # what does not run leaves the others their follows
        follows = self._follows.get(known, 0)
        frames = self.walk.frames
        if isinstance(node, cst.Lambda):
            return self._lambda(node, scope)
        small = isinstance(node.body, cst.IndentedBlock) and _statements(node.body) <= _SMALL
        most = _MAX_SMALL_FOLLOWS if small else _MAX_FOLLOWS
        within = sum(frame.node is node for frame in frames)
        deepest = 0 if self.walk.branch.taken is False else _MAX_RECURSION  # what does not run calls itself in vain
        if follows >= most or len(frames) >= MAX_DEPTH or within > deepest:
            return Unknown(node)
        self._follows[known] = follows + 1
        frame = Frame(node)
        frames.append(frame)
        statement = self.walk.statement
        try:
            self.block(body_of(node.body), scope)
        finally:
            frames.pop()
            self.walk.statement = statement
        return choice(frame.returns, node) if frame.returns else Const(node, None)

    def _lambda(self, node: cst.Lambda, scope: Scope) -> Value:
        if len(self.walk.frames) >= MAX_DEPTH:
            return Unknown(node)
        self.walk.frames.append(Frame(node))
        try:
            return self.eval(node.body, scope)
        finally:
            self.walk.frames.pop()

    def enter(self, function: Function, words: Sequence[str] = ()) -> Value:
        """Run a function that nobody calls with arguments: its parameters are filled by flags or defaults.

        ``words`` are positional ones of the command line, which Fire hands over in order.
        """
        node = function.node
        if not isinstance(node, cst.FunctionDef):
            return Unknown(node)
        scope = Scope({}, function.scope or self.globals)
        declared = dict(self.walk.options.get(id(node), {}))
        given: dict[str, Value] = {}
        for index, parameter in enumerate((*node.params.params, *node.params.kwonly_params)):
            name = parameter.name.value
            if index == 0 and function.bound is not None and not is_decorated(node, "staticmethod"):
                given[name] = function.bound
            elif name not in declared:
                kind, many = ("", False)
                if parameter.annotation is not None:
                    kind, many = parsers.kind_of(code_of(parameter.annotation.annotation))
                default = self.eval(parameter.default, self.globals) if parameter.default is not None else None
                declared[name] = parsers.parameter_field(name, kind, default, parameter, many)
        filled = parsers.assign(declared.values(), self.walk.flags)
        for name in declared:
            if name not in filled and (off := self.walk.flags.get(f"no{name}")) is not None and off.value is None:
                filled[name] = (off, True)  # Fire's way to say no
        given |= {n: parsers.fill(entry, filled.get(n), self.walk.assume) for n, entry in declared.items()}
        unfilled = [name for name in declared if name not in filled]
        given |= {name: Const(node, of_text(word)) for name, word in zip(unfilled, words, strict=False)}
        self.walk.parses |= bool(declared)
        self.walk.parsed.append(Object(node, function.name, attributes=dict(given), parsed=True))
        self._parameters(node.params, given, scope, spreads=True)
        if node.params.star_kwarg is not None:
            used = {id(flag) for flag, _ in filled.values()}
            rest = {name: parsers.convert(flag, None) for name, flag in self.walk.flags.items() if id(flag) not in used}
            named = {parameter.name.value for parameter in (*node.params.params, *node.params.kwonly_params)}
            kept: dict[Any, Value] = {name: value for name, value in given.items() if name not in named}
            scope.names[node.params.star_kwarg.name.value] = Table(node, kept | rest, open=not self.walk.assume)
        return self._run(node, scope)

    def _instantiate(self, cls: Class, record: Record) -> Value:
        if cls.library is not None and models.is_dataclass_parser(cls.library):
            return library.call(self, record, Ref(record.node, cls.library))
        made = Object(record.node, cls.name, record, cls, open=record.spreads)
        fields = cls.all_fields()
        self.walk.step(len(fields))
        for name, entry in fields.items():
            # Of what is spread from a mapping that is not known, any field may be another than its default.
            made.attributes[name] = (None if record.spreads else entry.default) or Unknown(entry.node)
        names = list(fields)
        for index, passed in enumerate(record.passed):
            target = passed.name or (names[index] if index < len(names) else None)
            if target is not None:
                made.attributes[target] = passed.value
        constructor = cls.member("__init__")
        if isinstance(constructor, Function):
            self.follow(Function(constructor.origin, constructor.node, constructor.scope, made), record)
        elif names:
            self.post_init(made)
        library.constructed(made, record)
        return made

    def _configured(self, function: Function, record: Record) -> Value:
        """Run the function that Hydra hands its config."""
        node = function.node
        if not isinstance(node, cst.FunctionDef) or not node.params.params:
            return Unknown(record.node)
        config = hydra.composed(self, self.walk.hydra[id(node)], record)
        return self._run(node, Scope({node.params.params[0].name.value: config}, function.scope or self.globals))

    def run_file(self, name: str) -> None:
        """Run the statements of another file as the module's own."""
        module = self._modules.beside(name) if self._modules is not None and not self.walk.frames else None
        if module is None or self.walk.branch.taken is False or not self._executed.take():
            return
        entry = self.has_entry
        self.block(module.body, self.globals)
        self.has_entry = entry

    def property_value(self, getter: Function) -> Value:
        node = getter.node
        if not isinstance(node, cst.FunctionDef) or getter.bound is None or not node.params.params:
            return Unknown(node)
        first = node.params.params[0].name.value
        return self._run(node, Scope({first: getter.bound}, getter.scope or self.globals))

    def post_init(self, made: Object) -> None:
        """What a dataclass does to its fields once they are filled."""
        own = made.cls.member("__post_init__") if made.cls is not None else None
        if isinstance(own, Function) and isinstance(own.node, cst.FunctionDef):
            first = own.node.params.params[0].name.value if own.node.params.params else "self"
            self._run(own.node, Scope({first: made}, own.scope or self.globals))

    def environment(self, name: str, default: Value | None, node: cst.CSTNode) -> Value:
        stored = self.globals.names.get(f"os.environ[{name}]")
        if stored is not None:
            return stored
        if name in _RANKS and self.walk.environment.get("WORLD_SIZE") == "":
            return default if default is not None else Unknown(node)  # started by python alone: none of them is set
        if name in self.walk.environment:
            return Const(Environment(name), self.walk.environment[name])
        if name in _RANKS:
            return Unknown(node)
        return default if default is not None else Unknown(node)

    def is_set(self, name: str) -> bool | None:
        variables = self.walk.environment
        stored = self.globals.names.get(f"os.environ[{name}]")
        if stored is not None:
            return None if isinstance(stored, Choice) else True
        if name in _RANKS:
            world = variables.get("WORLD_SIZE", "1")
            return False if world == "" else True if world != "1" and name in _BY_EVERY_LAUNCHER else None
        return True if name in variables else None

    def field_default(self, holder: Object, name: str, node: cst.CSTNode) -> Value | None:
        if holder.open:
            return None
        if holder.kind.endswith("ParallelismConfig") and name.endswith("_enabled") and holder.call is not None:
            size = holder.call.keyword(f"{name.removesuffix('_enabled')}_size")
            return Const(node, size.value > 1) if isinstance(size, Const) and isinstance(size.value, int) else None
        if name == "do_eval" and models.has_strategy(holder.attributes):
            return Const(node, True)  # ``TrainingArguments.__post_init__``
        if models.is_arguments(holder.library) or holder.parsed:
            found = self.walk.defaults.get(holder.library, name)
            return Const(found[1], found[0]) if found is not None else None
        if holder.cls is None and holder.call is not None:
            part = Object(node, f"{holder.library}.{name}")
            holder.attributes[name] = part
            return part
        return None


@lru_cache(maxsize=2048)
def _statements(body: cst.IndentedBlock) -> int:
    """How many statements do something: no docstring, and no ``global``."""
    idle = (cst.Global, cst.Nonlocal, cst.Pass)
    return sum(
        not (
            isinstance(each, cst.SimpleStatementLine)
            and all(isinstance(s, idle) or (isinstance(s, cst.Expr) and _is_text(s.value)) for s in each.body)
        )
        for each in body.body
    )


def _is_text(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.SimpleString | cst.ConcatenatedString)


@lru_cache(maxsize=2048)
def _makes_trainer(function: cst.CSTNode) -> bool:
    body = getattr(function, "body", None)
    silent = type(body) is FunctionBlock and "Trainer" not in body.lines.text  # need not be parsed for this
    parts = (part for part in children(function) if not silent or part is not body)
    calls = (node for part in parts for node in walk(part) if type(node) is cst.Call)
    return any(dotted(node.func).endswith("Trainer") for node in calls)


def _partial(value: Value) -> tuple[Function | None, dict[str, Value]]:
    """The script's function behind a value, with the arguments that ``functools.partial`` has fixed."""
    if isinstance(value, Function):
        return value, {}
    made = value.call if isinstance(value, Object) and value.library == "functools.partial" else None
    target = made.value(0) if made is not None else None
    if made is None or not isinstance(target, Function):
        return None, {}
    return target, {passed.name: passed.value for passed in made.passed if passed.name is not None}


def _is_partial(value: Value) -> bool:
    """Whether a value is what ``functools.partial`` returned."""
    return isinstance(value, Object) and value.kind == "functools.partial" and bool(value.call and value.call.passed)


def _loaded(made: Value) -> Value:
    """What a class's own ``from_pretrained`` gives: what it has its base class load, where it does that at all.

    What it puts together by hand beside it is for checkpoints of another form, which are already quantized mostly.
    """
    loads = [option for option in alternatives(made) if any(models.loads_of(option))]
    return choice(loads, made.origin) if loads else made
