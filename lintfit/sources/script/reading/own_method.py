"""A Trainer's ``compute_loss`` or ``training_step`` of the script's own: what it runs, followed into its helpers."""

from __future__ import annotations

import re
from collections.abc import Sequence

import libcst as cst

from lintfit.documents.python_reader import PythonDocument
from lintfit.documents.python_walk import walk
from lintfit.frozen import field, frozen
from lintfit.sources.script.interpreter.expressions import dotted, is_super
from lintfit.sources.script.reading import loops
from lintfit.sources.script.reading.ways import most

STEPS = ("training_step", "compute_loss")
"""Methods of the Trainer that make a step, what calls the other first."""
_INPUTS = frozenset({"input_ids", "inputs_embeds", "pixel_values"})
"""Arguments that only a model takes."""
_NO_PASS = re.compile(
    r"^(is_|_is_|has|get|set|unwrap|_unwrap|extract_model|isinstance|type|id|print|len|issubclass|_prepare|floating_)"
    r"|^smp_|autocast|no_sync|accumulate|clip_grad|_input|state_dict"
)
"""Functions that are handed a model and do not run it; those of SageMaker's model parallelism run nowhere else."""
_GROWS = frozenset({"expand", "generate", "repeat", "repeat_interleave", "tile"})
"""Calls that write answers to a batch, or repeat its samples."""
_DEPTH = 3
"""Functions of the script that are followed into one another."""

Lineage = list[tuple[PythonDocument, cst.ClassDef]]


def lineage(documents: Sequence[PythonDocument], name: str) -> Lineage:
    """The class of this name and those of the script that it inherits from, itself first."""
    found: Lineage = []
    waiting = [name]
    while waiting:
        wanted = waiting.pop(0)
        for document in documents:
            for cls in _classes(document, wanted):
                if (document, cls) not in found:
                    found.append((document, cls))
                    waiting += bases([(document, cls)])
    return found


def bases(line: Lineage) -> list[str]:
    """The names of what classes inherit from, without those of their modules."""
    return [dotted(base.value).rpartition(".")[2] for _, cls in line for base in cls.bases]


def _classes(document: PythonDocument, name: str) -> list[cst.ClassDef]:
    if document.module is None or f"class {name}" not in document.text:
        return []
    return [node for node in walk(document.module) if isinstance(node, cst.ClassDef) and node.name.value == name]


def method_of(cls: cst.ClassDef, name: str) -> cst.FunctionDef | None:
    """A method that a class has itself."""
    return next((node for node in cls.body.body if isinstance(node, cst.FunctionDef) and node.name.value == name), None)


