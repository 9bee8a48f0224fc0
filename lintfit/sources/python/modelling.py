"""Settings that the making of the model decides: its name, dtype, adapters, quantization, attention."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import libcst as cst

from lintfit.settings import AUTO, UNKNOWN, Provenance, Setting
from lintfit.sources.python import models, operators
from lintfit.sources.python.facts import is_trained
from lintfit.sources.python.reading import Reading, dtype_name, sure_none, without_none
from lintfit.sources.python.values import Choice, Const, Object, Record, Table, Value, alternatives, objects, plain

_CONFIG_NAMES = (
    "pretrained_model_name_or_path",
    "model_name_or_path",
    "model_name",
    "model_id",
    "base_model_name_or_path",
)
_COLLECTS = re.compile(r"all_?linear|linear_?(layer|module|name)", re.IGNORECASE)
_LORA = {
    "lora_rank": ("r", "lora_r", "rank"),
    "lora_targets": ("target_modules", "lora_target_modules"),
    "lora_modules_to_save": ("modules_to_save", "lora_modules_to_save"),
    "lora_dropout": ("lora_dropout",),
    "use_dora": ("use_dora",),
}


def read(reading: Reading) -> None:
    """Note everything about the model that is trained."""
    load = reading.found.trained_load
    if load is not None:
        _loaded(reading, load)
    else:
        _not_loaded(reading)
    _quantization(reading, load)
    _quantized_checkpoint(reading)
    _method(reading, load)
    _casts(reading)
    _liger(reading)
    if load is not None and not _in_training(reading):
        _guessed(reading)


def _in_training(reading: Reading) -> bool:
    """Whether the model's training is in sight: what trains it, or its being handed to something that does."""
    found = reading.found
    if found.trains or found.arguments is not None or found.accelerator is not None:
        return True
    return any(models.is_model(each) for each in objects(found.trained))


def _guessed(reading: Reading) -> None:
    """Without a training in sight, a model that is loaded need not be the one that is trained."""
    why = "the model that is loaded in sight is taken for the one that is trained"
    for name in ("weights_dtype", "quantization", "attention", "method"):
        setting = reading.settings.get(name)
        if setting is not None and setting.provenance.kind != "assumed":
            place = setting.provenance.place
            reading.settings[name] = replace(setting, provenance=Provenance("assumed", why, place))


_QUANTIZED_NAME = re.compile(
    r"gptq[-_]?(?:int)?([48])(?:[-_]?bits?)?\b|\b(?:int)?([48])(?:[-_]?bits?)?[-_]gptq", re.IGNORECASE
)
_BITSANDBYTES_NAME = re.compile(r"[-_]bnb[-_]([48])bit$", re.IGNORECASE)
_OTHER_NAME = re.compile(r"[-_](awq|gptq|aqlm|eetq|hqq|exl2)\b", re.IGNORECASE)


def _quantized_checkpoint(reading: Reading) -> None:
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


def _loaded(reading: Reading, load: Record) -> None:
    _model(reading, load)
    _dtype(reading, load)
    _attention(reading, load)
    cache = load.keyword("use_cache")
    if cache is not None:
        reading.put("use_cache", cache, load)


def _model(reading: Reading, load: Record) -> None:
    names = [record.value(0, *_CONFIG_NAMES) for record in _same_role(reading, load)]
    value = load.value(0, *_CONFIG_NAMES, "config")
    if load.name != "from_pretrained" or isinstance(value, Object):
        value = _of_config(value) or value
    if value is None or (isinstance(value, Const) and value.value is None):
        return
    known = plain(value)
    texts = {plain(name) for name in names if name is not None and isinstance(plain(name), str)}
    reading.put("model", value, load, to=known if load.taken or len(texts) <= 1 else UNKNOWN)


def _same_role(reading: Reading, load: Record) -> list[Record]:
    """Other loads that may be the one that runs: alternatives of an undecided branch."""
    return [
        record for record in reading.found.loads if record.taken is not False and record.assigned_to == load.assigned_to
    ]


def _of_config(value: Value | None) -> Value | None:
    """The name that a config object was loaded by (``AutoConfig.from_pretrained(name)``)."""
    for each in objects(value):
        if each.call is not None and each.call.name == "from_pretrained":
            return each.call.value(0, *_CONFIG_NAMES)
    return None


