"""From the calls of a walk to the facts that rules ask for."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice

import libcst as cst

from lintfit.documents.patterns import lazy_pattern
from lintfit.documents.python_walk import code_of, walk
from lintfit.frozen import word_set
from lintfit.sources.script.interpreter import models
from lintfit.sources.script.interpreter.expressions import dotted
from lintfit.sources.script.interpreter.values import (
    Class,
    Const,
    Function,
    Object,
    Record,
    Value,
    alternatives,
    dtype,
    objects,
    plain,
)
from lintfit.sources.script.model import Call, ScriptFacts, Statement
from lintfit.sources.script.reading.calls import Calls
from lintfit.sources.script.reading.handed_on import HandedOn, Use
from lintfit.sources.training_words import DTYPES

_TRAINER = re.compile(r"(^|\.)\w*Trainer$")
_ENABLERS = frozenset({
    "gradient_checkpointing_enable", "prepare_model_for_kbit_training", "prepare_model_for_int8_training",
    "prepare_model_for_training", "enable_gradient_checkpointing", "apply_activation_checkpointing",
    "set_gradient_checkpointing", "_set_gradient_checkpointing",
})  # fmt: skip
_MOVES = frozenset({"to", "cuda"})
_QUANTIZES = frozenset({"BitsAndBytesConfig", "GPTQConfig", "AwqConfig", "HqqConfig", "TorchAoConfig"})


@dataclass(slots=True)
class FoundCalls:
    """The records that matter, chosen; the settings are read from these and the facts made of them."""

    loads: list[Record] = field(default_factory=list)
    trained: Value | None = None
    trained_name: str | None = None
    trained_load: Record | None = None
    arguments: Object | None = None
    first_ppo: Object | None = None
    """The config of TRL's first PPOTrainer, which is no ``TrainingArguments``."""
    trainer: Record | None = None
    initialize: Record | None = None
    accelerator: Record | None = None
    peft: Record | None = None
    peft_use: Use = Use.HERE
    """How surely the run uses the config that ``peft`` makes."""
    unused_peft: Record | None = None
    """A config of adapters that the run makes and hands to nothing, where it makes no other."""
    quantization: Record | None = None
    checkpointing: list[Record] = field(default_factory=list)
    partitioning: list[Record] = field(default_factory=list)
    casts: list[tuple[Record, str]] = field(default_factory=list)
    """Calls that change the dtype of the trained model as a whole, with the dtype."""
    moves: list[Record] = field(default_factory=list)
    moves_replaced: list[Record] = field(default_factory=list)
    trains: bool = False
    batches_out_of_sight: bool = False


def certain(records: Iterable[Record], default: Record | None = None) -> Record | None:
    """The record that this run most surely executes: taken before undecided, never one that is not taken."""
    best = default
    for record in records:
        if record.taken is not False and (best is None or (record.taken and not best.taken)):
            best = record
    return best


def trainers(records: Sequence[Record]) -> list[Record]:
    """The trainers that certainly are made and whose ``train`` is called, one for each place, in order."""
    made = {id(r.node): r for r in records if r.taken is True and is_trainer(r)}
    trained = [r.receiver.call for r in records if r.name == "train" and isinstance(r.receiver, Object)]
    return [record for record in made.values() if any(record is each for each in trained)]


def _trainer(records: Sequence[Record]) -> Record | None:
    """The trainer that this run most surely makes; of several that are as sure, one whose ``train`` is called: others
    evaluate or predict."""
    made = [record for record in records if is_trainer(record)]
    calls = [record for record in records if record.name == "train" and record.taken is not False]
    asked = {id(each.call) for record in calls for each in objects(record.receiver)}
    first, trains = certain(made), certain(each for each in made if id(each) in asked)
    if first is None or trains is None or (first.taken and not trains.taken):
        return first
    return trains