@frozen(eq=False)
class Method:
    """A method that makes a step, and where it stands; ``line``: its class and those that it inherits from."""

    document: PythonDocument
    line: Lineage
    node: cst.FunctionDef
    others: list[str] = field(default_factory=list)
    """What runs beside the model, as it is written; :meth:`runs` fills it."""
    inputs: list[str] = field(default_factory=list)
    """The keys by which a pass is handed its inputs; :meth:`runs` fills it."""

    grown: list[str] = field(default_factory=list)
    """Calls that may make a larger batch of the one that is given; :meth:`runs` fills it."""

    @property
    def paired(self) -> bool:
        """Whether two answers of each sample go through the model as one batch: TRL's name for such inputs, which
        trainers that are written after its own keep (``trainer/dpo_trainer.py:concatenated_forward``, up to 0.12)."""
        return any(key.startswith("concatenated_") for key in self.inputs)

    @property
    def model(self) -> str:
        """The name by which the method has the model."""
        names = self._params()
        return names[1] if len(names) > 1 else "model"

    def runs(self) -> int:
        """How often the step runs the model, on the way that runs it most."""
        return self._most(self.node.body, self.model, 0)

    def _params(self) -> list[str]:
        return [each.name.value for each in (*self.node.params.posonly_params, *self.node.params.params)]

    def _most(self, body: cst.CSTNode, model: str, depth: int) -> int:
        return most(body, lambda call: self._count(call, model, depth))

    def _count(self, call: cst.Call, model: str, depth: int) -> int:
        """The passes of the model with gradients that a call makes, itself or in the function that it calls."""
        runs = self._runs(call, model, depth)
        if runs and self._is_without_gradients(call):
            self.others.append(_name(call.func))
            return 0
        return runs

    def _is_without_gradients(self, call: cst.Call) -> bool:
        """Whether a call stands under ``no_grad``, in this file or in that of a class that this one inherits from."""
        documents = dict.fromkeys((self.document, *(document for document, _ in self.line)))
        return any(loops.without_gradients(document, call) for document in documents)

    def _runs(self, call: cst.Call, model: str, depth: int) -> int:
        name = _name(call.func)
        last = name.rpartition(".")[2]
        if last in _GROWS:
            self.grown.append(name)
        if name in (model, f"{model}.forward", "self.model", "self.model_wrapped"):
            self.inputs.extend(_keys(call))
            return 1
        if name.startswith(f"{model}.prepare_inputs"):
            return 0  # what the model's own forward pass does first (LLaVA's ``prepare_inputs_labels_for_multimodal``)
        if last in STEPS and isinstance(call.func, cst.Attribute):
            followed = None if name.startswith("super().") else self._own(last)
            return 1 if followed is None or depth >= _DEPTH else self._into(followed, call, model, depth)
        if not last[:1].isupper() and self._asks(call):
            self.others.append(name)
        elif _hands_on(call, model):
            return self._handed_on(call, name, model, depth)
        return 0

    def _asks(self, call: cst.Call) -> bool:
        """Whether a call is handed what only a model takes (``input_ids=…``), or the batch as keywords."""
        if any(argument.keyword is not None and argument.keyword.value in _INPUTS for argument in call.args):
            return True
        names = self._params()
        spread = [argument.value for argument in call.args if argument.star == "**"]
        return len(names) > 2 and any(_is_name(value, names[2]) for value in spread)

    def _handed_on(self, call: cst.Call, name: str, model: str, depth: int) -> int:
        """The passes of a function that is handed the model: one of the script's own is read, whatever its name."""
        last = name.rpartition(".")[2]
        followed = self._own(last)
        if followed is None or depth >= _DEPTH:
            self.others.extend([name] if _NO_PASS.search(last) is None else [])
            return 0
        return self._into(followed, call, model, depth)

    def _into(self, function: cst.FunctionDef, call: cst.Call, model: str, depth: int) -> int:
        """The passes that a function of the script makes of the model that it is handed."""
        params = [each.name.value for each in function.params.params]
        params = params[1:] if params[:1] == ["self"] else params
        inner = model
        for index, argument in enumerate(call.args):
            if _is_name(argument.value, model):
                inner = argument.keyword.value if argument.keyword else (params[index:] or [model])[0]
        return self._most(function.body, inner, depth + 1)

    def _own(self, name: str) -> cst.FunctionDef | None:
        """A method of the class, or a function beside it, of this name."""
        for _, cls in self.line:
            method = method_of(cls, name)
            if method is not None:
                return method if method is not self.node else None
        body = self.document.module.body if self.document.module is not None else ()
        return next((node for node in body if isinstance(node, cst.FunctionDef) and node.name.value == name), None)


def _name(function: cst.BaseExpression) -> str:
    """What a call calls, as it is written where that is a chain of names, or a method of ``super()``."""
    name = dotted(function)
    return f"super{name}" if isinstance(function, cst.Attribute) and is_super(function.value) else name


def _is_name(node: cst.CSTNode, name: str) -> bool:
    return isinstance(node, cst.Name) and node.value == name


def _keys(call: cst.Call) -> list[str]:
    """The keys of the batch that a call is handed (``batch["input_ids"]``)."""
    found = []
    for argument in call.args:
        for node in (argument.value, *loops.inside(argument.value)):
            match node:
                case cst.Subscript(slice=[cst.SubscriptElement(slice=cst.Index(value=cst.SimpleString() as key))]):
                    found.append(str(key.evaluated_value))
    return found


def _hands_on(call: cst.Call, model: str) -> bool:
    return any(_is_name(argument.value, model) for argument in call.args)
