"""The model of an ms-swift run: which it is, its dtype, and what of it trains where it sees images."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from lintfit.catalog import swift
from lintfit.catalog.facts import ModelFacts
from lintfit.catalog.quantized import by_name
from lintfit.documents.numerals import natural
from lintfit.settings.model import AUTO, UNKNOWN, Provenance, Setting, is_count
from lintfit.sources.recipes.keys import Stated
from lintfit.sources.recipes.swift_arguments import SwiftArguments, as_mapping
from lintfit.sources.recipes.vision import facts_of, frozen_parts, linear_of_language, sees
from lintfit.sources.training_words import dtype_of


def model(arguments: SwiftArguments) -> Setting | None:
    """The model's name; that of the Hugging Face Hub where ms-swift says that it is called otherwise there."""
    found = arguments.stated("model", "model_id_or_path")
    if found is None:
        kind = arguments.stated("model_type") if not arguments.since(3) else None
        if kind is None or not isinstance(kind.value, str):
            return None
        return kind.setting("model", swift.of_type(kind.value) or UNKNOWN)
    if not isinstance(found.value, str):
        return found.setting("model", UNKNOWN)
    return found.setting("model", known_as(found.value))


@lru_cache(maxsize=256)
def known_as(name: str) -> str:
    """A model's name as the catalogue knows it, else as it is."""
    there, facts = swift.on_the_hub(name), facts_of(name)
    return there if there is not None and (facts is None or facts.larger is not None) else name


def precision(arguments: SwiftArguments, name: Setting | None) -> Iterator[Setting]:
    """The dtype that the model is loaded in, and of the mixed precision that follows from it.

    ``_init_mixed_precision`` trains a float32 and a float16 model in float16 (ms-swift 3 and 4). ms-swift 2 takes
    bfloat16 whatever the checkpoint has, and loads a model that trains whole in float16 as float32
    (``ArgumentsBase.select_dtype``).
    """
    if arguments.since(3):
        yield from _by_checkpoint(arguments, name)
        return
    found = arguments.get("dtype")
    dtype = UNKNOWN if found is None else "bf16" if found.value == "AUTO" else found.value
    if found is None or dtype not in ("bf16", "fp16", "fp32"):
        provenance = found.provenance if found is not None else arguments.by_default
        yield Setting("weights_dtype", UNKNOWN, provenance)
        return
    weights = "fp32" if dtype == "fp16" and arguments.value("sft_type") == "full" else dtype
    yield found.setting("weights_dtype", weights)
    for half in ("bf16", "fp16"):
        yield found.setting(half, dtype == half)


def _by_checkpoint(arguments: SwiftArguments, name: Setting | None) -> Iterator[Setting]:
    found = arguments.stated("torch_dtype")
    dtype = dtype_of(found.value) if found is not None else None
    if found is not None and dtype not in (None, "auto"):
        yield found.setting("weights_dtype", dtype)
        taken, why = dtype, found.provenance
    else:
        facts = facts_of(name.value) if name is not None and isinstance(name.value, str) else None
        why = Provenance("derived", "that of the checkpoint, which torch_dtype leaves as it is")
        yield Setting("weights_dtype", AUTO, arguments.by_default)
        taken = (facts.checkpoint_dtype or "bf16") if facts is not None else UNKNOWN
    known = taken in ("bf16", "fp16", "fp32")
    for half, on in (("bf16", taken == "bf16"), ("fp16", taken in ("fp16", "fp32"))):
        stated = arguments.stated(half)
        if stated is not None and stated.value not in (None, "None"):
            yield stated.setting(half, stated.value)
        else:
            yield Setting(half, on if known else UNKNOWN, why)


def quantization(arguments: SwiftArguments, name: Setting | None) -> Setting:
    """What the base is quantised to as it loads: by ``quant_method`` alone (``get_quantization_config``).

    ms-swift 2 takes bitsandbytes for 4 and 8 bits where no method is named.
    """
    method, bits = arguments.get("quant_method"), arguments.get("quant_bits", "quantization_bit")
    stated = method if method is not None and method.value not in (None, "None") else None
    if stated is None and not arguments.since(3) and bits is not None and bits.value in (4, 8):
        return bits.setting("quantization", _bnb(arguments, bits.value))
    if stated is None:
        if not arguments.complete:
            return Setting("quantization", UNKNOWN, Provenance("derived", "the file that names it is not read"))
        stored = by_name(name.value) if name is not None and isinstance(name.value, str) else None
        if stored is not None and name is not None:
            why = Provenance("derived", "the checkpoint's name says that it is quantized", name.provenance.place)
            return Setting("quantization", stored.method or UNKNOWN, why)
        return Setting("quantization", None, Provenance("derived", "no quant_method is named"))
    if stated.value == "bnb" and bits is not None:
        return stated.setting("quantization", _bnb(arguments, bits.value))
    return stated.setting("quantization", UNKNOWN)


