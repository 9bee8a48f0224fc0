"""Settings that the making of the model decides: its name, dtype, attention, casts; the rest by the modules beside."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from lintfit.frozen import word_set
from lintfit.settings.model import AUTO, BY_CARD, UNKNOWN, Provenance, Setting
from lintfit.sources.launchers.flags import Flag
from lintfit.sources.script.interpreter import models, operators
from lintfit.sources.script.interpreter.expressions import dotted
from lintfit.sources.script.interpreter.values import Const, Object, Passed, Record, Table, Value, objects, plain
from lintfit.sources.script.reading import engines, image_size, lora, quantization, unsloth
from lintfit.sources.script.reading.collector import Reading, dtype_name, something, sure_none
from lintfit.sources.training_words import kernel_of

_FOR_TEXT = re.compile(r"(?!Auto)\w+(ForCausalLM|TextModel)")
"""Classes that take the language model out of a checkpoint with more parts (``Gemma3ForCausalLM``)."""
_CHECKPOINT = re.compile(r"(?:^|_)(?:last|latest|resume|resumed)_?\w*(?:checkpoint|ckpt)|resume_from", re.IGNORECASE)
_BY_TYPE = frozenset({"AutoModelForCausalLM", "AutoLigerKernelForCausalLM"})
"""Classes that take the one or the other, by the checkpoint's ``model_type`` (``Code.text_by_auto``)."""
_SIZES = word_set("""
    d_ff d_model decoder_ffn_dim decoder_layers encoder_ffn_dim encoder_layers ffn_dim head_dim hidden_dim hidden_size
    intermediate_size moe_intermediate_size n_embd n_head n_heads n_inner n_layer n_layers n_routed_experts
    num_attention_heads num_decoder_layers num_experts num_hidden_layers num_key_value_heads num_layers
    num_local_experts
    """)
"""Keys of a config that say how large a model is; one with others than its checkpoint is not that model."""


def read(reading: Reading) -> None:
    """Note everything about the model that is trained."""
    load = reading.found.trained_load
    if load is not None:
        _loaded(reading, load)
    else:
        _not_loaded(reading)
    quantization.load(reading, load)
    quantization.checkpoint(reading)
    quantization.afterwards(reading)
    lora.method(reading, load)
    _casts(reading)
    _liger(reading)
    image_size.read(reading)
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
            reading.suppose(name, why)


def _loaded(reading: Reading, load: Record) -> None:
    _model(reading, load)
    owner = models.owner_of(load)
    if _FOR_TEXT.fullmatch(owner):
        reading.state("text_only", True, load.node, f"{owner} has no image encoder")
    elif owner in _BY_TYPE:
        reading.state("text_only", AUTO, load.node, f"{owner} goes by the checkpoint's model_type")
    _dtype(reading, load)
    _attention(reading, load)
    unsloth.attention(reading, load)
    unsloth.kernels(reading, load)
    cache = load.keyword("use_cache")
    if cache is not None:
        reading.put("use_cache", cache, load)


def _model(reading: Reading, load: Record) -> None:
    names = [record.value(0, *models.CONFIG_NAMES) for record in quantization.same_role(reading, load)]
    value = load.value(0, *models.CONFIG_NAMES) if load.name == "from_pretrained" else None
    _put_name(reading, load, names, value)
    given = load.keyword("config") if load.name == "from_pretrained" else load.value(0, "config")
    _resized(reading, load, given or value)


def _put_name(reading: Reading, load: Record, names: Sequence[Value | None], value: Value | None) -> None:
    if value is None or sure_none(value):
        value = load.value(0, *models.CONFIG_NAMES, "config")
    if load.name != "from_pretrained" or isinstance(value, Object):
        value = _of_config(value) or value
    if value is None or (isinstance(value, Const) and value.value is None):
        return
    known = plain(value)
    texts = {plain(name) for name in names if name is not None and isinstance(plain(name), str)}
    if known is UNKNOWN and len(texts) == 1 and not load.taken and _is_of_checkpoint(load):
        begun = next(name for name in names if name is not None and isinstance(plain(name), str))
        reading.put("model", begun, load, to=plain(begun))
        return
    reading.put("model", value, load, to=known if load.taken or len(texts) <= 1 else UNKNOWN)