def _only_evaluated(records: Sequence[Record], trainer: Record | None) -> bool:
    """Whether a trainer is asked to evaluate or to predict, and nothing is asked to train."""
    made = [record for record in records if record.taken is not False]
    calls = (record for record in made if record.name == "train" and not _is_own(record))
    if trainer is None or any(not _is_mode(record) for record in calls):
        return False
    asked = (record for record in made if record.name in ("evaluate", "predict"))
    return any(is_of(record, trainer) for record in asked)


def _is_own(record: Record) -> bool:
    """``train()`` as a function of the script's: what it does is seen by the calls in it."""
    return record.callee is not None and record.receiver_name is None


def _is_mode(record: Record) -> bool:
    """``model.train()``: ``nn.Module.train`` switches dropout on and trains nothing."""
    last = (record.receiver_name or "").rpartition(".")[2]
    return last.lower().endswith("model") and not record.positional


_UPDATES = lazy_pattern(r"optim|\.step\(|\bstep_|Adam|SGD|\.grad\b|trainer|deepspeed|lightning", re.IGNORECASE)
"""One of which code has that makes something of gradients: an optimizer, an update by hand, or what may have either. A
backward pass in code without them measures or tests, and changes no weight."""


def made_by(value: Value | None, made: Record) -> bool:
    """Whether a value may be what a call makes, or wrap it."""
    return any(each.call is made for each in objects(value))


def is_of(record: Record, made: Record | None) -> bool:
    """Whether a call is surely a method's of what another call makes, wrapped or not."""
    if made is None or record.receiver is None:
        return False
    return all(made_by(option, made) for option in alternatives(record.receiver))


def find(records: list[Record], calls: Calls, which: int = 0) -> FoundCalls:
    """Choose the calls that matter among all that the walk came by, for one of several trainings."""
    found = FoundCalls()
    found.loads = [record for record in records if models.is_model_load(record)]
    found.trainer = _trainer(records)
    if which:
        # Where no step was left for the cells in front of it, the training is not come by.
        found.trainer = next(islice(trainers(records), which, None), None)
    begun = [record for record in records if _is_initialize(record)]
    steps = any(_STEPS.fullmatch(record.name) and record.taken is not False for record in records)
    found.initialize = certain(record for record in begun if steps or not _only_runs(record))
    found.accelerator = certain(r for r in records if r.name == "Accelerator" and r.receiver_name != "self")
    backward = [record for record in records if record.name == "backward" and record.receiver_name]
    training = None if _only_evaluated(records, found.trainer) else found.trainer
    found.trains = any(r.taken is not False for r in _present(training, found.initialize)) or (
        any(r.taken is not False for r in backward) and calls.say(_UPDATES)
    )
    found.arguments = _arguments(records, found.trainer)
    loads = any(record.name.endswith("DataLoader") and record.taken is not False for record in records)
    found.batches_out_of_sight = found.trains and not loads and found.trainer is None and found.arguments is None
    if found.arguments is not None and models.is_first_ppo(found.arguments):
        # Its own prepare() hands the model to Accelerate; an engine beside it is for the reward model.
        found.arguments, found.first_ppo, found.initialize = None, found.arguments, None
    _trained(records, found)
    _peft(records, calls, found)
    found.quantization = certain(record for record in records if record.name in _QUANTIZES)
    found.checkpointing = [record for record in records if record.name in _ENABLERS]
    found.partitioning = [record for record in records if record.taken is not False and _partitions(record)]
    end = _end_of_training(records, found)
    for record in records:
        if record.node.func is not None and is_trained(found, record.receiver):
            target = cast_target(record)
            if target is not None and record.order < end:
                found.casts.append((record, target))
            if record.name in _MOVES and moves(record):
                found.moves.append(record)
    replaced = [load for load in found.loads if load.taken is True and _not_replaced(load, found.loads) is not load]
    found.moves_replaced = [
        record
        for record in (records if replaced else ())
        if record.name in _MOVES
        and record.taken is True
        and moves(record)
        and any(is_of(record, load) for load in replaced)
    ]
    return found


