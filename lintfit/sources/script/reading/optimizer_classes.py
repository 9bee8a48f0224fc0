"""Optimizers that a script makes itself: by their classes, for its own loop or to be handed to a trainer."""

from __future__ import annotations

import re

import libcst as cst

from lintfit.documents.python_walk import code_of, walk
from lintfit.settings.model import UNKNOWN
from lintfit.sources.script.interpreter import operators
from lintfit.sources.script.interpreter.expressions import dotted
from lintfit.sources.script.interpreter.values import Const, Function, Items, Object, Record, alternatives
from lintfit.sources.script.reading.collector import Reading, something

_NAMES: dict[str, str] = {
    "AdamW": "adamw_torch",
    "Adam": "adamw_torch",
    "FusedAdam": "adamw_torch_fused",
    "DeepSpeedCPUAdam": "deepspeed_cpu_adam",
    "AdamW8bit": "adamw_8bit",
    "Adam8bit": "adamw_8bit",
    "PagedAdamW8bit": "paged_adamw_8bit",
    "PagedAdamW": "paged_adamw_32bit",
    "PagedAdamW32bit": "paged_adamw_32bit",
    "Adafactor": "adafactor",
    "SGD": "sgd",
    "Lion": "lion_32bit",
    "RMSprop": "rmsprop",
    "Adagrad": "adagrad",
    "GaLoreAdamW": "galore_adamw",
    "GaLoreAdamW8bit": "galore_adamw_8bit",
    "GaLoreAdafactor": "galore_adafactor",
    "APOLLOAdamW": "apollo_adamw",
    "Lomo": "lomo",
    "AdaLomo": "adalomo",
}
"""Optimizer classes by transformers' names of the same state."""
_LIBRARIES = re.compile(r"(optim|deepspeed|bitsandbytes|bnb|apex|transformers|lion|galore|apollo)")
_AS_ASKED = re.compile(r"get_optimizer_cls_and_kwargs|(super\([^()]*\)|Trainer)\.create_optimizer")
"""A method that makes the optimizer which the arguments ask for, or has the library make it."""
_MAKERS = ("create_optimizer", "create_optimizer_and_scheduler")


def of_call(record: Record) -> str | None:
    """The optimizer that a call makes, by transformers' name; None for any other call."""
    known = _NAMES.get(record.name)
    if known is None or _LIBRARIES.search(record.function.rpartition(".")[0]) is None:
        return None
    fused = known == "adamw_torch" and operators.truth(record.keyword("fused") or Const()) is True
    return "adamw_torch_fused" if fused else known


def handed(reading: Reading) -> None:
    """A trainer's optimizer that the script makes: handed to it, or by its class's own method. ``optim`` then says
    nothing (transformers 5.24, ``Trainer.create_optimizer``)."""
    trainer = reading.found.trainer
    if trainer is None:
        return
    pair = trainer.keyword("optimizers")
    first = pair.items[0] if isinstance(pair, Items) and pair.items else pair
    if first is not None and any(something(option) for option in alternatives(first)):
        made = first.call if isinstance(first, Object) else None
        known = of_call(made) if made is not None else None
        reading.state("optimizer", known or UNKNOWN, (made or trainer).node, "handed to the trainer")
        return
    for cls in trainer.classes:
        method = next((found for name in _MAKERS if isinstance(found := cls.member(name), Function)), None)
        if method is not None and isinstance(method.node, cst.FunctionDef):
            names = _made_by(method.node)
            if names is not None:
                known = names.pop() if len(names) == 1 and len(trainer.classes) == 1 else None
                reading.state("optimizer", known or UNKNOWN, method.node, "the trainer's class makes its own")


def _made_by(method: cst.FunctionDef) -> set[str] | None:
    """The optimizers whose classes a method calls; None where it makes the one that the arguments ask for."""
    if _AS_ASKED.search(code_of(method)) is not None:
        return None
    called = (dotted(node.func).rpartition(".")[2] for node in walk(method) if isinstance(node, cst.Call))
    return {_NAMES[name] for name in called if name in _NAMES}
