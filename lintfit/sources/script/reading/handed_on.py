"""Where the result of a call goes on to: into what runs, into what this run leaves out, or nowhere at all.

It is followed by the tree: through names, attributes of ``self``, containers, returns and functions of the script.
What cannot be followed counts as a use.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from enum import IntEnum
from functools import lru_cache

import libcst as cst

from lintfit.documents.python_reader import PythonDocument
from lintfit.documents.python_walk import walk
from lintfit.sources.script.interpreter.expressions import dotted
from lintfit.sources.script.interpreter.values import Record, alternatives, is_none
from lintfit.sources.script.reading.calls import Calls
from lintfit.sources.script.reading.loops import around
from lintfit.sources.script.reading.own_method import method_of

_DEPTH = 12
"""Steps from name to name that are followed; what goes further is taken for used."""
_ONLY_SHOWN = re.compile(
    r"(.*\.)?(print|pprint|rprint|repr|str|len|type|id|isinstance|hasattr|format"
    r"|(\w*log(ger|ging)?)\.(debug|info|warning|warn|error|log)|print_rank_?0|rank0_print)"
)
"""Functions that leave nothing behind of what they are given but its text."""
_TRACKERS = re.compile(r"(wandb|mlflow|swanlab|comet_ml|neptune)\..+|wandb_run\..+")
_PASSED_ON = frozenset({"deepcopy", "copy", "asdict", "vars", "dict"})
"""Functions whose result is the same thing once more."""
_OWN_METHODS = frozenset({"save_pretrained", "push_to_hub", "to_dict", "to_json_string", "__repr__", "__str__"})
"""Methods of a config that hand it to nobody."""
_EVERYTHING = re.compile(r"\b(locals|globals|vars)\(\)")

_Holder = cst.FunctionDef | cst.Lambda | cst.ClassDef | cst.Module


class Use(IntEnum):
    """How surely the run uses what a call returned; the larger one of several counts."""

    NOWHERE = 0
    """Nothing takes it."""
    NOT_HERE = 1
    """Only branches that this run does not take would."""
    PERHAPS = 2
    """A branch that this run may take does."""
    HERE = 3


_Defined = tuple[PythonDocument, cst.FunctionDef, bool]


class HandedOn:
    """Answers for the calls of one walk."""

    def __init__(self, calls: Calls, records: Sequence[Record]) -> None:
        self._calls = calls
        self._records: dict[int, list[Record]] = {}
        for record in records:
            self._records.setdefault(id(record.node), []).append(record)
        self._seen: set[int] = set()

    def use(self, record: Record) -> Use:
        """What becomes of the result of a call."""
        self._seen = set()
        try:
            document = self._calls.document_of(record.node)
        except KeyError:
            return Use.HERE
        return self._use(document, record.node, 0)

    def _use(self, document: PythonDocument, node: cst.CSTNode, depth: int) -> Use:
        """What becomes of the value of an expression."""
        if id(node) in self._seen:
            return Use.NOWHERE
        self._seen.add(id(node))
        parent = document.parent(node)
        if depth > _DEPTH:
            return Use.HERE
        match parent:
            case cst.Expr() | cst.FormattedStringExpression() | cst.Del():
                return Use.NOWHERE
            case cst.Assign():
                return max(self._kept(document, each.target, depth) for each in parent.targets)
            case cst.AnnAssign() if parent.value is node:
                return self._kept(document, parent.target, depth)
            case cst.NamedExpr() if parent.value is node:
                return max(self._kept(document, parent.target, depth), self._use(document, parent, depth))
            case cst.IfExp() if parent.test is not node:
                return self._use(document, parent, depth)
            case cst.BooleanOperation() | cst.Dict() | cst.List() | cst.Tuple() | cst.DictElement() | cst.Element():
                return self._use(document, parent, depth)
            case cst.Return():
                return self._returned(document, parent, depth)
            case cst.Attribute() if parent.value is node:
                return self._asked(document, parent, depth)
            case cst.Arg():
                return self._passed(document, parent, depth)
        return Use.HERE

    # -- names and attributes ----------------------------------------------------------------------------------

    def _kept(self, document: PythonDocument, target: cst.BaseExpression, depth: int) -> Use:
        """What becomes of a value that is assigned."""
        if isinstance(target, cst.Name):
            return self._named(document, target, target.value, depth)
        own = isinstance(target, cst.Attribute) and isinstance(target.value, cst.Name) and target.value.value == "self"
        holder = _around(document, target, cst.ClassDef)
        if isinstance(target, cst.Attribute) and own and isinstance(holder, cst.ClassDef) and not holder.bases:
            return self._attribute(target.attr.value, depth)
        return Use.HERE

    def _named(self, document: PythonDocument, node: cst.CSTNode, name: str, depth: int) -> Use:
        """What becomes of a variable, or of a parameter."""
        scope = _scope(document, node, name)
        if isinstance(scope, cst.ClassDef) or _EVERYTHING.search(document.text):
            return Use.HERE
        if isinstance(scope, cst.Module) and self._imported(document, name):
            return Use.HERE
        found = Use.NOWHERE
        for each in _mentions(document).get(name, ()):
            read = isinstance(each, cst.Name) and _is_read(document, each)
            if read and _scope(document, each, name) is scope:
                found = max(found, self._use(document, each, depth + 1))
            if found is Use.HERE:
                break
        return found

    def _imported(self, document: PythonDocument, name: str) -> bool:
        """Whether another module of the project imports this one and has a word for the name."""
        word, module = _word(name), _word(document.path.stem)
        others = (text for text in self._calls.texts() if text is not document.text)
        return any(word.search(text) and module.search(text) for text in others)

    def _attribute(self, name: str, depth: int) -> Use:
        """What becomes of an attribute, by its name on whatever object."""
        if any(f'"{name}"' in text or f"'{name}'" in text for text in self._calls.texts()):
            return Use.HERE
        if any(f".{name}" in text for text in self._unread()):
            return Use.HERE
        found = Use.NOWHERE
        for document, each in self._mentioned(name):
            if isinstance(each, cst.Attribute) and _is_read(document, each):
                found = max(found, self._use(document, each, depth + 1))
        return found

    def _asked(self, document: PythonDocument, node: cst.Attribute, depth: int) -> Use:
        """What becomes of something that is asked of the value: a method, a field."""
        if not _is_read(document, node):
            return Use.NOWHERE
        call = document.parent(node)
        if not isinstance(call, cst.Call) or call.func is not node:
            return self._use(document, node, depth)
        if node.attr.value not in _OWN_METHODS:
            return Use.HERE
        return self._use(document, call, depth) if node.attr.value == "to_dict" else Use.NOWHERE

    # -- functions ---------------------------------------------------------------------------------------------

    def _returned(self, document: PythonDocument, node: cst.CSTNode, depth: int) -> Use:
        """What the callers of a function make of its result."""
        function = _around(document, node, cst.FunctionDef)
        if not isinstance(function, cst.FunctionDef) or function.decorators:
            return Use.HERE
        name = function.name.value
        word = _word(name)
        if any(word.search(text) for text in self._unread()):
            return Use.HERE
        mentions = [each for each in self._mentioned(name) if _names_function(*each)]
        return max((self._called(*each, depth) for each in mentions), default=Use.HERE)

    def _called(self, document: PythonDocument, node: cst.CSTNode, depth: int) -> Use:
        call = document.parent(node)
        if not isinstance(call, cst.Call) or call.func is not node:
            return Use.HERE
        return min(self._use(document, call, depth + 1), self._reached(call, None))

    def _passed(self, document: PythonDocument, argument: cst.Arg, depth: int) -> Use:
        """What becomes of an argument."""
        call = document.parent(argument)
        if not isinstance(call, cst.Call):
            return Use.HERE
        name = dotted(call.func)
        if _ONLY_SHOWN.fullmatch(name) or _TRACKERS.fullmatch(name):
            return Use.NOWHERE
        if name.rpartition(".")[2] in _PASSED_ON:
            return self._use(document, call, depth)
        reached = self._reached(call, argument)
        if reached <= Use.NOT_HERE:
            return reached
        return min(reached, self._inside(call, argument, depth))

    def _reached(self, call: cst.Call, argument: cst.Arg | None) -> Use:
        """Whether the run gets to a call and hands it more than None."""
        records = self._records.get(id(call))
        if records is None:
            return Use.HERE
        handed = [_handed(record, argument) for record in records]
        return max(handed)

    def _inside(self, call: cst.Call, argument: cst.Arg, depth: int) -> Use:
        """What a function of the script makes of its parameter; what is not the script's own uses it."""
        found = list(self._functions(dotted(call.func).rpartition(".")[2]))
        if len(found) != 1 or argument.star:
            return Use.HERE
        document, function, bound = found[0]
        parameter = _parameter(function, call, argument, bound)
        return Use.HERE if parameter is None else self._named(document, parameter, parameter.name.value, depth + 1)

    def _functions(self, name: str) -> Iterator[_Defined]:
        """Functions and constructors of the script by their name, and whether an object comes first."""
        for document in self._calls.documents:
            for node in _defined(document).get(name, ()):
                yield from self._callable(document, node)

    @staticmethod
    def _callable(document: PythonDocument, node: cst.CSTNode) -> Iterator[_Defined]:
        if isinstance(node, cst.FunctionDef):
            yield document, node, _around(document, node, cst.ClassDef) is not None
        elif isinstance(node, cst.ClassDef) and (constructor := method_of(node, "__init__")) is not None:
            yield document, constructor, True

    def _mentioned(self, name: str) -> Iterator[tuple[PythonDocument, cst.CSTNode]]:
        """What is of this name in any file."""
        for document in self._calls.documents:
            found = _mentions(document).get(name, ()) if name in document.text else ()
            yield from ((document, node) for node in found)

    def _unread(self) -> Iterator[str]:
        parsed = {id(document.text) for document in self._calls.documents}
        return (text for text in self._calls.texts() if id(text) not in parsed)


