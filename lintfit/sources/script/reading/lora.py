"""Settings that adapters decide: whether there are any, their rank, targets and dtype."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from lintfit.settings.model import UNKNOWN, Provenance, Setting
from lintfit.sources.script.interpreter import models, operators
from lintfit.sources.script.interpreter.values import Object, Record, alternatives, objects
from lintfit.sources.script.reading import asked_by_flag, freezing
from lintfit.sources.script.reading.collector import Reading, something, sure_none
from lintfit.sources.script.reading.handed_on import HandedOn, Use
from lintfit.sources.training_arguments import ADAPTERS

_COLLECTS = re.compile(r"all_?linear|linear_?(layer|module|name)", re.IGNORECASE)
_BY_UNSLOTH: Mapping[str, object] = {
    "lora_rank": 16,
    "lora_targets": ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"),
}
"""What ``FastLanguageModel.get_peft_model`` takes where nobody says (``unsloth/models/llama.py``)."""
_LOW_RANK = frozenset({"LoraConfig", "AdaLoraConfig"})


_PREFIX = "the model's own code trains a prefix where one is asked for"
"""ChatGLM with ``pre_seq_len`` freezes all of its layers, whose gradients and states outweigh those of any prefix."""


def method(reading: Reading, load: Record | None) -> None:
    config = _adapter(reading)
    wrapped = carries_adapter(reading)
    if config is None:
        if wrapped is not None and wrapped is not False:
            wrapping = _wrapping(reading)
            reading.state("method", "lora" if wrapped is True else UNKNOWN, wrapping.node)
            _saved(reading, wrapping)
        elif (handed := _handed_adapter(reading)) is not None:
            why = "an adapter's config that is not statically known is handed in here"
            reading.state("method", UNKNOWN, handed.node, why)
        elif load is not None and _prompt_tuned(load):
            reading.state("method", UNKNOWN, load.node, _PREFIX)
            reading.state("partly_frozen", True, load.node, _PREFIX)
        elif load is not None or reading.found.trained is not None or "model" in reading.settings:
            reading.derive("method", "full", "no adapter is applied")
            freezing.read(reading)
            asked_by_flag.read(reading)
        return
    record, made = config
    if record.name.endswith("Config") and record.name not in _LOW_RANK and record.function.startswith("peft."):
        reading.state("method", UNKNOWN, record.node, f"{record.name} is neither full fine-tuning nor LoRA")
        return
    sure = wrapped is True or (record.taken is True and reading.found.peft_use is Use.HERE)
    reading.state("method", "lora" if sure else UNKNOWN, record.node)
    _saved(reading, record)
    values = {passed.name: passed.value for passed in record.passed if passed.name is not None}
    values |= made.attributes if made is not None else {}
    for name, keywords in ADAPTERS.items():
        value = next((values[keyword] for keyword in keywords if keyword in values), None)
        if value is None and made is not None:
            value = reading.attribute(made, *keywords)
        if something(value):
            setting = reading.put(name, value, record)
            if name == "lora_targets" and not setting.known:
                _all_linear(reading, record)
        elif value is None and not record.spreads and name == "lora_rank" and record.name == "LoraConfig":
            reading.default("lora_rank", 8, "peft default")
        elif value is None and not record.spreads and models.owner_of(record) == "FastLanguageModel":
            default = _BY_UNSLOTH.get(name)
            if default is not None:
                reading.default(name, default, "Unsloth's default")
    _adapter_dtype(reading)


def _saved(reading: Reading, made: Record) -> None:
    """What the config of an adapter decides that lies ready: it comes with the adapter, and is not read."""
    if models.loads_adapter(made):
        for name in ("lora_rank", "lora_targets", "lora_modules_to_save"):
            reading.state(name, UNKNOWN, made.node, "the saved adapter's own config decides it")


def _prompt_tuned(load: Record) -> bool:
    """Whether a model's config asks for a prefix (ChatGLM's ``pre_seq_len``): the rest of it is frozen then."""
    lengths = [each.attributes.get("pre_seq_len") for each in objects(load.keyword("config"))]
    return any(something(length) for length in (*lengths, load.keyword("pre_seq_len")))


def _handed_adapter(reading: Reading) -> Record | None:
    """The trainer where it gets an adapter's config that nothing is known of."""
    trainer = reading.found.trainer
    config = trainer.keyword("peft_config") if trainer is not None else None
    return None if sure_none(config) else trainer


def _all_linear(reading: Reading, config: Record) -> None:
    """Targets that a helper collects (``find_all_linear_names(model)``) are taken for all linear layers."""
    for record in reading.records[: config.order]:
        if record.taken is not False and _COLLECTS.search(record.name):
            place = reading.calls.place(record.node)
            why = f"{record.name}() is taken to collect every linear layer"
            reading.settings["lora_targets"] = Setting("lora_targets", "all-linear", Provenance("assumed", why, place))


def _wraps(record: Record) -> bool:
    """Whether a call puts adapters into a model: PEFT's function, or one of its classes."""
    made = record.function.startswith("peft.") and record.name.startswith("PeftModel")
    return made or record.name == "get_peft_model" or models.loads_adapter(record)


def carries_adapter(reading: Reading) -> bool | None:
    """Whether the trained model carries an adapter: in every branch that may have made it, in none, in some (None)."""
    answers = set()
    for option in alternatives(reading.found.trained) if reading.found.trained is not None else ():
        answers.add(any(each.call is not None and _wraps(each.call) for each in objects(option)))
    return answers.pop() if len(answers) == 1 else (None if answers else False)


def _wrapping(reading: Reading) -> Record:
    found = (each.call for each in objects(reading.found.trained) if each.call is not None and _wraps(each.call))
    return next(found)


def _adapter(reading: Reading) -> tuple[Record, Object | None] | None:
    """The adapter's config: a peft config that is built, TRL's ``get_peft_config``, or unsloth's call."""
    peft = reading.found.peft
    if peft is not None:
        return peft, _refilled(reading, peft)
    for record in reading.records:
        if record.taken is False:
            continue
        if record.name == "get_peft_config":
            holder = record.value(0, "model_args", "model_config")
            if HandedOn(reading.calls, reading.records).use(record) <= Use.NOT_HERE:
                continue
            for each in objects(holder):
                chosen = reading.attribute(each, "use_peft")
                wanted = operators.truth(chosen) if chosen is not None else None
                if wanted is False or (wanted is None and chosen is None and not each.open):
                    return None
                return (record, each) if wanted else (replace(record, taken=None), each)
        if record.name == "get_peft_model" and record.function.startswith("unsloth"):
            return record, None
        if models.loads_adapter(record):
            trainable = record.keyword("is_trainable")
            if trainable is not None and operators.truth(trainable):
                return record, None
    return None


def _refilled(reading: Reading, config: Record) -> Object | None:
    """The config where it is a parser's default, with what flags change of it (tyro: ``--peft_config.r 64``)."""
    held = (value for each in reading.walk.parsed for value in each.attributes.values() if isinstance(value, Object))
    return next((value for value in held if value.call is not None and value.call.node is config.node), None)


def _adapter_dtype(reading: Reading) -> None:
    """peft keeps adapters in float32 unless ``autocast_adapter_dtype=False`` (peft 0.12 and up)."""
    for record in reading.called("get_peft_model"):
        value, weights = record.keyword("autocast_adapter_dtype"), reading.settings.get("weights_dtype")
        if value is not None and operators.truth(value) is False and weights is not None and weights.known:
            reading.put("lora_dtype", value, record, to=weights.value)
