"""What an assignment does: names, attributes, items, several at once."""

from __future__ import annotations

import re
from dataclasses import replace

import libcst as cst

from lintfit.documents import bounds
from lintfit.sources.script.interpreter import named_tuples, operators, parsers
from lintfit.sources.script.interpreter.expressions import dotted
from lintfit.sources.script.interpreter.invocations import Invocations
from lintfit.sources.script.interpreter.models import is_arguments, is_model
from lintfit.sources.script.interpreter.scope import Scope
from lintfit.sources.script.interpreter.state import LENGTHS, Flagged, Gradient, Pixels, Replaced, Walk
from lintfit.sources.script.interpreter.values import (
    Choice,
    Const,
    Items,
    Object,
    Ref,
    Table,
    Unknown,
    Value,
    alternatives,
    choice,
    objects,
    size,
)

_OPERATORS: dict[type[cst.BaseAugOp], type[cst.BaseBinaryOp]] = {
    cst.AddAssign: cst.Add,
    cst.SubtractAssign: cst.Subtract,
    cst.MultiplyAssign: cst.Multiply,
    cst.DivideAssign: cst.Divide,
    cst.FloorDivideAssign: cst.FloorDivide,
    cst.BitOrAssign: cst.BitOr,
}


_PROCESSOR = re.compile(r"(?:(?<!video_)processor|processing_class)$")
_SIZE = re.compile(r"(?:(?<!video_)processor|processing_class)\.size$")


_READ_AT_ONCE = frozenset({"bf16", "deepspeed", "fp16"})
"""Fields of ``TrainingArguments`` that count as they are when it is made."""


