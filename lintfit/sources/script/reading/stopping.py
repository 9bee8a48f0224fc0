"""Calls at which a training stops with an error, whatever its memory: a Trainer without the data that it is to
evaluate, quantized weights that every process loads onto the first GPU."""

from __future__ import annotations

import re

import libcst as cst

from lintfit.sources.script.interpreter import models
from lintfit.sources.script.interpreter.expressions import dotted
from lintfit.sources.script.interpreter.parsers import Parser
from lintfit.sources.script.interpreter.values import Class, Record
from lintfit.sources.script.reading.collector import Reading, sure_none
from lintfit.sources.script.reading.facts import is_of

_TRAINERS = frozenset({"transformers.Trainer", "transformers.Seq2SeqTrainer", "trl.SFTTrainer"})
_OWN_EVALUATION = re.compile(
    r"def (evaluate|get_eval_dataloader|evaluation_loop|_maybe_log_save_evaluate)\(|\.eval_dataset\s*=[^=]"
)
"""What gives a Trainer other data, or another evaluation, than its constructor was given."""
_OWN_TRAIN = re.compile(r"\.train\s*=[^=]")
"""``trainer.train = MethodType(train, trainer)``: a loop of the script's own in the place of the Trainer's."""
_DEVICES = re.compile(
    r"\bset_device\(|\bAccelerator\(|\bPartialState\(|\bAcceleratorState\(|\binit_distributed\(|CUDA_VISIBLE_DEVICES"
    r"|\bset_default_device\(|\bcuda\.device\("
)
"""What makes another GPU than the first the current one of a process, or the only one that it sees."""


def without_data(reading: Reading) -> Record | None:
    """The Trainer that is to evaluate between its steps, and surely has nothing that it could.

    transformers refuses that: ``Trainer.__init__`` from 4.46.0 on ("you didn't pass an eval_dataset"; not yet 4.45.2),
    before that only the evaluation itself (``Trainer.get_eval_dataloader``: "evaluation requires an eval_dataset"),
    which a Trainer comes to that nobody has train, or by a ``train`` of the script's own, in no case.
    """
    trainer, made = reading.found.trainer, reading.found.arguments
    if trainer is None or made is None or trainer.taken is not True or trainer.spreads or trainer.classes:
        return None
    if trainer.function not in _TRAINERS or not models.has_strategy(made.attributes):
        return None
    if not sure_none(trainer.value(4, "eval_dataset")) or reading.calls.say(_OWN_EVALUATION):
        return None
    at_once = reading.at_least("transformers", 4, 46) and reading.version("transformers") is not None
    if not any(is_of(record, trainer) for record in reading.called("train")):
        return None
    return trainer if at_once or not reading.calls.say(_OWN_TRAIN) else None


def on_current_gpu(reading: Reading) -> list[Record]:
    """The load of the trained model that names no GPU, in a process that nobody has given one of its own by then, and
    further loads with the same arguments.

    transformers loads what bitsandbytes quantizes onto ``torch.cuda.current_device()`` then
    (``Bnb4BitHfQuantizer.update_device_map``): GPU 0 until the trainer's arguments or an ``Accelerator`` say otherwise.
    """
    load, trainer, made = reading.found.trained_load, reading.found.trainer, reading.found.arguments
    if load is None or trainer is None or load.taken is not True or load.spreads or load.name != "from_pretrained":
        return []
    if not load.function.startswith("transformers.") or not sure_none(load.keyword("device_map")):
        return []
    if (
        made is None
        or made.call is None
        or made.call.order < load.order
        or models.arguments_before(reading.walk, load.order)
    ):
        return []
    if reading.calls.say(_DEVICES):
        return []
    others = [record for record in reading.found.loads if record is not load and record.taken is True]
    return [load, *(record for record in others if record.order < made.call.order and _alike(load, record))]


def _alike(load: Record, other: Record) -> bool:
    """Whether two calls say the same, word for word."""
    return load.node.deep_equals(other.node)


def without_mapping(reading: Reading) -> tuple[str, str] | None:
    """A dataclass that a parser fills and a field of it whose ``metadata`` is a set or a list: ``dataclasses.field``
    makes a ``MappingProxyType`` of it, which takes a mapping (TypeError; Python 3.11 to 3.14)."""
    receivers = (made.call.receiver for made in reading.walk.parsed if made.call is not None)
    handed = (cls for parser in receivers if isinstance(parser, Parser) for cls in parser.classes)
    for cls in (each for one in handed if isinstance(one, Class) for each in one.line()):
        for name, declared in cls.fields.items():
            value = declared.node.value if isinstance(declared.node, cst.AnnAssign) else None
            if isinstance(value, cst.Call) and dotted(value.func) in ("field", "dataclasses.field"):
                stated = {argument.keyword.value: argument.value for argument in value.args if argument.keyword}
                if isinstance(stated.get("metadata"), cst.Set | cst.List):
                    return cls.name, name
    return None


def without_key(reading: Reading) -> cst.Subscript | None:
    """Where the script surely asks a dict of its own for a key that it has not, before it loads the model."""
    load = reading.found.trained_load
    lacking = (node for node, order in reading.walk.lacking if load is not None and order <= load.order)
    return next(lacking, None)