def _dtype(reading: Reading, load: Record) -> None:
    value = load.keyword("dtype") or load.keyword("torch_dtype")
    known = dtype_name(value) if value is not None else None
    if not load.taken and len({_stated_dtype(other) for other in _same_role(reading, load)}) > 1:
        reading.state("weights_dtype", UNKNOWN, load.node, "each of several branches loads in a dtype of its own")
        return
    if value is not None and known is not None:
        reading.put("weights_dtype", value, load, to=AUTO if known == "auto" else known)
        return
    if load.spreads:
        return
    if _by_unsloth(load):
        why = "unsloth takes bfloat16 wherever the GPU has it"
        reading.settings["weights_dtype"] = Setting("weights_dtype", "bf16", Provenance("assumed", why))
        return
    if not reading.at_least("transformers", 5) and _by_bitsandbytes(load):
        version = reading.versions.get("transformers")
        reading.default("weights_dtype", "fp16", f"transformers {version} default beside bitsandbytes")
        return
    _default_dtype(reading)
    remote = load.keyword("trust_remote_code")
    if remote is not None and operators.truth(remote) is not False:
        setting = reading.settings["weights_dtype"]
        why = f"{setting.provenance.detail}; the model's own code may choose another"
        reading.settings["weights_dtype"] = replace(setting, provenance=Provenance("assumed", why))


def _by_bitsandbytes(load: Record) -> bool:
    """Whether a load is certainly quantized by bitsandbytes, which takes float16 where no dtype is asked for."""
    if any(operators.truth(load.keyword(name) or Const(None, None)) for name in ("load_in_8bit", "load_in_4bit")):
        return True
    config = load.keyword("quantization_config")
    return isinstance(config, Object) and config.call is not None and config.call.name == "BitsAndBytesConfig"


def _stated_dtype(load: Record) -> Any:
    value = load.keyword("dtype") or load.keyword("torch_dtype")
    return dtype_name(value) if value is not None else None


def _default_dtype(reading: Reading) -> None:
    version = reading.versions.get("transformers")
    if reading.at_least("transformers", 5):
        reading.default("weights_dtype", AUTO, f"transformers {version or '5'} default: the checkpoint's dtype")
    else:
        reading.default("weights_dtype", "fp32", f"transformers {version} default")


def _not_loaded(reading: Reading) -> None:
    """A model handed to the trainer by name, or built from a config by its class."""
    trainer = reading.found.trainer
    handed = trainer.value(0, "model") if trainer is not None else None
    if trainer is not None and handed is not None and isinstance(plain(handed), str):
        reading.put("model", handed, trainer)
        _by_name(reading, trainer)
        return
    for each in objects(reading.found.trained):
        if each.call is not None and models.is_model_constructor(each.call):
            value = _of_config(each.call.value(0, "config"))
            if value is not None:
                reading.put("model", value, each.call)
            reading.default("weights_dtype", "fp32", "a model class's constructor makes float32")
            return
    if trainer is not None and handed is not None and not any(objects(handed)):
        _by_name(reading, trainer)
    _named_by_flag(reading)


def _named_by_flag(reading: Reading) -> None:
    """A model made out of sight: the command line's ``model_name_or_path`` is taken for it."""
    if reading.found.trainer is None and reading.found.initialize is None:
        return
    for made in reading.parsed:
        for name in _CONFIG_NAMES:
            value = made.attributes.get(name)
            if value is not None and isinstance(known := plain(value), str):
                why = f"the script's {name} is taken for the model that is trained"
                provenance = Provenance("assumed", why, reading.place_of(value.origin))
                reading.settings["model"] = Setting("model", known, provenance)
                return


def _by_name(reading: Reading, trainer: Record) -> None:
    """TRL loads a model that it is given by name: in float32 since 0.29, with ``model_init_kwargs["dtype"]`` else."""
    kwargs = _init_kwargs(trainer, reading.found.arguments)
    if kwargs is not None and not isinstance(kwargs, Table) and not sure_none(kwargs):
        return
    items = kwargs.items if isinstance(kwargs, Table) else {}
    names = ("dtype",) if reading.at_least("trl", 0, 29) else ("dtype", "torch_dtype")
    value = next((items[name] for name in names if name in items), None)
    known = dtype_name(value) if value is not None else None
    if value is not None and known is not None:
        reading.put("weights_dtype", value, to=AUTO if known == "auto" else known)
    elif reading.at_least("trl", 0, 29):
        version = reading.versions.get("trl")
        reading.default("weights_dtype", "fp32", f"TRL {version or '0.29'} default for a model given by name")
    else:
        _default_dtype(reading)
    attention = items.get("attn_implementation")
    if attention is not None and not sure_none(attention):
        reading.put("attention", attention)


def _attention(reading: Reading, load: Record) -> None:
    value = load.keyword("attn_implementation", "_attn_implementation")
    if value is not None and not sure_none(value):
        reading.put("attention", value, load)
        return
    flash = load.keyword("use_flash_attention_2", "use_flash_attn")
    if flash is not None:
        known = operators.truth(flash)
        if known is not False:
            reading.put("attention", flash, load, to="flash_attention_2" if known else UNKNOWN)


