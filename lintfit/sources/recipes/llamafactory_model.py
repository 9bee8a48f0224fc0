"""The model of a LLaMA-Factory run: its dtype, its quantisation, its adapters, and what of it is frozen.

Read in LLaMA-Factory 0.2.0 to 0.9.6: ``model/adapter.py``, ``model/patcher.py``, ``model/loader.py`` and
``model/model_utils`` (``quantization.py``, ``visual.py``, ``misc.py``).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lintfit.catalog.facts import ModelFacts
from lintfit.catalog.quantized import by_name
from lintfit.settings.model import AUTO, UNKNOWN, Provenance, Setting, is_count
from lintfit.settings.uncounted import CAST_TO_FLOAT
from lintfit.sources.recipes import llamafactory_engine as engine
from lintfit.sources.recipes.keys import Stated
from lintfit.sources.recipes.llamafactory_arguments import LlamaFactoryArguments
from lintfit.sources.recipes.vision import ALIGNERS, ENCODERS, facts_of, sees

BITSANDBYTES = ("bnb", "bitsandbytes")
"""The word for bitsandbytes from 0.9.3 on, and the one before it (``QuantizationMethod``)."""
_BNB = "0.9.3"
_EMBEDDINGS = ("embed_tokens", "lm_head")
"""What is trained beside the adapters where the vocabulary was resized (``_setup_lora_tuning``)."""
ADAPTERS = ("lora",)


def known(arguments: LlamaFactoryArguments) -> ModelFacts | None:
    """What is known of the model; None where it is not known which it is."""
    name = arguments.value("model_name_or_path")
    return facts_of(name) if isinstance(name, str) else None


def model(arguments: LlamaFactoryArguments) -> Setting:
    """The model by its name."""
    found = arguments.found("model_name_or_path")
    return found.setting("model", found.value if isinstance(found.value, str) else UNKNOWN)


# -- dtype ----------------------------------------------------------------------------------------------------------


def weights(arguments: LlamaFactoryArguments) -> Iterator[Setting]:
    """The dtype that the model is loaded in; float32 where all of it is trained and cast (``init_adapter``)."""
    tuning = arguments.found("finetuning_type")
    loaded = _loaded(arguments)
    if tuning.value not in ("full", "freeze"):
        yield loaded
        return
    casts = _casts(arguments)
    if tuning.value == "freeze":
        yield loaded
        if casts is not False:
            yield tuning.setting("uncounted", CAST_TO_FLOAT)
        return
    if casts is UNKNOWN:
        yield tuning.setting("weights_dtype", UNKNOWN)
    elif casts:
        why = f"LLaMA-Factory {arguments.version} casts trained parameters to float32"
        yield Setting("weights_dtype", "fp32", Provenance("derived", why, tuning.provenance.place))
    else:
        yield loaded


def _casts(arguments: LlamaFactoryArguments) -> Any:
    """Whether trained parameters become float32 (``cast_trainable_params_to_fp32``)."""
    kept = [arguments.value(name) for name in ("pure_bf16", "use_badam")]
    if True in kept:
        return False
    if UNKNOWN in kept:
        return UNKNOWN
    if not arguments.since("0.7.1"):
        # ``model.float()`` casts what is there; of parameters that ZeRO-3 has partitioned nothing is.
        stage = engine.zero_stage(arguments)
        return UNKNOWN if UNKNOWN in (stage, engine.is_fsdp(arguments)) else stage != 3
    stage, sharded = engine.zero_stage(arguments), engine.is_fsdp(arguments)
    if arguments.since("0.9.3"):
        sharded = False  # since then FSDP's parameters are cast as well
    if not arguments.since("0.8.0"):
        deepspeed = arguments.value("deepspeed") not in (None, "")
        return False if deepspeed or sharded is True else UNKNOWN if sharded is UNKNOWN else True
    if stage == 3 or sharded is True:
        return False
    return UNKNOWN if UNKNOWN in (stage, sharded) else True


def _loaded(arguments: LlamaFactoryArguments) -> Setting:
    """The checkpoint's dtype from 0.9.4 on, else that of mixed precision; float32 under ZeRO-3 and FSDP before."""
    if arguments.since("0.9.4"):
        return Setting("weights_dtype", AUTO, Provenance.default(f'LLaMA-Factory {arguments.version}: dtype "auto"'))
    for name, dtype in (("pure_bf16", "bf16"), ("bf16", "bf16"), ("fp16", "fp16")):
        found = arguments.get(name)
        if found is None or found.value in (None, False):
            continue
        if found.value is UNKNOWN:
            return found.setting("weights_dtype", UNKNOWN)
        whole = arguments.since("0.8.0") and arguments.value("quantization_bit") is None
        sharded = engine.zero_stage(arguments) == 3 or engine.is_fsdp(arguments) is True
        return found.setting("weights_dtype", "fp32" if whole and sharded else dtype)
    return Setting("weights_dtype", AUTO, arguments.by_default)


