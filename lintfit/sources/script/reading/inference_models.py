"""Models that a script loads onto the GPU beside the trained one and only asks: a teacher, a judge, a reward model."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import libcst as cst

from lintfit.documents.python_reader import PythonDocument
from lintfit.documents.python_walk import walk
from lintfit.settings.model import UNKNOWN
from lintfit.sources.script.interpreter import models, operators
from lintfit.sources.script.interpreter.values import (
    Const,
    Items,
    Object,
    Record,
    Table,
    Value,
    alternatives,
    objects,
    plain,
)
from lintfit.sources.script.reading import facts, loops
from lintfit.sources.script.reading.collector import Reading, dtype_name, something, sure_none

_COUNTED = frozenset({"model", "ref_model", "reference_model", "reward_model", "value_model"})
"""Arguments of a trainer whose models are counted elsewhere."""
_ASKED = re.compile(r"^(teacher|judge|expert|aux\w*|assistant|draft|critic|reward)(_model)?s?$")
"""Arguments of a trainer by which a model is named that it loads and only asks."""
_OPTIMIZERS = ("torch.optim.", "bitsandbytes.optim.")
_OPTIMIZER = re.compile(r"optim", re.IGNORECASE)
_SCORES = re.compile(r"For(Sequence|Token)Classification$|RewardModel$")


def read(reading: Reading) -> None:
    """Note the models beside the trained one, each as ``estimate --spec`` has it in ``frozen_models``."""
    begins = _begins(reading)
    trains = reading.found.trains
    loaded = [*_loaded(reading, begins)] if trains else []
    second = next((load for _, load in loaded if _is_trained_too(reading, load)), None)
    found = [each for each in loaded if not _is_trained_too(reading, each[1])]
    found += [*(_copied(reading, begins) if trains else ()), *_named(reading)]
    if found:
        node = found[0][1].node
        reading.state("frozen_models", [entry for entry, _ in found], node, "a model beside the one that is trained")
    engine = next((record for record in reading.records if _is_vllm(record)), None)
    if second is not None:
        reading.state("uncounted", "another model, which an optimizer trains as well", second.node)
    if engine is not None and trains and engine.order < begins:
        reading.state("uncounted", "the vLLM engine that the script starts on the same GPU", engine.node)


def _is_vllm(record: Record) -> bool:
    return record.taken is True and record.function.startswith("vllm.") and record.name in ("LLM", "from_engine_args")


def _loaded(reading: Reading, begins: float) -> Iterator[tuple[dict[str, Any], Record]]:
    """Models that the script loads itself before it trains, and that certainly lie on the GPU."""
    found = reading.found
    mine = {id(load) for load in _trained(reading)}
    names = {load.assigned_to for load in found.loads if id(load) in mine}
    optimizers = [record.order for record in reading.records if record.function.startswith(_OPTIMIZERS)]
    optimized = max(optimizers, default=math.inf)
    for load in found.loads:
        if id(load) in mine or load.assigned_to in names or load.taken is not True or load.order > begins:
            continue
        if (
            _counted_elsewhere(reading, load)
            or _freed(reading, load)
            or (load.order > optimized and _is_base(reading, load))
            or _elsewhere(reading, load)
        ):
            continue
        if _on_card(reading, load):
            prepared = {"prepared": True} if not _moved(reading, load) and _is_prepared(reading, load) else {}
            yield {**_entry(reading, load), **prepared}, load


def _is_trained_too(reading: Reading, load: Record) -> bool:
    """Whether an optimizer is handed the parameters of a model beside the trained one: that is no model which is only
    asked."""
    given = (each for each in reading.records if each.name == "parameters" and facts.made_by(each.receiver, load))
    return any(each.taken is True and _OPTIMIZER.search(_statement(reading, each)) is not None for each in given)


def _statement(reading: Reading, record: Record) -> str:
    node = record.statement
    if node is None or not reading.calls.is_written(node):
        return ""
    document = reading.calls.document_of(node)
    return document.slice(document.span(node))


def _is_base(reading: Reading, load: Record) -> bool:
    """Whether it is the trained model's base that is loaded: behind the optimizer, to try out what was trained by a
    class of the project's own."""
    trained = reading.found.trained_load
    return trained is not None and bool(_entry(reading, load)["model"] == _entry(reading, trained)["model"])