@lru_cache(maxsize=256)
def _mentions(document: PythonDocument) -> Mapping[str, list[cst.CSTNode]]:
    """Names, attributes and definitions by their name, in the order of the text; kept for the next launch."""
    found: dict[str, list[cst.CSTNode]] = {}
    for node in walk(document.module) if document.module is not None else ():
        match node:
            case cst.Name(value=name) | cst.Attribute(attr=cst.Name(value=name)):
                found.setdefault(name, []).append(node)
            case cst.FunctionDef(name=cst.Name(value=name)) | cst.ClassDef(name=cst.Name(value=name)):
                found.setdefault(name, []).append(node)
    return found


def _names_function(document: PythonDocument, node: cst.CSTNode) -> bool:
    """Whether a function is meant by a name: its definition and imports that leave it its name are left out."""
    if not isinstance(node, cst.Name):
        return isinstance(node, cst.Attribute)
    parent = document.parent(node)
    return _is_read(document, node) or (isinstance(parent, cst.ImportAlias) and parent.asname is not None)


def _handed(record: Record, argument: cst.Arg | None) -> Use:
    if record.taken is False:
        return Use.NOT_HERE
    values = [passed.value for passed in record.passed if passed.node is argument]
    options = [is_none(option) for value in values for option in alternatives(value)]
    if options and all(options):
        return Use.NOT_HERE
    return Use.HERE if record.taken and not any(options) else Use.PERHAPS