# -- quantisation ---------------------------------------------------------------------------------------------------


def stored(arguments: LlamaFactoryArguments) -> Setting | None:
    """How the checkpoint is quantised already, by its name; this goes before ``quantization_bit``."""
    name = arguments.found("model_name_or_path")
    found = by_name(name.value) if isinstance(name.value, str) else None
    if found is None:
        return None
    why = Provenance("derived", "the checkpoint's name says that it is quantized", name.provenance.place)
    return Setting("quantization", found.method or UNKNOWN, why)


def quantization(arguments: LlamaFactoryArguments) -> Iterator[Setting]:
    """What the base is quantised to as it loads (``configure_quantization``), else what it is stored in."""
    bits, already = arguments.found("quantization_bit"), stored(arguments)
    if already is not None:
        yield already
    elif bits.value is None:
        yield Setting("quantization", None, Provenance("derived", "no quantization_bit is stated"))
        return
    else:
        yield bits.setting("quantization", _kind(arguments, bits.value))
    upcast = arguments.found("upcast_layernorm")
    if upcast.value is not UNKNOWN:
        yield upcast.setting("kbit_upcast", "norms" if upcast.value is True else "none")


def _kind(arguments: LlamaFactoryArguments, bits: Any) -> Any:
    if bits is UNKNOWN:
        return UNKNOWN
    if not by_bitsandbytes(arguments):
        return None if quantises_nothing(arguments) else UNKNOWN
    if bits == 8:
        return "int8"
    nested = arguments.value("double_quantization")
    if bits != 4 or nested is UNKNOWN:
        return UNKNOWN
    return "nf4-double" if nested else "nf4"


def by_bitsandbytes(arguments: LlamaFactoryArguments) -> bool:
    """Whether ``quantization_method`` is the word for bitsandbytes that this release compares with.

    Where nobody states the release, a recipe is taken to be one that knows the word, unless other keys of it came with
    the new word, or only the oldest release that will do is stated: an install gets the newest then.
    """
    word = arguments.value("quantization_method")
    if not arguments.since("0.8.3"):
        return True
    if not arguments.dated and word in BITSANDBYTES:
        return bool(word == BITSANDBYTES[0]) or not (arguments.floored or arguments.since(_BNB))
    return bool(word == BITSANDBYTES[0 if arguments.since(_BNB) else 1])


def quantises_nothing(arguments: LlamaFactoryArguments) -> bool:
    """Whether the word is that of the other releases, which none of the branches compares with."""
    return arguments.value("quantization_method") in BITSANDBYTES and not by_bitsandbytes(arguments)


def words_release(arguments: LlamaFactoryArguments) -> str:
    """The release that a word for bitsandbytes was compared with: as stated, else those of the new word."""
    return arguments.version if arguments.dated else f"{_BNB} and later"


# -- what is trained ------------------------------------------------------------------------------------------------


def method(arguments: LlamaFactoryArguments) -> Iterator[Setting]:
    """Full fine-tuning, of some layers or all, or adapters."""
    found = arguments.found("finetuning_type")
    match found.value:
        case "full":
            yield found.setting("method", "full")
            yield from _frozen(arguments)
        case "freeze":
            yield found.setting("method", "full")
            yield from _some_layers(arguments, found)
        case "lora":
            yield found.setting("method", "lora")
            yield from _adapters(arguments)
        case _:
            yield found.setting("method", UNKNOWN)
            if isinstance(found.value, str):
                yield found.setting("uncounted", f"the parameters of finetuning_type: {found.value}")
            if found.value == "oft" and not arguments.value("oft_rank"):
                block = arguments.found("oft_block_size")
                yield block.setting("oft_block_size", block.value if is_count(block.value) else UNKNOWN)


def _adapters(arguments: LlamaFactoryArguments) -> Iterator[Setting]:
    resumed = arguments.get("adapter_name_or_path", "checkpoint_dir")
    if resumed is not None and resumed.value and not arguments.on("create_new_adapter"):
        # The adapter that training goes on with brings its own rank and modules.
        yield resumed.setting("lora_rank", UNKNOWN)
        yield resumed.setting("lora_targets", UNKNOWN)
        return
    rank, dropout, dora = (arguments.found(name) for name in ("lora_rank", "lora_dropout", "use_dora"))
    yield rank.setting("lora_rank", rank.value if is_count(rank.value) else UNKNOWN)
    yield dropout.setting("lora_dropout", dropout.value)
    if dora.value is not None:
        yield dora.setting("use_dora", dora.value)
    yield targets(arguments)
    saved, resized = arguments.found("additional_target"), arguments.found("resize_vocab")
    if saved.value:
        yield saved.setting("lora_modules_to_save", split(saved.value))
    elif resized.value is True:
        yield resized.setting("lora_modules_to_save", _EMBEDDINGS)