def _end_of_training(records: list[Record], found: FoundCalls) -> float:
    """The order of the last call that trains: what is cast after it is what gets saved."""
    trains = [record.order for record in (found.trainer, found.initialize) if record is not None]
    trains += [
        record.order
        for record in records
        if record.name == "backward" or (record.name == "train" and "trainer" in (record.receiver_name or "").lower())
    ]
    return max(trains, default=math.inf)


def facts(found: FoundCalls, calls: Calls) -> ScriptFacts:
    """The facts with places, for the rules."""
    return ScriptFacts(
        trains=found.trains,
        batches_out_of_sight=found.batches_out_of_sight,
        loads=tuple(calls.call(record) for record in found.loads),
        trained_model=found.trained_name,
        traced_load=_call(found.trained_load, calls),
        upcasts=tuple(_statements((r for r, target in found.casts if target in ("fp32", "fp64")), calls)),
        downcasts=tuple(_statements((r for r, target in found.casts if target in ("fp16", "bf16")), calls)),
        moves=tuple(_statements(found.moves, calls)),
        moves_replaced=tuple(_statements(found.moves_replaced, calls)),
        training_arguments=_arguments_call(found.arguments, calls),
        trainer=_call(found.trainer, calls),
        checkpointing=tuple(calls.call(record) for record in found.checkpointing),
        peft_config=_call(found.peft, calls),
        unused_peft_config=_call(found.unused_peft, calls),
        quantization_config=_call(found.quantization, calls),
        initialize=_call(found.initialize, calls),
        partitioning=tuple(calls.call(record) for record in found.partitioning),
        accelerator=_call(found.accelerator, calls),
        parse_call=_call(found.arguments.call, calls) if found.arguments and found.arguments.parsed else None,
    )


def is_trainer(record: Record) -> bool:
    """Whether a call constructs a Trainer (or a class of the script that inherits from one).

    Unsloth's ``PatchDPOTrainer()`` changes TRL's class.
    """
    if (
        record.name in ("get_trainer", "SageMakerTrainer")
        or record.name.startswith("Patch")
        or any(cls.own or _starts_anew(cls) for cls in record.classes)
    ):
        return False
    return bool(_TRAINER.search(record.function)) and record.function.rpartition(".")[2][:1].isupper()


def _starts_anew(cls: Class) -> bool:
    """Whether a class has an ``__init__`` of its own that leaves out its base's: what the base does is not done. A copy
    of a library's class, which has none, is the library's."""
    made = cls.member("__init__") if cls.library is not None else None
    if not isinstance(made, Function) or made.node is None:
        return False
    calls = (node.func for node in walk(made.node) if isinstance(node, cst.Call))
    return not any(isinstance(func, cst.Attribute) and func.attr.value == "__init__" for func in calls)


def _partitions(record: Record) -> bool:
    return record.name in ("HfDeepSpeedConfig", "HfTrainerDeepSpeedConfig") or record.function == "deepspeed.zero.Init"


def _is_initialize(record: Record) -> bool:
    if record.function == "deepspeed.initialize":
        return True
    return (
        record.name == "prepare"
        and bool(record.positional)
        and "ccelerator" in f"{record.receiver_name}{record.function}"
    )


_STEPS = re.compile(r"\w*backward|step|train_batch")


def _only_runs(record: Record) -> bool:
    """Whether an engine is given nothing to train with, as one that ZeRO-Inference streams a model through is, or a
    model and batches that Accelerate spreads for an evaluation."""
    if record.spreads:
        return False
    if record.name == "prepare":
        return not any(_FOR_STEPS.search(_written(passed.node.value)) for passed in record.passed)
    optimizer = record.value(2, "optimizer")
    if optimizer is None and record.value(0, "args") is not None:
        return False
    if optimizer is not None and not (isinstance(optimizer, Const) and optimizer.value is None):
        return False
    return all(value is None for value in (record.value(3, "model_parameters"), record.value(4, "training_data")))


