"""The engine that a script sets up itself: DeepSpeed dicts, Accelerate's plugins, the Trainer's FSDP.

Read in Accelerate 1.15 (``DeepSpeedPlugin``, ``FullyShardedDataParallelPlugin``, ``AcceleratorState``) and transformers
5.23 (``TrainingArguments._process_fsdp_args``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from lintfit.documents.model import Kind
from lintfit.frozen import replace
from lintfit.settings.model import AUTO, UNKNOWN
from lintfit.sources import training_words
from lintfit.sources.accelerate import sharding_strategy
from lintfit.sources.script.interpreter import operators
from lintfit.sources.script.interpreter.config_files import of_node
from lintfit.sources.script.interpreter.values import (
    Const,
    Object,
    Record,
    Ref,
    Table,
    Value,
    alternatives,
    objects,
    plain,
)
from lintfit.sources.script.reading.collector import Reading, dtype_name, something, sure_none
from lintfit.sources.script.reading.facts import made_by

BY_PLUGIN: Mapping[str, str] = {
    "zero_stage": "zero_stage",
    "offload_optimizer": "offload_optimizer_device",
    "offload_param": "offload_param_device",
    "gradient_accumulation_steps": "gradient_accumulation_steps",
    "max_grad_norm": "gradient_clipping",
}
"""Arguments of ``DeepSpeedPlugin`` by setting."""

_PRODUCT = re.compile(r"[\w.]*batch_size\w* \* [\w.]*world_size ?(\( ?\))? \* [\w.]*gradient_accumulation_steps")


# -- DeepSpeed ------------------------------------------------------------------------------------------------------


def initialized(reading: Reading) -> None:
    """``deepspeed.initialize(config=…)``: a path or a dict."""
    record = reading.found.initialize
    if record is None or record.name != "initialize":
        return
    steps = any(each.function == "deepspeed.initialize.step" and each.taken is not False for each in reading.records)
    if not (steps or record.spreads or reading.found.trainer) and sure_none(record.value(2, "optimizer")):
        reading.state("engine_steps", False, record.node)
    value = record.keyword("config", "config_params")
    if value is None:
        arguments = record.keyword("args")
        if isinstance(arguments, Object):
            value = arguments.attributes.get("deepspeed_config")
    if something(value):
        config(reading, value, record)


def config(reading: Reading, value: Value, record: Record | None, trainer: bool = False) -> None:
    """A DeepSpeed config that the script hands over: its path, or the dict itself."""
    if isinstance(value, Object):
        value = Const(value.origin, UNKNOWN)
    known = plain(value)
    if known is not None:
        reading.put("deepspeed", value, record, to=known)
    if isinstance(value, Table):
        _inline(reading, value, record, trainer)


def _inline(reading: Reading, table: Table, record: Record | None, trainer: bool) -> None:
    """What a dict says. A Trainer takes the batch and the precision from its own arguments."""
    if not trainer:
        for name, key in (
            ("micro_batch_size", "train_micro_batch_size_per_gpu"),
            ("gradient_accumulation_steps", "gradient_accumulation_steps"),
            ("max_grad_norm", "gradient_clipping"),
            ("train_batch_size", "train_batch_size"),
        ):
            if key in table.items and name not in reading.settings:
                _put(reading, name, table.items[key], record)
        _factor(reading, table, record)
        _inline_precision(reading, table, record)
    optimizer = table.items.get("optimizer")
    if isinstance(optimizer, Table) and "type" in optimizer.items:
        _put(reading, "optimizer", optimizer.items["type"], record)
    zero = table.items.get("zero_optimization")
    if zero is not None and not isinstance(zero, Table):
        _put(reading, "zero_stage", zero, record, to=UNKNOWN)
    if not isinstance(zero, Table):
        return
    reading.zero = zero
    if "stage" in zero.items:
        _put(reading, "zero_stage", zero.items["stage"], record)
    for name in ("offload_optimizer", "offload_param"):
        section = zero.items.get(name)
        if isinstance(section, Table) and "device" in section.items:
            _put(reading, name, section.items["device"], record)
        elif section is not None and not isinstance(section, Table) and not sure_none(section):
            _put(reading, name, section, record, to=UNKNOWN)


def _factor(reading: Reading, table: Table, record: Record | None) -> None:
    """``train_batch_size`` as micro-batch × ranks × accumulation: the last, where the ranks are not known."""
    total, name = table.items.get("train_batch_size"), "gradient_accumulation_steps"
    if name in reading.settings or total is None:
        return
    place = reading.place_of(total.origin)
    text = place.document.text[place.span.start : place.span.end] if place is not None else ""
    if not _PRODUCT.fullmatch(" ".join(text.split())):
        return
    found = [made.attributes[name] for made in reading.walk.parsed if name in made.attributes]
    if len(found) == 1 and name in text:
        reading.put(name, found[0], record)


def _put(reading: Reading, name: str, value: Value, record: Record | None, to: Any = None) -> None:
    known = plain(value) if to is None else to
    reading.put(name, value, record, to=AUTO if known == "auto" else known)


def _inline_precision(reading: Reading, table: Table, record: Record | None) -> None:
    """A block that is switched on; without one the engine computes in the weights' own dtype."""
    for name, enabled in _switched_on(table):
        reading.put("mixed_precision", enabled, record, to=name if operators.truth(enabled) else UNKNOWN)
        return
    if not table.open:
        reading.default("mixed_precision", "no", "DeepSpeed's default without a bf16 or fp16 block")


