"""Lightning Fabric as a script sets it up: devices, strategy and precision.

Read in ``lightning.fabric`` 2.x.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.documents.numerals import natural
from lintfit.settings.model import AUTO, UNKNOWN
from lintfit.sources.launchers import fabric as words
from lintfit.sources.script.interpreter import operators
from lintfit.sources.script.interpreter.values import (
    Const,
    Record,
    Value,
    alternatives,
    objects,
    plain,
)
from lintfit.sources.script.reading.collector import Reading, something, sure_none
from lintfit.sources.script.reading.engines import config, shards, wraps

BY_STRATEGY: Mapping[str, str] = {
    "zero_stage": "stage",
    "offload_optimizer": "offload_optimizer",
    "offload_param": "offload_parameters",
}
"""Arguments of Fabric's ``DeepSpeedStrategy`` by setting; those of offload are switches."""


def read(reading: Reading, record: Record) -> None:
    """``Fabric(devices=…, strategy=…, precision=…)``, which starts its processes itself under plain python."""
    _fabric_devices(reading, record)
    _fabric_strategy(reading, record)
    precision = record.value(4, "precision")
    if precision is None or sure_none(precision):
        return
    name = str(plain(precision))
    engine = reading.settings.get("engine")
    mixed: Any = words.MIXED.get(name, UNKNOWN)
    if engine is not None and engine.value == "deepspeed":
        mixed = words.engine_precision(name) or UNKNOWN
    reading.put("mixed_precision", precision, record, to=mixed)
    if name in words.WEIGHTS:
        before = reading.settings.get("weights_dtype")
        reading.settings["weights_dtype"] = reading.put(
            "weights_dtype", precision, record, to=words.WEIGHTS[name]
        ).over(before)


def _fabric_devices(reading: Reading, record: Record) -> None:
    devices, nodes = record.value(2, "devices"), record.value(3, "num_nodes")
    count = _count(devices)
    per_node = 1 if nodes is None else plain(nodes)
    if nodes is not None and isinstance(per_node, int) and per_node > 1:
        reading.put("nodes", nodes, record)
    if count is AUTO and devices is None:
        reading.default("gpus", AUTO, "Fabric's default (all GPUs of the machine)")
        return
    known = isinstance(count, int) and isinstance(per_node, int)
    reading.put("gpus", devices or Const(record.node), record, to=count * per_node if known else count)


def _count(value: Value | None) -> Any:
    """How many devices are asked for: a number, a list of GPUs, or all (``AUTO``)."""
    if value is None:
        return AUTO
    known = plain(value)
    if isinstance(known, list):
        return len(known)
    text = str(known)
    if text in ("auto", "-1"):
        return AUTO
    if "," in text:
        return len([part for part in text.split(",") if part.strip()])
    number = natural(text)
    return number if number is not None else UNKNOWN


def _fabric_strategy(reading: Reading, record: Record) -> None:
    value = record.value(1, "strategy")
    if value is None:
        return
    known = plain(value)
    if isinstance(known, str):
        for name, item in words.strategy(known).items():
            reading.put(name, value, record, to=item)
        return
    for each in objects(value):
        if each.call is not None and len(list(alternatives(value))) == 1:
            _strategy_object(reading, each.call)
            return
    reading.put("engine", value, record, to=UNKNOWN)


def _strategy_object(reading: Reading, made: Record) -> None:
    """``DeepSpeedStrategy(stage=3, offload_optimizer=True)``, ``FSDPStrategy(...)``, ``DDPStrategy(...)``."""
    asked = {passed.name: passed.value for passed in made.passed if passed.name is not None}
    match made.name:
        case "DeepSpeedStrategy":
            reading.state("engine", "deepspeed", made.node)
            reading.plugin = made
            _deepspeed_strategy(reading, made, asked)
        case "FSDPStrategy":
            reading.state("engine", "fsdp", made.node)
            shards(reading, made, asked, version=1)
            wraps(reading, made)
            policy = asked.get("activation_checkpointing_policy") or asked.get("activation_checkpointing")
            if something(policy):
                reading.put("gradient_checkpointing", policy, made, to=True)
        case "DDPStrategy":
            reading.state("engine", "ddp", made.node)
        case "SingleDeviceStrategy":
            reading.state("engine", "single", made.node)
        case _:
            reading.state("engine", UNKNOWN, made.node)


_FABRIC_BUCKET = 200_000_000
"""Elements of DeepSpeedStrategy's buckets, where DeepSpeed's own default is 500 million."""


def _deepspeed_strategy(reading: Reading, made: Record, asked: Mapping[str, Value]) -> None:
    file = asked.get("config")
    if something(file):
        config(reading, file, made)
        return
    stage = asked.get("stage")
    if stage is not None:
        reading.put("zero_stage", stage, made)
    else:
        reading.default("zero_stage", 2, "DeepSpeedStrategy's default")
    for name, device in (("offload_optimizer", "offload_optimizer_device"), ("offload_param", "offload_params_device")):
        wanted = asked.get(BY_STRATEGY[name])
        on = operators.truth(wanted) if wanted is not None else False
        target = plain(asked[device]) if device in asked else "cpu"
        if wanted is not None:
            reading.put(name, wanted, made, to=target if on else ("none" if on is False else UNKNOWN))
        else:
            reading.default(name, "none", "DeepSpeedStrategy's default")
    sizes = {key: plain(asked[key]) if key in asked else _FABRIC_BUCKET for key in _BUCKETS}
    zero = {key: size for key, size in sizes.items() if isinstance(size, int)}
    reading.derive("deepspeed", {"zero_optimization": zero}, "DeepSpeedStrategy makes the config")


_BUCKETS = ("allgather_bucket_size", "reduce_bucket_size")