_FOR_STEPS = re.compile(r"opt|sched|^\*|^[a-z]$", re.IGNORECASE)
"""What an argument is called that may be an optimizer, or one of several."""


def _written(node: cst.BaseExpression) -> str:
    return code_of(node)


def cast_target(record: Record) -> str | None:
    """The dtype that a method call casts a module to, None where it casts nothing."""
    match record.name:
        case "float" | "double" | "half" | "bfloat16" if not record.passed:
            return DTYPES[record.name]
        case "to" | "type":
            for passed in record.passed:
                if passed.name in (None, "dtype") and (target := dtype(passed.value)) is not None:
                    return target
    return None


def moves(record: Record) -> bool:
    """Whether ``.to(...)``/``.cuda()`` puts a module on an accelerator."""
    if record.name == "cuda":
        return True
    for passed in record.passed:
        if passed.name not in (None, "device") or dtype(passed.value) is not None:
            continue
        text = passed.value.value if isinstance(passed.value, Const) else None
        if isinstance(passed.value, Object) and isinstance(kind := passed.value.attributes.get("type"), Const):
            text = kind.value
        return not (isinstance(text, str) and text.startswith(("cpu", "meta", "mps")))
    return False


def _present(*records: Record | None) -> list[Record]:
    return [record for record in records if record is not None]


def _peft(records: list[Record], calls: Calls, found: FoundCalls) -> None:
    """The config of adapters that the run uses; one that goes nowhere makes no adapters."""
    made = [record for record in records if record.taken is not False and is_peft_config(record)]
    handed = HandedOn(calls, records)
    uses = {id(record): handed.use(record) for record in made}
    found.peft = certain(record for record in made if uses[id(record)] > Use.NOT_HERE)
    if found.peft is not None:
        found.peft_use = uses[id(found.peft)]
    elif set(uses.values()) == {Use.NOWHERE}:
        found.unused_peft = certain(made)


_PARTS_OF_A_CONFIG = word_set("""
    ArrowConfig BdLoraConfig CordaConfig EvaConfig KasaConfig LoftQConfig LoraGAConfig LoraRuntimeConfig
    MontecloraConfig VeloraConfig
    """)
"""Classes of PEFT's that stand within the config of adapters and are none (peft 0.21, ``tuners/lora/config.py``)."""


def is_peft_config(record: Record) -> bool:
    """Whether a call makes the config of adapters."""
    if record.name in ("LoraConfig", "AdaLoraConfig"):
        return True
    own = record.name.endswith("Config") and record.name not in _PARTS_OF_A_CONFIG
    return own and record.function.startswith("peft.")


def _arguments(records: list[Record], trainer: Record | None) -> Object | None:
    """The TrainingArguments-like object of the run: the trainer's own, else the likeliest."""
    if trainer is not None:
        for value in (trainer.keyword("args", "config", "training_args"), *trainer.positional[1:3]):
            for each in objects(value):
                if models.is_arguments(each.library) or each.parsed:
                    return each
        known = trainer.keyword("args", "config")
        if known is not None and not isinstance(known, Object):
            return None
    chosen = certain(record for record in records if _is_arguments(record, trainer is not None))
    if chosen is None:
        return None
    made = Object(chosen.node, chosen.function, chosen, open=chosen.spreads)
    made.attributes |= {passed.name: passed.value for passed in chosen.passed if passed.name is not None}
    return made


def _is_arguments(record: Record, beside_trainer: bool) -> bool:
    """Whether a call makes the arguments of a trainer: beside none, a config must be of TRL itself."""
    if not models.is_arguments(record.function):
        return False
    return beside_trainer or record.name.endswith("TrainingArguments") or record.function.startswith("trl.")