def precision_of(reading: Reading, value: Value | None) -> Any:
    """The dtype that ``zero.Init`` takes from a DeepSpeed config: that of the block that is on, float32 for none."""
    table = _table(reading, value)
    if table is None:
        return UNKNOWN
    for name, enabled in _switched_on(table):
        return name if plain(enabled) is True else UNKNOWN
    return UNKNOWN if table.open else "fp32"


def _switched_on(table: Table) -> Iterator[tuple[str, Value]]:
    """The precision blocks of a DeepSpeed config that are, or may be, on; of the two names of bf16 the one that
    :func:`lintfit.sources.deepspeed.bf16_section` says."""
    old = sure_none(table.items.get("bf16")) and "bfloat16" in table.items
    for name, section in (("bf16", "bfloat16" if old else "bf16"), ("fp16", "fp16")):
        block = table.items.get(section)
        enabled = block.items.get("enabled") if isinstance(block, Table) else None
        if enabled is not None and operators.truth(enabled) is not False:
            yield name, enabled


def _table(reading: Reading, given: Value | None) -> Table | None:
    """A config that is handed over as a dict, or by the name of its JSON."""
    if isinstance(given, Const) and isinstance(given.value, str) and reading.walk.open_data is not None:
        document = reading.walk.open_data(given.value, Kind.JSON)
        given = of_node(document, document.root) if document is not None and document.root is not None else None
    return given if isinstance(given, Table) else None


# -- Accelerate -----------------------------------------------------------------------------------------------------


def plugins(reading: Reading, accelerator: Record) -> None:
    """The plugins that ``Accelerator(...)`` is handed: they count whatever the launcher says."""
    handed = accelerator.keyword("deepspeed_plugin", "deepspeed_plugins")
    if isinstance(handed, Table) and handed.items:
        handed = next(iter(handed.items.values()))  # the first of several is the active one
    made = _made(handed, "DeepSpeedPlugin")
    if made is not None:
        _state_engine(reading, "deepspeed", handed, made)
        reading.plugin = made
        _deepspeed_plugin(reading, made)
    handed = accelerator.keyword("fsdp_plugin")
    made = _made(handed, "FullyShardedDataParallelPlugin")
    if made is not None:
        _state_engine(reading, "fsdp", handed, made)
        _fsdp_plugin(reading, made)


def dummies(reading: Reading) -> None:
    """A ``DummyOptim`` that is certainly made: its optimizer is in a DeepSpeed config, and no other engine makes one of
    it (accelerate 1.15, ``Accelerator._prepare_deepspeed``; ``_prepare_one`` hands it back as it is)."""
    made = next((r for r in reading.called("DummyOptim") if r.taken is True), None)
    if made is not None:
        reading.state("optimizer_in_config", True, made.node, "DummyOptim is for DeepSpeed alone")


def _made(value: Value | None, name: str) -> Record | None:
    for each in objects(value):
        if each.call is not None and each.call.name == name:
            return each.call
    return None


def _state_engine(reading: Reading, engine: str, handed: Value | None, made: Record) -> None:
    sure = made.taken is True and handed is not None and len(list(alternatives(handed))) == 1
    reading.state("engine", engine if sure else UNKNOWN, made.node)


def _deepspeed_plugin(reading: Reading, plugin: Record) -> None:
    file = plugin.value(0, "hf_ds_config")
    if something(file):
        config(reading, file, plugin)
        return
    for name, keyword in BY_PLUGIN.items():
        value = plugin.keyword(keyword)
        if something(value):
            _put(reading, name, value, plugin)
    if "gradient_accumulation_steps" in reading.settings and plugin.keyword("gradient_accumulation_steps") is not None:
        _note_plugin(reading)


def _note_plugin(reading: Reading) -> None:
    """A plugin's accumulation is not asked for in the environment, as that of ``Accelerator(...)`` itself is."""
    reading.settings["plugin_accumulation"] = reading.settings["gradient_accumulation_steps"]


def accumulation(reading: Reading, accelerator: Record) -> None:
    """``GradientAccumulationPlugin(num_steps=…)``."""
    made = _made(accelerator.keyword("gradient_accumulation_plugin"), "GradientAccumulationPlugin")
    if made is not None and (steps := made.value(0, "num_steps")) is not None:
        reading.put("gradient_accumulation_steps", steps, made)
        _note_plugin(reading)
    each = made.keyword("sync_each_batch") if made is not None else None
    if made is not None and each is not None:
        reading.put("sync_each_batch", each, made)