class Assignments(Invocations):
    """Binds values to whatever stands left of an ``=``."""

    def __init__(self, module: cst.Module, walk: Walk) -> None:
        super().__init__(module, walk)
        self.globals = Scope({"__name__": Const(None, "__main__")})

    def _named_target(self, target: cst.CSTNode) -> None:
        self.walk.assigned_to = dotted(target) if type(target) is cst.Name or type(target) is cst.Attribute else None

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
        self.walk.step(size(after))
        self.bind(node.target, after, scope)

    def bind(self, target: cst.CSTNode, value: Value, scope: Scope) -> None:
        match target:
            case cst.Name():
                if target.value in scope.outer:
                    self.store(scope.root.names, target.value, value)
                else:
                    scope.set(target.value, value)
                if target.value in LENGTHS and isinstance(value, Const) and _is_computed(value):
                    self.walk.lengths.append(value)
            case cst.Tuple() | cst.List():
                self._unpack(target, value, scope)
            case cst.Attribute():
                if target.attr.value == "requires_grad":
                    known, source = operators.truth(value), self.walk.iterated[-1] if self.walk.iterated else None
                    order = len(self.walk.records) if source is None else source.order
                    self.walk.gradients.append(Gradient(target, source, known, self.walk.branch.taken, order))
                if target.attr.value == "gradient_checkpointing" and operators.truth(value) is not False:
                    self._flagged(target, value, scope)
                self._pixels(target, value)
                for holder in alternatives(self.eval(target.value, scope)):
                    if isinstance(holder, Ref) and target.attr.value == "forward":
                        self._replaced(holder, value)
                    if isinstance(holder, Object) and not _comes_late(target, holder, value):
                        self._keep_first(target, holder)
                        self._put(holder, target.attr.value, value)
            case cst.Subscript():
                self._store_item(target, value, scope)

    def _keep_first(self, target: cst.Attribute, holder: Object) -> None:
        """``args.fp16 = True`` behind ``TrainingArguments()``: ``__post_init__`` has told accelerate of the precision
        by then (``ACCELERATE_MIXED_PRECISION``, and the blocks of a DeepSpeed config) and opened the DeepSpeed JSON,
        and nobody asks again."""
        name = target.attr.value
        made = is_arguments(holder.library) and (holder.parsed or holder.call is not None)
        if name in _READ_AT_ONCE and made and dotted(target.value) != "self" and self.walk.branch.taken is not False:
            holder.at_first.setdefault(name, holder.attributes.get(name))

    def _put(self, holder: Object, name: str, value: Value) -> None:
        """``holder.name = value``; ``holder.__dict__ = table`` sets all that the table holds."""
        items = value.items if name == "__dict__" and isinstance(value, Table) else {name: value}
        self.walk.step(bounds.cost(items=len(items)))
        for key, each in items.items():
            self.store(holder.attributes, str(key), each)

    def _flagged(self, target: cst.Attribute, value: Value, scope: Scope) -> None:
        """Note a model, or a part of one, that is told to recompute, or a config."""
        owner = target.value
        taken = self.walk.branch.taken if operators.truth(value) else None
        if dotted(owner).endswith("config") and self.walk.branch.taken is not False:
            config = self.eval(owner, scope)
            self.walk.recomputing.append(Flagged(target, taken, config, len(self.walk.records)))
            return
        while isinstance(owner, cst.Attribute) and owner.attr.value != "config":
            if any(is_model(each) for each in objects(self.eval(owner, scope))):
                break
            owner = owner.value
        made = objects(self.eval(owner, scope)) if isinstance(owner, cst.Name | cst.Attribute) else ()
        if dotted(owner) != "self" and not dotted(owner).endswith("config") and any(is_model(each) for each in made):
            self.walk.recomputing.append(Flagged(target, taken))

    def _pixels(self, target: cst.Attribute, value: Value) -> None:
        """Note how large an image processor is told to leave images."""
        name = target.attr.value
        if name not in ("max_pixels", "size") or not _PROCESSOR.search(dotted(target.value)):
            return
        sized = name == "size"
        told = value.items.get("longest_edge") if sized and isinstance(value, Table) else None if sized else value
        if told is not None and self.walk.branch.taken is not False:
            self.walk.pixels.append(Pixels(told, sized, self.walk.branch.taken))

    def _replaced(self, cls: Ref, value: Value) -> None:
        """Note a function that takes a method's place, unless it is in one that nobody calls."""
        branch = self.walk.branch
        if branch.taken or branch.undecided:
            self.walk.replaced.append(Replaced(cls.name, value, branch.taken))

    def store(self, table: dict[str, Value], key: str, value: Value) -> None:
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
        if not isinstance(key, Const) or not bounds.is_key(key.value):
            if isinstance(key, Const) and isinstance(holder, Table):
                holder.open = True
            return
        if key.value == "longest_edge" and self.walk.branch.taken is not False and _SIZE.search(dotted(target.value)):
            self.walk.pixels.append(Pixels(value, True, self.walk.branch.taken))
        if isinstance(holder, Ref) and holder.name == "os.environ":
            self.store(self.globals.names, f"os.environ[{key.value}]", value)
        if isinstance(holder, Table):
            self.store(holder.items, key.value, value)
        elif isinstance(holder, Object) and isinstance(key.value, str):
            self.store(holder.attributes, key.value, value)

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
                self.store(names, name, value)

    def _unpack(self, target: cst.Tuple | cst.List, value: Value, scope: Scope) -> None:
        elements = [element.value for element in target.elements]
        stars = [i for i, element in enumerate(target.elements) if isinstance(element, cst.StarredElement)]
        starred = bool(stars)
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
        if isinstance(value, Object) and (named := named_tuples.parts(value)) is not None:
            value = Items(value.origin, named)
        if isinstance(value, Items) and not value.open and len(value.items) == len(elements) and not starred:
            parts: list[Value] = value.items
        elif elements and isinstance(value, Object) and value.call is not None and not starred:
            parts = [value, *(Unknown(target) for _ in elements[1:])]
        elif isinstance(value, Items) and starred:
            parts = _around_star(value, stars[0], len(elements), target)
        else:
            parts = [Unknown(target) for _ in elements]
        for element, part in zip(elements, parts, strict=True):
            self.bind(element, part, scope)


def _around_star(value: Items, star: int, count: int, target: cst.CSTNode) -> list[Value]:
    """What ``first, *rest, last = value`` binds: the items before the star, a list of those it takes, those behind.

    Of items that are not all known, those from the star on are not.
    """
    behind = count - star - 1
    if len(value.items) < star + (0 if value.open else behind):
        return [Unknown(target) for _ in range(count)]
    if value.open:
        rest = Items(target, value.items[star:], open=True)
        return [*value.items[:star], rest, *(Unknown(target) for _ in range(behind))]
    end = len(value.items) - behind
    return [*value.items[:star], Items(target, value.items[star:end]), *value.items[end:]]


def _is_computed(value: Const) -> bool:
    """Whether a number is the result of an operation rather than read off somewhere."""
    return type(value.value) is int and isinstance(value.origin, cst.BinaryOperation)


def _comes_late(target: cst.Attribute, holder: Object, value: Value) -> bool:
    """``args.deepspeed = None`` behind ``TrainingArguments(deepspeed=…)``: ``__post_init__`` has made the plugin of it
    that the Trainer hands to its Accelerator (transformers 5.24, ``Trainer.create_accelerator_and_postprocess``)."""
    if target.attr.value != "deepspeed" or dotted(target.value) == "self" or not is_arguments(holder.library):
        return False
    before = holder.attributes.get("deepspeed")
    return before is not None and operators.truth(before) is True and operators.truth(value) is False