def _is_of_checkpoint(load: Record) -> bool:
    """Whether a load goes on from what a run of the same model has saved: ``from_pretrained(last_checkpoint)``."""
    first = load.passed[0].node.value if load.passed else None
    return first is not None and _CHECKPOINT.search(dotted(first).rpartition(".")[2]) is not None


def _resized(reading: Reading, maker: Record, given: Value | None) -> None:
    """A config of other sizes than those of the name that it was loaded by makes another model.

    What is handed over beside the name is the config's own (``PreTrainedConfig.from_dict``, ``update`` and
    ``update_from_string``; transformers 4.57). Where weights are loaded, what is set without being named is no size.
    """
    if "model" not in reading.settings:
        return
    name = _size_of(maker.passed)
    for config in objects(given):
        call = config.call
        if call is None or call.name != "from_pretrained":
            continue
        set_here = (key for key in config.attributes if key in _SIZES and _is_set(config, key))
        name = name or _size_of(call.passed) or next(set_here, None)
        weightless = maker.name != "from_pretrained"
        updates = (r.name for r in reading.called(*_UPDATES) if _changes_size(r, config, weightless))
        name = name or next(updates, None)
        if weightless and config.open and not call.spreads:
            name = name or "setattr"
    if name is not None:
        why = f"its config is given other sizes than those of the name ({name})"
        reading.state("model", UNKNOWN, maker.node, why)


def _is_set(config: Object, key: str) -> bool:
    """Whether a script gives a config a size; one that it only reads is the config's own part (``field_default``)."""
    value = config.attributes[key]
    return not sure_none(value) and not (isinstance(value, Object) and value.kind == f"{config.library}.{key}")


_UPDATES = ("update", "update_from_string")


def _changes_size(record: Record, config: Object, any_may: bool) -> bool:
    """``config.update({"num_hidden_layers": 4})``; with ``any_may``, an update of what is not known as well."""
    if record.taken is False or not any(each is config for each in objects(record.receiver)):
        return False
    given = record.value(0, "config_dict", "update_str")
    if isinstance(given, Table):
        return not _SIZES.isdisjoint(given.items)
    known = plain(given) if given is not None else None
    return any(name in known for name in _SIZES) if isinstance(known, str) else any_may


def _size_of(passed: Sequence[Passed]) -> str | None:
    """The first of a call's keywords that says how large a model is."""
    return next((each.name for each in passed if each.name in _SIZES and not sure_none(each.value)), None)


def _of_config(value: Value | None) -> Value | None:
    """The name that a config object was loaded by (``AutoConfig.from_pretrained(name)``)."""
    for each in objects(value):
        if each.call is not None and each.call.name == "from_pretrained":
            return each.call.value(0, *models.CONFIG_NAMES)
    return None


def _dtype(reading: Reading, load: Record) -> None:
    value = load.keyword("dtype", "torch_dtype")
    known = dtype_name(value) if value is not None else None
    if not load.taken and len({_stated_dtype(other) for other in quantization.same_role(reading, load)}) > 1:
        reading.state("weights_dtype", UNKNOWN, load.node, "each of several branches loads in a dtype of its own")
        return
    if value is not None and known is not None:
        reading.put("weights_dtype", value, load, to=AUTO if known == "auto" else known)
        return
    if load.spreads:
        return
    if load.name in ("from_config", "_from_config") and (empty := _without_weights(reading, load)) is not None:
        reading.state("weights_dtype", UNKNOWN, empty.node, "made without weights here: who fills them decides")
        return
    if models.by_unsloth(load):
        reading.settings["weights_dtype"] = Setting("weights_dtype", "bf16", Provenance("assumed", BY_CARD))
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


def _without_weights(reading: Reading, load: Record) -> Record | None:
    """The last ``with init_empty_weights():`` before a model is made of its config alone."""
    made = [r for r in reading.records[: load.order] if r.name == "init_empty_weights" and r.taken is not False]
    return made[-1] if made else None


def _by_bitsandbytes(load: Record) -> bool:
    """Whether a load is certainly quantized by bitsandbytes, which takes float16 where no dtype is asked for."""
    if any(operators.truth(load.keyword(name) or Const(None, None)) for name in ("load_in_8bit", "load_in_4bit")):
        return True
    config = load.keyword("quantization_config")
    return isinstance(config, Object) and config.call is not None and config.call.name == "BitsAndBytesConfig"


