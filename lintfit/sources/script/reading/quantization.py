"""Settings that a model's quantization decides: of the load, of its config, of the checkpoint's name."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lintfit.catalog.quantized import by_name
from lintfit.settings.model import UNKNOWN, Provenance, Setting
from lintfit.sources.script.interpreter import models, operators
from lintfit.sources.script.interpreter.values import Choice, Const, Object, Record, Table, Value, objects, plain
from lintfit.sources.script.reading.collector import Reading, something, without_none
from lintfit.sources.script.reading.facts import is_trained


def load(reading: Reading, load: Record | None) -> None:
    if load is not None and not load.taken and len({_asks(other) for other in same_role(reading, load)}) > 1:
        reading.state("quantization", UNKNOWN, load.node, "each of several branches loads in a way of its own")
        return
    config = _quantization_config(reading, load)
    if something(config):
        options = without_none(config)
        known: Any = UNKNOWN
        if len(options) == 1 and isinstance(options[0], Object) and options[0].call is not None:
            known = _quantized(reading, options[0].call)
            if isinstance(config, Choice):
                known = UNKNOWN if known is not None else None
        _put(reading, config, load, known)
        return
    if load is None:
        prepared = next((r for r in reading.found.checkpointing if is_prepared(r) and r.taken is not False), None)
        if prepared is not None and not is_seen(reading):
            why = "a model that is not seen to load is made ready as a quantized one here"
            reading.state("quantization", UNKNOWN, prepared.node, why)
        return
    if models.by_unsloth(load) and _whole_by_unsloth(reading, load):
        return
    nested = "nf4-double" if models.by_unsloth(load) else "nf4"
    for position, keyword, name in ((3, "load_in_4bit", nested), (4, "load_in_8bit", "int8")):
        value = load.value(position, keyword) if models.by_unsloth(load) else load.keyword(keyword)
        if value is not None and operators.truth(value) is not False:
            reading.put("quantization", value, load, to=name if operators.truth(value) else UNKNOWN)
            return
    if models.by_unsloth(load) and not load.spreads and load.value(3, "load_in_4bit") is None:
        reading.default("quantization", nested, "Unsloth loads in 4 bits unless it is asked not to")


def same_role(reading: Reading, load: Record) -> list[Record]:
    """Loads that may be the one that runs: alternatives of an undecided branch."""
    return [
        record for record in reading.found.loads if record.taken is not False and record.assigned_to == load.assigned_to
    ]


def _asks(load: Record) -> tuple[object, ...]:
    """What a load says of quantization, to be compared with what another one says."""
    config = load.keyword("quantization_config")
    bits = [load.keyword(name) for name in ("load_in_4bit", "load_in_8bit")]
    asked = [False if value is None else operators.truth(value) for value in bits]
    made = next(objects(config), None)
    return (load.spreads, id(made.call) if made is not None else something(config), *asked)


def is_prepared(record: Record) -> bool:
    """Whether a call makes a quantized model ready for training (``prepare_model_for_kbit_training``, PEFT)."""
    return record.name.startswith("prepare_model_for_")


def is_seen(reading: Reading) -> bool:
    """Whether it is in sight how the model that is trained is loaded: by a call, or by the trainer from its name."""
    if reading.found.trained_load is not None:
        return True
    trainer = reading.found.trainer
    handed = trainer.value(0, "model") if trainer is not None else None
    return handed is not None and isinstance(plain(handed), str)


_WHOLE = ("full_finetuning", "load_in_16bit")
"""Arguments of Unsloth's loader that stand against its 4 bits."""


def _whole_by_unsloth(reading: Reading, load: Record) -> bool:
    """Whether Unsloth is told not to quantize: it then takes the model that a quantized one was made from.

    ``unsloth/models/loader.py:from_pretrained``, ``loader_utils.py:__get_model_name``.
    """
    for keyword in _WHOLE:
        value = load.keyword(keyword)
        if value is not None and operators.truth(value) is not False:
            _put(reading, value, load, None if operators.truth(value) else UNKNOWN)
            return True
    four, eight = load.value(3, "load_in_4bit"), load.value(4, "load_in_8bit")
    if four is None or operators.truth(four) is not False:
        return False
    if eight is not None and operators.truth(eight) is not False:
        return False
    _put(reading, four, load, None)
    return True


def checkpoint(reading: Reading) -> None:
    """A checkpoint that is quantized says so in its name, and needs no config to be loaded that way.

    Unsloth has a model in 16 bits for each of its own that is quantized, and takes that where it is told not to
    quantize (``mapper.py:INT_TO_FLOAT_MAPPER``, 2025.3 to 2026.10); another one's is loaded as it is stored.
    """
    model = reading.settings.get("model")
    stated = reading.settings.get("quantization")
    load = reading.found.trained_load
    if model is None or not isinstance(model.value, str):
        return
    replaced = load is not None and models.by_unsloth(load) and model.value.lower().startswith("unsloth/")
    if stated is not None and (stated.value is not None or replaced):
        return
    stored = by_name(model.value)
    if stored is not None:
        provenance = Provenance("derived", "the checkpoint's name says that it is quantized", model.provenance.place)
        reading.settings["quantization"] = Setting("quantization", stored.method or UNKNOWN, provenance)


def afterwards(reading: Reading) -> None:
    """``model.quantize(4)`` of a model's own code (ChatGLM, Baichuan), ``quantize_(model, …)`` of torchao or quanto."""
    for record in reading.called("quantize", "quantize_"):
        by_package = record.function.startswith(("torchao.", "optimum."))
        if is_trained(reading.found, record.value(0, "model") if by_package else record.receiver):
            reading.state("quantization", UNKNOWN, record.node, "the loaded model is quantized by other code here")
            return
    _own_layers(reading)


def _own_layers(reading: Reading) -> None:
    """Quantized layers that the code puts in place of a model's linear ones (``bnb.nn.Linear4bit(…)``)."""
    stated = reading.settings.get("quantization")
    if stated is not None and stated.value is not None:
        return
    for record in reading.called("Linear4bit", "LinearNF4", "LinearFP4", "Linear8bitLt", "HQQLinear"):
        if record.function.startswith(("bitsandbytes.", "hqq.")) and record.taken is not False:
            reading.state("quantization", UNKNOWN, record.node, "layers are made quantized here")
            return


def _quantization_config(reading: Reading, load: Record | None) -> Value | None:
    """The config that the model is loaded by: the load's, else what the trainer gets for a model given by name."""
    if load is not None:
        return load.keyword("quantization_config")
    trainer, made = reading.found.trainer, reading.found.arguments
    if trainer is not None and (handed := trainer.keyword("quantization_config")) is not None:
        return handed
    kwargs = models.init_kwargs(trainer, made)
    return kwargs.items.get("quantization_config") if isinstance(kwargs, Table) else None


def _put(reading: Reading, stated: Value, load: Record | None, known: Any) -> None:
    """Note what a value comes to, none as well."""
    setting = reading.put("quantization", stated, load)
    reading.settings["quantization"] = replace(setting, value=known)


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
        case "Mxfp4Config" | "FineGrainedFP8Config":
            # What is released in such a form is loaded in 16 bits (transformers 4.55, ``quantization_config.py``).
            return None if operators.truth(record.keyword("dequantize") or Const(None, None)) else UNKNOWN
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