def split(value: Any) -> Any:
    """The names in a text with commas, or in a list."""
    if isinstance(value, str):
        return tuple(word.strip() for word in value.split(","))
    return tuple(value) if isinstance(value, list) else UNKNOWN


def targets(arguments: LlamaFactoryArguments) -> Setting:
    """The modules with adapters; of a model that sees, those of the language model alone (``patch_target_modules``)."""
    found, facts = arguments.found("lora_target"), known(arguments)
    names = split(found.value)
    if names is UNKNOWN or arguments.value("use_llama_pro") not in (None, False):
        return found.setting("lora_targets", UNKNOWN)
    every = names == ("all",)
    if facts is None or not sees(facts) or not arguments.since("0.8.0"):
        return found.setting("lora_targets", "all-linear" if every else names)
    frozen = [part for pattern in _towers(arguments, facts) for part in (pattern,) if not part.startswith("!")]
    linear = (tensor for tensor in facts.tensors if tensor.role in ("linear", "expert") and len(tensor.shape) == 2)
    modules = dict.fromkeys(tensor.name.removesuffix(".weight") for tensor in linear if tensor.where != "head")
    chosen = tuple(
        name
        for name in modules
        if "lm_head" not in name
        and not any(f".{part}." in f".{name}." for part in frozen)
        and (every or any(target in name for target in names))
    )
    return found.setting("lora_targets", chosen or UNKNOWN)


def _frozen(arguments: LlamaFactoryArguments) -> Iterator[Setting]:
    """What full fine-tuning leaves as it is of a model that sees (``get_forbidden_modules``)."""
    facts = known(arguments)
    if facts is None or not sees(facts):
        return
    parts = _towers(arguments, facts)
    if arguments.value("freeze_language_model") is True:
        parts += [text for text in ("language_model", "lm_head", "model.layers", "embed_tokens") if _names(facts, text)]
    stated = [arguments.stated(name) for name in ("freeze_vision_tower", "freeze_multi_modal_projector")]
    by = next((each.provenance for each in stated if each is not None), arguments.by_default)
    if parts:
        yield Setting("frozen_modules", tuple(parts), by)


def _towers(arguments: LlamaFactoryArguments, facts: ModelFacts) -> list[str]:
    """The frozen parts of encoders and projectors, those that are trained after all behind a ``!``."""
    tower = arguments.value("freeze_vision_tower") is True
    projector = arguments.value("freeze_multi_modal_projector") is True
    encoders, projectors = _of(facts, ENCODERS), _of(facts, ALIGNERS)
    inside = [part for part in projectors if any(f".{part}.".startswith(f".{each}.") for each in encoders)]
    found = encoders if tower else []
    if projector:
        found += [part for part in projectors if part not in inside or not tower]
    elif tower:
        found += [f"!{part}" for part in inside]
    return found


def _of(facts: ModelFacts, names: tuple[str, ...]) -> list[str]:
    """Those of these modules that a model has, without what lies inside another of them."""
    there = [name for name in names if _names(facts, name)]
    return [
        each for each in there if not any(each != other and f".{each}.".startswith(f".{other}.") for other in there)
    ]


def _names(facts: ModelFacts, text: str) -> bool:
    return any(f".{text}." in f".{tensor.name}" for tensor in facts.tensors)


def _some_layers(arguments: LlamaFactoryArguments, by: Stated) -> Iterator[Setting]:
    """``finetuning_type: freeze`` trains the last layers, the first ones where their number is negative."""
    count = arguments.found("freeze_trainable_layers", "num_layer_trainable")
    modules = arguments.value("freeze_trainable_modules", "name_module_trainable")
    extra, facts = arguments.value("freeze_extra_modules"), known(arguments)
    plain = modules == "all" and not extra and arguments.value("use_llama_pro") in (None, False)
    yield by.setting("partly_frozen", True)
    yield count.setting("frozen_modules", all_but(facts, count.value if plain else None))


def all_but(facts: ModelFacts | None, count: Any) -> tuple[str, ...]:
    """What is frozen where only the last layers are trained, or the first ones; everything where nobody can tell."""
    stem = _layers(facts) if facts is not None else None
    if stem is None or not isinstance(count, int) or isinstance(count, bool) or not count:
        return ("*",)
    return ("*", f"!{stem}{f'[-{count}:]' if count > 0 else f'[:{-count}]'}")


def _layers(facts: ModelFacts) -> str | None:
    """The module that holds the layers (``model.layers``)."""
    found = (tensor.name for tensor in facts.tensors if tensor.where == "layer" and ".{}." in tensor.name)
    return next((name.partition(".{}.")[0] for name in found), None)


def pixels(arguments: LlamaFactoryArguments) -> Setting | None:
    """Pixels that are left of an image at most."""
    found, facts = arguments.get("image_max_pixels"), known(arguments)
    if found is None or not is_count(found.value) or (found.provenance.kind == "default" and not sees(facts)):
        return None
    return found.setting("image_max_pixels", found.value)
