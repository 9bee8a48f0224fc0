"""Settings that a model's quantization decides: of the load, of its config, of the checkpoint's name."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from lintfit.settings import UNKNOWN, Provenance, Setting
from lintfit.sources.python import models, operators
from lintfit.sources.python.reading import Reading, sure_none, without_none
from lintfit.sources.python.values import Choice, Object, Record, Table, Value, objects, plain

_QUANTIZED_NAME = re.compile(
    r"gptq[-_]?(?:int)?([48])(?:[-_]?bits?)?\b|\b(?:int)?([48])(?:[-_]?bits?)?[-_]gptq", re.IGNORECASE
)
_BITSANDBYTES_NAME = re.compile(r"[-_]bnb[-_]([48])bit$", re.IGNORECASE)
_OTHER_NAME = re.compile(r"[-_](awq|gptq|aqlm|eetq|hqq|exl2)\b", re.IGNORECASE)


def load(reading: Reading, load: Record | None) -> None:
    config = _quantization_config(reading, load)
    if config is not None and not sure_none(config):
        options = without_none(config)
        known: Any = UNKNOWN
        if len(options) == 1 and isinstance(options[0], Object) and options[0].call is not None:
            known = _quantized(reading, options[0].call)
            if isinstance(config, Choice):
                known = UNKNOWN if known is not None else None
        reading.put("quantization", config, load)
        reading.settings["quantization"] = _with(reading, "quantization", known)
        return
    if load is None:
        return
    nested = "nf4-double" if models.by_unsloth(load) else "nf4"
    for keyword, name in (("load_in_4bit", nested), ("load_in_8bit", "int8")):
        value = load.keyword(keyword)
        if value is not None and operators.truth(value) is not False:
            reading.put("quantization", value, load, to=name if operators.truth(value) else UNKNOWN)
            return


def checkpoint(reading: Reading) -> None:
    """A checkpoint that is quantized says so in its name, and needs no config to be loaded that way."""
    model = reading.settings.get("model")
    stated = reading.settings.get("quantization")
    if model is None or not isinstance(model.value, str) or (stated is not None and stated.value is not None):
        return
    value: Any = None
    if match := _QUANTIZED_NAME.search(model.value):
        value = f"gptq-int{match[1] or match[2]}"
    elif match := _BITSANDBYTES_NAME.search(model.value):
        value = "nf4-double" if match[1] == "4" else "int8"
    elif _OTHER_NAME.search(model.value):
        value = UNKNOWN
    if value is not None:
        provenance = Provenance("derived", "the checkpoint's name says that it is quantized", model.provenance.place)
        reading.settings["quantization"] = Setting("quantization", value, provenance)


def _quantization_config(reading: Reading, load: Record | None) -> Value | None:
    """The config that the model is loaded by: the load's, else what the trainer gets for a model given by name."""
    if load is not None:
        return load.keyword("quantization_config")
    trainer, made = reading.found.trainer, reading.found.arguments
    if trainer is not None and (handed := trainer.keyword("quantization_config")) is not None:
        return handed
    kwargs = models.init_kwargs(trainer, made)
    return kwargs.items.get("quantization_config") if isinstance(kwargs, Table) else None


def _with(reading: Reading, name: str, value: Any) -> Any:
    return replace(reading.settings[name], value=value)


def _quantized(reading: Reading, record: Record) -> Any:
    """The quantization that a config object means; fp4 takes the same bytes as nf4."""
    match record.name:
        case "get_quantization_config":
            return _of_model_config(reading, record)
        case "BitsAndBytesConfig":
            four, eight = record.keyword("load_in_4bit"), record.value(0, "load_in_8bit")
            states = [None if value is None else operators.truth(value) for value in (four, eight)]
            if four is not None and states[0]:
                double = record.keyword("bnb_4bit_use_double_quant")
                nested = False if double is None else operators.truth(double)
                return UNKNOWN if nested is None else ("nf4-double" if nested else "nf4")
            if eight is not None and states[1]:
                return "int8"
            undecided = (four is not None and states[0] is None) or (eight is not None and states[1] is None)
            return UNKNOWN if undecided else None
        case "GPTQConfig":
            bits = record.value(0, "bits")
            known: dict[Any, str] = {4: "gptq-int4", 8: "gptq-int8"}
            return UNKNOWN if bits is None else known.get(plain(bits), UNKNOWN)
    return UNKNOWN


def _of_model_config(reading: Reading, record: Record) -> Any:
    """TRL's ``get_quantization_config(model_args)``: bits and kind as ``ModelConfig`` has them."""
    holder = next(objects(record.value(0, "model_args")), None)
    if holder is None:
        return UNKNOWN
    names = ("load_in_4bit", "load_in_8bit", "use_bnb_nested_quant")
    values = [reading.attribute(holder, name) for name in names]
    four, eight, nested = (None if value is None else operators.truth(value) for value in values)
    if four:
        return UNKNOWN if nested is None else ("nf4-double" if nested else "nf4")
    if four is None:
        return UNKNOWN
    return UNKNOWN if eight is None else ("int8" if eight else None)