def _bnb(arguments: SwiftArguments, bits: Any) -> Any:
    if bits == 8:
        return "int8"
    if bits != 4:
        return UNKNOWN
    nested = arguments.value("bnb_4bit_use_double_quant")
    return UNKNOWN if nested is UNKNOWN else "nf4-double" if nested else "nf4"


_TOKENS: Mapping[str, int] = {"IMAGE_MAX_TOKEN_NUM": 32 * 32}
"""Variables that bound an image by its tokens, and the pixels of a token (Qwen3-VL's 16 x 16 patches, four to each)."""


def pixels(arguments: SwiftArguments) -> Setting | None:
    """Pixels that are left of an image at most: by ``MAX_PIXELS``, by tokens, or by ``max_pixels``.

    ``model_kwargs`` becomes such variables, too (``BaseArguments._init_model_kwargs``).
    """
    found: list[Setting] = []
    stated = arguments.stated("max_pixels")
    if stated is not None and is_count(stated.value):
        found.append(stated.setting("image_max_pixels", stated.value))
    handed = arguments.stated("model_kwargs")
    given = as_mapping(handed.value) if handed is not None else None
    if handed is not None and given is not None and is_count(given.get("max_pixels")):
        found.append(handed.setting("image_max_pixels", given["max_pixels"]))
    for name, each in {"MAX_PIXELS": 1, **_TOKENS}.items():
        variable = arguments.environment.get(name)
        if variable is not None and (count := natural(variable.value)):
            found.append(Setting("image_max_pixels", count * each, variable.provenance))
    return min(found, key=lambda setting: int(setting.value), default=None)


def frozen(arguments: SwiftArguments, facts: ModelFacts) -> Setting | None:
    """What full fine-tuning leaves as it is of a model with encoders (``TunerArguments._init_multimodal_full``)."""
    told = {name: arguments.get(name) for name in ("freeze_vit", "freeze_aligner", "freeze_llm")}
    if not arguments.since(3):
        told["freeze_aligner"] = None
    parts = frozen_parts(facts, *(_on(told[name]) for name in ("freeze_vit", "freeze_aligner", "freeze_llm")))
    stated = next((each for each in told.values() if each is not None and each.provenance.kind == "file"), None)
    provenance = stated.provenance if stated is not None else arguments.by_default
    return Setting("frozen_modules", parts, provenance) if parts else None


def targets(arguments: SwiftArguments, facts: ModelFacts | None) -> Setting | None:
    """The modules with adapters: of a model with encoders ``all-linear`` takes those of the language model alone,
    unless the encoders are not to be frozen (``get_multimodal_target_regex``)."""
    found = arguments.get("target_regex")
    if found is not None and found.value not in (None, "", "None"):
        return found.setting("lora_targets", UNKNOWN)
    found = arguments.get("target_modules", "lora_target_modules")
    if found is None:
        return None
    named = found.value if isinstance(found.value, list) else [found.value]
    if any(not isinstance(each, str) for each in named):
        return found.setting("lora_targets", UNKNOWN)
    if "all-linear" in named or "ALL" in named:
        if not sees(facts) or facts is None:
            return found.setting("lora_targets", "all-linear" if len(named) == 1 else UNKNOWN)
        return found.setting("lora_targets", _of_language(arguments, facts) if len(named) == 1 else UNKNOWN)
    if not {"DEFAULT", "AUTO", "EMBEDDING", "all-embedding"}.isdisjoint(named):
        return found.setting("lora_targets", UNKNOWN)
    return found.setting("lora_targets", tuple(named))


def _of_language(arguments: SwiftArguments, facts: ModelFacts) -> Any:
    """All linear layers of the language model by their whole names, which no encoder's have."""
    if not arguments.since(3):
        return "all-linear"
    switches = [arguments.value(name) for name in ("freeze_vit", "freeze_aligner", "freeze_llm")]
    if switches != [True, True, False]:
        return "all-linear" if switches == [False, False, False] else UNKNOWN
    return linear_of_language(facts) or "all-linear"


def _on(found: Stated | None) -> bool:
    return found is not None and found.value is True


_WIDTHS: Mapping[str, str] = {"adapter": "adapter_length", "bone": "reft_rank", "reft": "reft_rank"}
"""Of tuners that are smaller than LoRA of a rank the argument that says it (``swift/pipelines/train/tuner.py``)."""


def width(arguments: SwiftArguments, tuner: str) -> Iterator[Setting]:
    """How many numbers a tuner makes of each hidden state, where it keeps less than LoRA of such a rank."""
    found = arguments.get(_WIDTHS[tuner]) if tuner in _WIDTHS else None
    if found is not None:
        yield found.setting("tuner_width", found.value)