def _trained(records: list[Record], found: FoundCalls) -> None:
    """Find the model that is trained: handed to the trainer or engine, else optimised, else the only one.

    Of a model that the trainer is to load by its name there is no object, whatever else the script loads.
    """
    handed = found.trainer.value(0, "model") if found.trainer is not None else None
    if handed is not None and isinstance(plain(handed), str):
        return
    for value, node in _candidates(records, found):
        is_model = any(models.is_model(each) for each in objects(value))
        if is_model or (found.trained is None and isinstance(node, cst.Name)):
            found.trained = value
            found.trained_name = _name_of(node) or found.trained_name
        if is_model:
            break
    if found.trained is None or not any(models.is_model(each) for each in objects(found.trained)):
        load = _not_replaced(certain(found.loads), found.loads)
        if load is not None and found.trained_name is None:
            found.trained_name = load.assigned_to
        found.trained_load = load
        return
    loads = [*models.loads_of(found.trained)] or _held(found.trained)
    found.trained_load = certain(loads)
    if found.trained_name is None:
        found.trained_name = next((load.assigned_to for load in loads if load.assigned_to), None)


def _not_replaced(load: Record | None, loads: Iterable[Record]) -> Record | None:
    """A load, or the one whose model surely takes its place under the same name later (``m = load(); m = load()``)."""
    name = load.assigned_to if load is not None else None
    again = [each for each in loads if name is not None and each.taken is True and each.assigned_to == name]
    return again[-1] if any(each is load for each in again) else load


def _held(trained: Value) -> list[Record]:
    """The load of the one model that a module of the project keeps in an attribute (``self.model = …``)."""
    parts = [part for each in objects(trained) if models.is_own_model(each) for part in each.attributes.values()]
    held = [load for part in parts for load in models.loads_of(part)]
    return held if len({id(record.node) for record in held}) == 1 else []


def _candidates(records: list[Record], found: FoundCalls) -> Iterable[tuple[Value, cst.BaseExpression | None]]:
    for record in _present(found.trainer, found.initialize):
        for passed in record.passed:
            if passed.name == "model" or (passed.name is None and passed is record.passed[0]):
                yield passed.value, passed.node.value
        if record is found.initialize:
            for passed in record.passed:
                if any(models.is_model(each) for each in objects(passed.value)):
                    yield passed.value, passed.node.value
    for record in records:
        if record.name == "prepare" and record.taken is not False:
            for passed in record.passed:
                if any(models.is_model(each) for each in objects(passed.value)):
                    yield passed.value, passed.node.value
    optimized = {
        id(passed.node.value)
        for record in records
        if "optim" in record.function.lower() and record.taken is not False
        for passed in record.passed
    }
    for record in sorted(records, key=lambda each: id(each.node) not in optimized):
        on_model = isinstance(record.receiver, Object) and models.is_model(record.receiver)
        if record.name in ("parameters", "named_parameters", "train") and on_model and record.receiver is not None:
            node = record.node.func.value if isinstance(record.node.func, cst.Attribute) else None
            yield record.receiver, node


def _name_of(node: cst.BaseExpression | None) -> str | None:
    return dotted(node) if isinstance(node, cst.Name | cst.Attribute) else None


def is_trained(found: FoundCalls, receiver: Value | None) -> bool:
    """Whether a value is the trained model as a whole, wrapped or not."""
    if receiver is None:
        return False
    if found.trained_load is not None and made_by(receiver, found.trained_load):
        return True
    if found.trained is not None and any(
        each is one for one in alternatives(found.trained) for each in objects(receiver)
    ):
        return True  # what the trainer is handed, whatever made it
    made = [each for each in objects(receiver) if each.call is not None or models.is_model(each)]
    return bool(made) and any(each is one for one in objects(found.trained) for each in made)


def _statements(records: Iterable[Record], calls: Calls) -> Iterable[Statement]:
    seen: set[int] = set()
    for record in records:
        if id(record.node) not in seen:
            seen.add(id(record.node))
            yield calls.statement(record)


def _call(record: Record | None, calls: Calls) -> Call | None:
    return calls.call(record) if record is not None else None


def _arguments_call(made: Object | None, calls: Calls) -> Call | None:
    if made is None or made.call is None:
        return None
    return calls.parsed(made) if made.parsed else calls.call(made.call)