def _copied(reading: Reading, begins: float) -> Iterator[tuple[dict[str, Any], Record]]:
    """Copies of the trained model: a reference of the script's own."""
    found, load = reading.found, reading.found.trained_load
    if load is None or not (found.moves or _on_card(reading, load)):
        return
    for record in reading.records:
        copies = record.name in _COPIES and record.taken is True and record.order < begins
        if not copies or not facts.is_trained(found, record.value(0)) or record.assigned_to is None:
            continue
        left_out = _handed_over(reading, record.assigned_to) or _freed(reading, record) or _elsewhere(reading, record)
        if not left_out:
            yield _entry(reading, load), record


_COPIES = frozenset({"deepcopy", "create_reference_model"})


def _handed_over(reading: Reading, name: str) -> bool:
    """Whether a trainer is handed what has this name: a reference that is counted as one."""
    trainer = reading.found.trainer
    passed = trainer.passed if trainer is not None else ()
    return any(isinstance(each.node.value, cst.Name) and each.node.value.value == name for each in passed)


def _trained(reading: Reading) -> Iterator[Record]:
    """The loads that the trained model may be of, or that are parts of it."""
    found = reading.found
    if found.trained_load is not None:
        yield found.trained_load
    waiting: list[Value | None] = [found.trained]
    seen: set[int] = set()
    while waiting:
        for each in objects(waiting.pop()):
            if id(each) in seen:
                continue
            seen.add(id(each))
            if each.call is not None and models.is_model_load(each.call):
                yield each.call
            waiting += each.attributes.values()
            if each.call is not None:
                waiting += [passed.value for passed in each.call.passed]


def _begins(reading: Reading) -> float:
    """The order of the call from which on the script trains."""
    found = reading.found
    consumers = [record.order for record in (found.trainer, found.initialize) if record is not None]
    backward = [record.order for record in reading.records if record.name == "backward"]
    return min(consumers or backward, default=math.inf)


def _on_card(reading: Reading, load: Record) -> bool:
    """Whether a loaded model is moved to a GPU, prepared for it, or handed to the trainer."""
    placed = load.keyword("device_map")
    if something(placed):
        return plain(placed) not in ("cpu", "meta", "disk")
    if _moved(reading, load):
        return True
    for record in reading.records:
        prepares = record is reading.found.trainer or record.name in ("prepare", "prepare_model", "init_inference")
        if prepares and record.taken is True and any(facts.made_by(passed.value, load) for passed in record.passed):
            return True
    return False


def _moved(reading: Reading, load: Record) -> bool:
    """Whether a loaded model is moved to a GPU by the script itself, or loaded onto it."""
    moves = (each for each in reading.records if each.taken is True and each.name in ("to", "cuda"))
    return something(load.keyword("device_map")) or any(
        facts.moves(each) and facts.made_by(each.receiver, load) for each in moves
    )


def _elsewhere(reading: Reading, load: Record) -> bool:
    """Whether a model is put onto another GPU than the trained one, each by its number (``.to("cuda:1")``)."""
    trained = reading.found.trained_load
    if trained is None:
        return False

    def is_its(move: Record) -> bool:
        # A copy is known by its name alone: the walk has it as the model that it is a copy of.
        by_name = load.name in _COPIES
        return move.receiver_name == load.assigned_to if by_name else facts.made_by(move.receiver, load)

    moved = [each for each in reading.records if each.taken is not False and each.name in ("to", "cuda")]
    mine = _card(load, [each for each in moved if is_its(each)])
    other = _card(trained, [each for each in moved if not is_its(each) and facts.made_by(each.receiver, trained)])
    return mine is not None and mine != (other or 0)


def _card(load: Record, moves: list[Record]) -> int | None:
    """The number of the GPU that a model is put onto last, None where the script says none."""
    for device in (*(each.value(0, "device") for each in reversed(moves)), load.keyword("device_map")):
        if isinstance(device, Table) and set(device.items) == {""}:
            device = device.items[""]
        if isinstance(device, Object) and device.kind == "torch.device":
            device = device.attributes.get("type")
        known = plain(device) if device is not None else None
        numbered = re.fullmatch(r"(?:cuda:)?(\d+)", str(known)) if type(known) in (int, str) else None
        if numbered is not None:
            return int(numbered[1])
    return None