def _word(name: str) -> re.Pattern[str]:
    return re.compile(rf"\b{re.escape(name)}\b")


def _around(document: PythonDocument, node: cst.CSTNode, kind: type[cst.CSTNode]) -> cst.CSTNode | None:
    """The innermost function or class around a node, if it is of this kind; the class of the methods around it."""
    for current in around(document, node):
        if isinstance(current, kind):
            return current
        if isinstance(current, cst.ClassDef):
            return None
        if isinstance(node, cst.FunctionDef) and isinstance(current, cst.FunctionDef):
            return None
    return None


def _is_read(document: PythonDocument, node: cst.CSTNode) -> bool:
    """Whether a name or attribute stands for its value, and is not bound, declared or a label."""
    parent = document.parent(node)
    while isinstance(parent, cst.Element | cst.Tuple | cst.List):
        node, parent = parent, document.parent(parent)
        if isinstance(parent, cst.AssignTarget | cst.For | cst.CompFor):
            return not (isinstance(parent, cst.AssignTarget) or parent.target is node)
    match parent:
        case cst.AssignTarget() | cst.ImportAlias() | cst.Global() | cst.NameItem() | cst.AsName() | cst.Param():
            return getattr(parent, "default", None) is node
        case cst.AnnAssign() | cst.NamedExpr() | cst.AugAssign() | cst.For() | cst.CompFor():
            return parent.target is not node
        case cst.Attribute():
            return parent.attr is not node
        case cst.Arg():
            return parent.keyword is not node
        case cst.FunctionDef() | cst.ClassDef():
            return parent.name is not node
    return True