def _quantization(reading: Reading, load: Record | None) -> None:
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
    nested = "nf4-double" if _by_unsloth(load) else "nf4"
    for keyword, name in (("load_in_4bit", nested), ("load_in_8bit", "int8")):
        value = load.keyword(keyword)
        if value is not None and operators.truth(value) is not False:
            reading.put("quantization", value, load, to=name if operators.truth(value) else UNKNOWN)
            return


def _quantization_config(reading: Reading, load: Record | None) -> Value | None:
    """The config that the model is loaded by: the load's, else what the trainer gets for a model given by name."""
    if load is not None:
        return load.keyword("quantization_config")
    trainer, made = reading.found.trainer, reading.found.arguments
    if trainer is not None and (handed := trainer.keyword("quantization_config")) is not None:
        return handed
    kwargs = _init_kwargs(trainer, made)
    return kwargs.items.get("quantization_config") if isinstance(kwargs, Table) else None


def _init_kwargs(trainer: Record | None, made: Object | None) -> Value | None:
    """What TRL's trainers load a model that is given by name with: of their config, of the trainer up to TRL 0.12."""
    if trainer is not None and (handed := trainer.keyword("model_init_kwargs")) is not None:
        return handed
    return made.attributes.get("model_init_kwargs") if made is not None else None


def _by_unsloth(load: Record) -> bool:
    """Whether unsloth's own classes load the model: always with double quantization (unsloth/models/llama.py)."""
    return load.function.startswith("unsloth")


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


def _method(reading: Reading, load: Record | None) -> None:
    config = _adapter(reading)
    wrapped = _wrapped(reading)
    if config is None:
        if wrapped is not None and wrapped is not False:
            reading.state("method", "lora" if wrapped is True else UNKNOWN, _wrapping(reading).node)
        elif (handed := _handed_adapter(reading)) is not None:
            reading.state("method", UNKNOWN, handed.node, "an adapter's config that cannot be told is handed in here")
        elif load is not None and (tuned := _prompt_tuned(reading, load)) is not None:
            reading.state("method", UNKNOWN, tuned.node, "the model's own code trains a prefix where one is asked for")
        elif load is not None or reading.found.trained is not None or "model" in reading.settings:
            reading.derive("method", "full", "no adapter is applied")
            _frozen(reading)
        return
    record, made = config
    sure = record.taken is True or wrapped is True
    reading.state("method", "lora" if sure else UNKNOWN, record.node)
    values = {passed.name: passed.value for passed in record.passed if passed.name is not None}
    values |= made.attributes if made is not None else {}
    for name, keywords in _LORA.items():
        value = next((values[keyword] for keyword in keywords if keyword in values), None)
        if value is None and made is not None:
            value = reading.attribute(made, *keywords)
        if value is not None and not sure_none(value):
            setting = reading.put(name, value, record)
            if name == "lora_targets" and not setting.known:
                _all_linear(reading, record)
        elif value is None and not record.spreads and name == "lora_rank" and record.name == "LoraConfig":
            reading.default("lora_rank", 8, "peft default")
    _adapter_dtype(reading)


def _prompt_tuned(reading: Reading, load: Record) -> Record | None:
    """The load of a model whose config asks for a prefix (ChatGLM's ``pre_seq_len``): the rest of it is frozen then."""
    for each in objects(load.keyword("config")):
        length = each.attributes.get("pre_seq_len")
        if length is not None and not sure_none(length):
            return load
    length = load.keyword("pre_seq_len")
    return load if length is not None and not sure_none(length) else None


def _handed_adapter(reading: Reading) -> Record | None:
    """The trainer where it gets an adapter's config that nothing is known of."""
    trainer = reading.found.trainer
    config = trainer.keyword("peft_config") if trainer is not None else None
    return None if sure_none(config) else trainer


def _frozen(reading: Reading) -> None:
    """``model.requires_grad_(False)`` or the same on a part of the language model: then not all of it is trained."""
    load = reading.found.trained_load
    loads = [load] if load is not None else [r for r in reading.found.loads if r.taken is not False]
    names = {record.assigned_to for record in loads}
    for record in reading.records:
        if record.taken is not False and _ADAPTS.search(record.name):
            reading.state("method", UNKNOWN, record.node, "adapters of the script's own are put in here")
            return
        if record.name != "requires_grad_" or record.taken is False or operators.truth(_first(record)) is not False:
            continue
        function = record.node.func
        chain = _dotted(function.value) if isinstance(function, cst.Attribute) else []
        if _of_language_model(reading, chain, names, record.receiver):
            reading.state("method", UNKNOWN, record.node, "a part of the model is frozen here")
    for gradient in reading.gradients:
        function = gradient.source.node.func
        chain = _dotted(function.value) if isinstance(function, cst.Attribute) else []
        if gradient.taken is not False and _of_language_model(reading, chain, names, gradient.source.receiver):
            if gradient.value is not True:
                reading.state("method", UNKNOWN, gradient.node, "a part of the model is frozen here")
            elif gradient.taken:
                reading.derive("method", "full", "no adapter is applied")