def _stated_dtype(load: Record) -> Any:
    value = load.keyword("dtype", "torch_dtype")
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
        if each.call is not None and (models.is_model_constructor(each.call) or models.is_own_model(each)):
            value = _of_config(each.call.value(0, "config"))
            if value is not None:
                reading.put("model", value, each.call)
                _resized(reading, each.call, each.call.value(0, "config"))
            if models.is_own_model(each) and models.in_own_module(each):
                reading.state("weights_dtype", UNKNOWN, each.call.node, "its class loads parts in dtypes of their own")
            else:
                _constructed(reading)
            return
    if trainer is not None and handed is not None and not any(objects(handed)):
        _by_name(reading, trainer)
    _named_by_flag(reading)


def _constructed(reading: Reading) -> None:
    """A constructor makes float32, under ``deepspeed.zero.Init`` what its config or its ``dtype`` says."""
    context = next((r for r in reading.records if r.function == "deepspeed.zero.Init" and r.taken is not False), None)
    if context is None:
        reading.default("weights_dtype", "fp32", "a model class's constructor makes float32")
        return
    dtype = context.keyword("dtype")
    known: Any = dtype_name(dtype) if dtype is not None else None
    if known is None:
        known = engines.precision_of(reading, context.keyword("config_dict_or_path", "config"))
    reading.state("weights_dtype", known if context.taken else UNKNOWN, context.node, "deepspeed.zero.Init")


def _named_by_flag(reading: Reading) -> None:
    """A model made out of sight: the command line's ``model_name_or_path`` is taken for it."""
    if reading.found.trainer is None and reading.found.initialize is None:
        return
    for made in reading.walk.parsed:
        for name in models.CONFIG_NAMES:
            value = made.attributes.get(name)
            if isinstance(value, Const) and not isinstance(value.origin, Flag) and reading.walk.assume:
                continue  # the default of a field that the launch leaves alone: another one may name the model
            if value is not None and isinstance(known := plain(value), str):
                why = f"the script's {name} is taken for the model that is trained"
                provenance = Provenance("assumed", why, reading.place_of(value.origin))
                reading.settings["model"] = Setting("model", known, provenance)
                return


def _by_name(reading: Reading, trainer: Record) -> None:
    """TRL loads a model that it is given by name: in float32 since 0.29, with ``model_init_kwargs["dtype"]`` else."""
    made = reading.found.arguments
    kwargs = models.init_kwargs(trainer, made)
    if kwargs is None and made is not None and made.open:
        why = "the file that fills the arguments is not read" if made.parsed else "not all of the arguments are known"
        reading.derive("weights_dtype", UNKNOWN, why)
        return
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
    attention, flash = items.get("attn_implementation"), items.get("use_flash_attention_2")
    if something(attention):
        _put_attention(reading, attention)
    elif flash is not None:
        _put_flash(reading, flash)


def _attention(reading: Reading, load: Record) -> None:
    value = load.keyword("attn_implementation", "_attn_implementation")
    if something(value):
        _put_attention(reading, value, load)
        return
    flash = load.keyword("use_flash_attention_2", "use_flash_attn")
    if flash is not None:
        _put_flash(reading, flash, load)
        return
    value = _attention_of_config(load)
    if something(value):
        _put_attention(reading, value, load)


def _put_flash(reading: Reading, value: Value, load: Record | None = None) -> None:
    """The switch that transformers 4.34 and 4.35 have alone."""
    known = operators.truth(value)
    if known is not False:
        reading.put("attention", value, load, to="flash_attention_2" if known else UNKNOWN)


def _attention_of_config(load: Record) -> Value | None:
    """What the config asks for that a model is made by: as it was set, or as it was loaded
    (``PretrainedConfig._attn_implementation`` and ``from_dict``, transformers 4.46)."""
    given = load.value(0, "config") if load.name in ("from_config", "_from_config") else load.keyword("config")
    for each in objects(given):
        for name in ("_attn_implementation", "attn_implementation"):
            if name in each.attributes:
                return each.attributes[name]
        if each.call is not None and each.call.name == "from_pretrained":
            return each.call.keyword("attn_implementation")
    return None


def _put_attention(reading: Reading, value: Value, load: Record | None = None) -> None:
    reading.put("attention", value, load, to=kernel_of(plain(value)))


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