def _fsdp_plugin(reading: Reading, plugin: Record) -> None:
    asked = {passed.name: passed.value for passed in plugin.passed if passed.name is not None}
    if {"fsdp_version", "sharding_strategy", "reshard_after_forward", "cpu_offload"} & asked.keys():
        shards(reading, plugin, asked, version=1)
    if plugin.spreads or not sure_none(asked.get("auto_wrap_policy")):
        wraps(reading, plugin)
    policy = asked.get("mixed_precision_policy")
    if something(policy):
        reading.put("mixed_precision", policy, plugin, to=policy_precision(policy))
    for record in reading.records:
        of_plugin = made_by(record.receiver, plugin)
        if record.name == "set_mixed_precision" and of_plugin and record.taken is not False:
            asked_for = record.value(0, "mixed_precision") or Const(record.node, UNKNOWN)
            reading.put("mixed_precision", asked_for, record, to=named_precision(plain(asked_for)))
    checkpointing = asked.get("activation_checkpointing")
    if something(checkpointing):
        reading.put("gradient_checkpointing", checkpointing, plugin)


def policy_precision(policy: Value) -> Any:
    """The precision that a ``MixedPrecision(param_dtype=…)`` computes in, or that its name says."""
    if isinstance(known := plain(policy), str):
        return named_precision(known)
    made = [each.call for each in objects(policy) if each.call is not None]
    dtype = made[0].value(0, "param_dtype") if len(made) == 1 else None
    return UNKNOWN if dtype is None else named_precision(dtype_name(dtype))


def named_precision(name: Any) -> Any:
    """The mixed precision by the name, or the dtype, that it computes in."""
    return {"bf16": "bf16", "fp16": "fp16", "fp32": "no", "no": "no", None: "no"}.get(name, UNKNOWN)


def shards(reading: Reading, record: Record, asked: Mapping[str, Value], version: int) -> None:
    """FSDP's sharding from the arguments of a plugin, a strategy or the wrapper itself."""
    from lintfit.settings.values import Fsdp

    chosen = asked.get("fsdp_version")
    version = 2 if chosen is not None and plain(chosen) == 2 else version
    reshard = asked.get("reshard_after_forward")
    if version == 2:
        strategy = "SHARD_GRAD_OP" if reshard is not None and operators.truth(reshard) is False else "FULL_SHARD"
    else:
        strategy = sharding(asked.get("sharding_strategy") or reshard)
    value = Fsdp(2 if version == 2 else 1, strategy, _offloads(asked.get("cpu_offload")))
    reading.state("fsdp", value, record.node)


_POLICIES = ("auto_wrap_policy", "policy", "fsdp_auto_wrap_policy")
_BY_HAND = re.compile(r"(?<!class )\b(fully_shard|FSDP|FullyShardedDataParallel|enable_wrap|(?<!\.)wrap|auto_wrap)\(")
"""Calls that make a unit of what they are given."""


def wraps(reading: Reading, record: Record) -> None:
    """Whether a call that hands the whole model to FSDP makes units of its layers: by a policy, or in further calls."""
    policy = next((p.value for p in record.passed if p.name in _POLICIES), None)
    if something(policy):
        known = plain(policy)
        by_layer = not (isinstance(known, str) and known.lower() == "no_wrap")
    else:
        calls = sum(len(_BY_HAND.findall(text)) for text in reading.calls.texts())
        by_layer = record.spreads or record.loops > 0 or len(record.positional) > 1 or calls > 1
    reading.state("fsdp_auto_wrap", by_layer, record.node)


def sharding(value: Value | None) -> str:
    """FSDP 1's name of a sharding strategy: a member of torch's enum, its name, or its number."""
    known = value.name.rpartition(".")[2] if isinstance(value, Ref) else (plain(value) if value is not None else None)
    return sharding_strategy(known.lstrip("_") if isinstance(known, str) else known)


def _offloads(value: Value | None) -> bool:
    """Whether parameters go to the host: ``True``, or ``CPUOffload(offload_params=True)``."""
    for each in objects(value):
        if each.call is not None and each.call.name == "CPUOffload":
            inner = each.call.value(0, "offload_params")
            return inner is not None and operators.truth(inner) is True
        return each.call is not None and each.call.name == "CPUOffloadPolicy"
    return value is not None and operators.truth(value) is True


def fsdp_config(reading: Reading, made: Object) -> Table | None:
    """The Trainer's ``fsdp_config``: a dict, or the JSON file that it names."""
    return _table(reading, made.attributes.get("fsdp_config"))


def trainer_fsdp(reading: Reading, made: Object) -> None:
    """``TrainingArguments(fsdp="full_shard offload", fsdp_config={...})``."""
    setting = reading.settings.get("fsdp")
    if setting is None or not setting.known:
        return
    given = fsdp_config(reading, made) or Table()
    said = {key: plain(item) for key, item in given.items.items()}
    value, by_layer = training_words.trainer_fsdp(setting.value, said, reading.versions)
    reading.settings["fsdp"] = replace(setting, value=value)
    if by_layer is not None:
        reading.settings["fsdp_auto_wrap"] = replace(setting, name="fsdp_auto_wrap", value=by_layer)