def _of_language_model(reading: Reading, chain: list[str], names: set[str | None], receiver: Value | None) -> bool:
    """Whether ``a.b.c`` is the trained model or a part of its language model."""
    if any(_BESIDE.search(part) for part in chain[1:]):
        return False
    return (bool(chain) and chain[0] in names) or is_trained(reading.found, receiver)


_ADAPTS = re.compile(r"(?:to|add|inject|apply|convert|insert)_?.*lora", re.IGNORECASE)
"""Names of helpers that put adapters of their own into a model."""

_BESIDE = re.compile(r"vis|vpm|vit|tower|audio|apm|tts|image|embed|proj|resampler|head", re.IGNORECASE)
"""Parts of a model beside its language model."""


def _first(record: Record) -> Value:
    return record.value(0, "requires_grad") or Const(None, True)


def _dotted(node: cst.CSTNode) -> list[str]:
    """The names of ``a.b.c``; none for anything else."""
    if isinstance(node, cst.Name):
        return [node.value]
    if isinstance(node, cst.Attribute) and (holder := _dotted(node.value)):
        return [*holder, node.attr.value]
    return []


def _all_linear(reading: Reading, config: Record) -> None:
    """Targets that a helper collects (``find_all_linear_names(model)``) are taken for all linear layers."""
    for record in reading.records[: config.order]:
        if record.taken is not False and _COLLECTS.search(record.name):
            place = reading.calls.place(record.node)
            why = f"{record.name}() is taken to collect every linear layer"
            reading.settings["lora_targets"] = Setting("lora_targets", "all-linear", Provenance("assumed", why, place))


def _wraps(record: Record) -> bool:
    return record.name == "get_peft_model" or record.function.endswith("PeftModel.from_pretrained")


def _wrapped(reading: Reading) -> bool | None:
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
        return peft, None
    for record in reading.records:
        if record.taken is False:
            continue
        if record.name == "get_peft_config":
            holder = record.value(0, "model_args", "model_config")
            for each in objects(holder):
                chosen = reading.attribute(each, "use_peft")
                wanted = operators.truth(chosen) if chosen is not None else None
                if wanted is False or (wanted is None and chosen is None and not each.open):
                    return None
                return (record, each) if wanted else (_undecided(record), each)
        if record.name == "get_peft_model" and record.function.startswith("unsloth"):
            return record, None
        if record.name == "from_pretrained" and record.function.endswith("PeftModel.from_pretrained"):
            trainable = record.keyword("is_trainable")
            if trainable is not None and operators.truth(trainable):
                return record, None
    return None


def _undecided(record: Record) -> Record:
    return replace(record, taken=None)


def _adapter_dtype(reading: Reading) -> None:
    """peft keeps adapters in float32 unless ``autocast_adapter_dtype=False`` (peft 0.12 and up)."""
    for record in reading.records:
        if record.name == "get_peft_model" and record.taken is not False:
            value = record.keyword("autocast_adapter_dtype")
            weights = reading.settings.get("weights_dtype")
            if value is not None and operators.truth(value) is False and weights is not None and weights.known:
                reading.put("lora_dtype", value, record, to=weights.value)


def _casts(reading: Reading) -> None:
    """``.half()``, ``.float()`` … on the whole model before it is handed over: the last one wins."""
    found = reading.found
    consumer = found.trainer or found.initialize
    for record, target in found.casts:
        if record.taken is False or record.guarded or (consumer is not None and record.order > consumer.order):
            continue
        if target == "fp64":
            target = "fp32"
        before = reading.settings.get("weights_dtype")
        if record.taken is None and (before is None or before.value != target):
            reading.state("weights_dtype", UNKNOWN, record.node)
        elif record.taken:
            reading.state("weights_dtype", target, record.node)


def _liger(reading: Reading) -> None:
    """Liger's kernels, patched in or by its own model class."""
    for record in reading.records:
        if record.taken is False:
            continue
        patched = record.name.startswith(("apply_liger_kernel_to", "_apply_liger_kernel"))
        if patched or "AutoLigerKernelForCausalLM" in record.function:
            fused = record.keyword("fused_linear_cross_entropy")
            if fused is None or operators.truth(fused) is not False:
                reading.state("loss", "liger" if record.taken else UNKNOWN, record.node)