def _scope(document: PythonDocument, node: cst.CSTNode, name: str) -> _Holder:
    """The function, class or module whose variable a name is at a place."""
    current: cst.CSTNode | None = node
    inner = True
    while current is not None and not isinstance(current, cst.Module):
        holds = isinstance(current, cst.FunctionDef | cst.Lambda) or (isinstance(current, cst.ClassDef) and inner)
        if isinstance(current, cst.FunctionDef | cst.Lambda | cst.ClassDef) and holds and current is not node:
            inner = False
            if _binds(document, current, name):
                return current
        current = document.parent(current)
    assert document.module is not None
    return document.module


def _binds(document: PythonDocument, holder: cst.FunctionDef | cst.Lambda | cst.ClassDef, name: str) -> bool:
    """Whether a name is a variable of this function or class."""
    bound = False
    for each in _mentions(document).get(name, ()):
        if not isinstance(each, cst.Name) or _nearest(document, each) is not holder:
            continue
        parent = document.parent(each)
        if isinstance(parent, cst.NameItem):
            return False
        labels = isinstance(parent, cst.Attribute | cst.Arg | cst.FunctionDef | cst.ClassDef)
        bound |= not labels and not _is_read(document, each)
    return bound


def _nearest(document: PythonDocument, node: cst.CSTNode) -> cst.CSTNode | None:
    """The innermost function or class that a node is in."""
    scopes = (each for each in around(document, node) if isinstance(each, cst.FunctionDef | cst.ClassDef | cst.Lambda))
    return next(scopes, None)


def _parameter(function: cst.FunctionDef, call: cst.Call, argument: cst.Arg, bound: bool) -> cst.Param | None:
    """The parameter that an argument fills; None where that is not statically known."""
    params = [*function.params.posonly_params, *function.params.params]
    if argument.keyword is not None:
        named = [*params, *function.params.kwonly_params]
        return next((each for each in named if each.name.value == argument.keyword.value), None)
    before = call.args[: [id(each) for each in call.args].index(id(argument))]
    if any(each.star for each in before):
        return None
    index = len(before) + (1 if bound and params[:1] and params[0].name.value in ("self", "cls") else 0)
    return params[index] if index < len(params) else None


@lru_cache(maxsize=256)
def _defined(document: PythonDocument) -> Mapping[str, list[cst.CSTNode]]:
    """The definitions among them."""
    kinds = (cst.FunctionDef, cst.ClassDef)
    found = {name: [node for node in nodes if type(node) in kinds] for name, nodes in _mentions(document).items()}
    return {name: nodes for name, nodes in found.items() if nodes}