def _is_prepared(reading: Reading, load: Record) -> bool:
    """Whether Accelerate wraps it as it does the trained model: not with ``evaluation_mode``."""
    return any(
        record.taken is True
        and operators.truth(record.keyword("evaluation_mode") or Const(None, False)) is False
        and any(facts.made_by(passed.value, load) for passed in record.passed)
        for record in reading.called("prepare", "prepare_model")
    )


def _counted_elsewhere(reading: Reading, load: Record) -> bool:
    """Whether the trainer takes it for a reference or the like (by position, too); GRPO's rewards are read by name."""
    trainer = reading.found.trainer
    if trainer is None:
        return False
    handed = {passed.name for passed in trainer.passed if facts.made_by(passed.value, load)}
    values = [passed.value for passed in trainer.passed if facts.made_by(passed.value, load)]
    if handed <= {None, "ref_model", "reference_model"} and is_wider(reading, *values):
        return False
    return bool(handed & {None, *_COUNTED, "reward_funcs"})


def is_wider(reading: Reading, *values: Value | None) -> bool:
    """Whether all that a value may be are models loaded whole, beside a trained one that is loaded in few bits: a
    reference of this kind is no second copy of the base."""
    base = reading.found.trained_load
    loads = [load for value in values for load in models.loads_of(value)]
    if base is None or not loads or any(load is base for load in loads) or _quantization(base) is None:
        return False
    return all(_quantization(load) is None for load in loads)


def _freed(reading: Reading, load: Record) -> bool:
    """Whether a ``del`` lets go of it, wherever that stands."""
    return load.assigned_to in _let_go(reading.calls.document_of(load.node))


@lru_cache(maxsize=256)
def _let_go(document: PythonDocument) -> frozenset[str]:
    """The names that a file has behind ``del``."""
    nodes = walk(document.module) if document.module is not None else ()
    return frozenset(name for node in nodes if isinstance(node, cst.Del) for name in loops.names(node.target))


def _entry(reading: Reading, load: Record) -> dict[str, Any]:
    name = load.value(0, *models.CONFIG_NAMES)
    known = plain(name) if name is not None else UNKNOWN
    entry = {
        "model": known if isinstance(known, str) else None,
        "scores": _SCORES.search(models.owner_of(load)) is not None,
    }
    dtype = _dtype(reading, load)
    if dtype is not None:
        entry["weights_dtype"] = dtype
    quantization = _quantization(load)
    if quantization is not None:
        entry["quantization"] = quantization
    return entry


def _dtype(reading: Reading, load: Record) -> str | None:
    """How it is loaded or cast; None for the checkpoint's dtype."""
    for record in reversed(reading.records):
        target = facts.cast_target(record)
        if target is not None and record.taken is True and facts.made_by(record.receiver, load):
            return "fp32" if target == "fp64" else target
    stated = load.keyword("dtype", "torch_dtype")
    known = dtype_name(stated) if stated is not None else None
    if known in ("fp32", "bf16", "fp16"):
        return str(known)
    return None if known is not None or reading.at_least("transformers", 5) else "fp32"


def _quantization(load: Record) -> str | None:
    """Whether bitsandbytes loads it; of several ways to do so the one that takes least memory."""
    if operators.truth(load.keyword("load_in_8bit") or Const(None, None)):
        return "int8"
    asked = load.keyword("quantization_config")
    if operators.truth(load.keyword("load_in_4bit") or Const(None, None)):
        return "nf4-double"
    return None if sure_none(asked) else "nf4-double"


def _named(reading: Reading) -> Iterator[tuple[dict[str, Any], Record]]:
    """Models that a trainer gets by name, or GRPO's among its reward functions."""
    trainer = reading.found.trainer
    if trainer is None:
        return
    for passed in trainer.passed:
        name = passed.name or ""
        if name == "reward_funcs":
            yield from ((entry, trainer) for entry in _rewards(reading, passed.value))
        elif name not in _COUNTED and _ASKED.match(name) and isinstance(plain(passed.value), str):
            yield {"model": plain(passed.value), "scores": name.startswith("reward")}, trainer


def _rewards(reading: Reading, value: Value) -> Iterator[dict[str, Any]]:
    """The models among GRPO's reward functions: named, or loaded by the script."""
    for each in value.items if isinstance(value, Items) else alternatives(value):
        if isinstance(plain(each), str):
            yield {"model": plain(each), "scores": True}
            continue
        yield from (_entry(reading, load) for load in models.loads_of(each))
