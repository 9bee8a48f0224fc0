"""What LLaMA-Factory makes of the model: its dtype, what trains, the kernels, and the models beside it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lintfit.catalog.facts import ModelFacts
from lintfit.catalog.quantized import by_name
from lintfit.settings.model import AUTO, UNKNOWN, Provenance, Setting
from lintfit.sources.recipes import vision
from lintfit.sources.recipes.llamafactory_arguments import LlamaFactoryArguments

_KERNELS = {"fa2": "flash_attention_2", "sdpa": "sdpa", "disabled": "eager", "fa3": "flash_attention_2"}
"""FlashAttention 3 saves what the second version saves."""
_LOSSES = {"orpo": "orpo", "simpo": "cpo"}
"""Whose step a ``pref_loss`` is, where not DPO's; SimPO is a loss of CPO's trainer."""
_TRAINERS = {"pt": "causal-lm", "sft": "causal-lm", "rm": "reward", "ppo": "ppo", "kto": "kto"}


def facts_of(model: Setting | None) -> ModelFacts | None:
    return vision.facts_of(model.value) if model is not None and isinstance(model.value, str) else None


def precision(arguments: LlamaFactoryArguments, zero3: bool | None) -> Iterator[Setting]:
    """The dtype of the weights, and of the adapters: what trains is cast to float32 (``adapter.py:init_adapter``),
    unless the run is of pure bfloat16, of BAdam, or under ZeRO-3, which holds float32 itself.

    The checkpoint is loaded in its own dtype (``loader.py``; up to 0.9.3 in the dtype that is computed in).
    """
    found = arguments.get("finetuning_type")
    pure = arguments.get("pure_bf16")
    why = Provenance.default("LLaMA-Factory loads the checkpoint in its own dtype")
    if found is None or pure is None:
        yield Setting("weights_dtype", UNKNOWN, why)
        return
    halves = pure.value is True or arguments.value("use_badam") is True
    unknown = UNKNOWN in (pure.value, found.value) or zero3 is None
    casts = not halves and (not zero3 or arguments.value("quantization_bit") is not None)
    cast = Provenance("derived", "LLaMA-Factory casts what trains to float32")
    if found.value == "full":
        value = UNKNOWN if unknown and not halves else "fp32" if casts else AUTO
        yield Setting("weights_dtype", value, cast if casts else why)
    else:
        yield Setting("weights_dtype", AUTO, why)
        if casts and not unknown:
            yield Setting("lora_dtype", "fp32", cast)


def quantization(arguments: LlamaFactoryArguments, model: Setting | None) -> Iterator[Setting]:
    """What the base is quantised to as it loads (``model_utils/quantization.py``); norms stay as they are."""
    bits, method = arguments.get("quantization_bit"), arguments.get("quantization_method")
    if bits is None:
        yield Setting("quantization", UNKNOWN, Provenance("derived", "the file that says it is not read"))
        return
    if bits.value is None:
        stored = by_name(model.value) if model is not None and isinstance(model.value, str) else None
        if stored is not None and model is not None:
            why = Provenance("derived", "the checkpoint's name says that it is quantized", model.provenance.place)
            yield Setting("quantization", stored.method or UNKNOWN, why)
        else:
            yield bits.setting("quantization", None)
        return
    by_bnb = method is not None and method.value in ("bnb", "bitsandbytes")  # the latter up to 0.9.1
    yield bits.setting("quantization", _bnb(arguments, bits.value) if by_bnb else UNKNOWN)
    upcast = arguments.get("upcast_layernorm")
    if upcast is not None:
        yield upcast.setting("kbit_upcast", "norms" if upcast.value is True else "none")


def _bnb(arguments: LlamaFactoryArguments, bits: Any) -> Any:
    if bits == 8:
        return "int8"
    if bits != 4:
        return UNKNOWN
    nested = arguments.value("double_quantization")
    return UNKNOWN if nested is UNKNOWN else "nf4-double" if nested else "nf4"


def method(arguments: LlamaFactoryArguments, facts: ModelFacts | None) -> Iterator[Setting]:
    """How the model is trained."""
    found = arguments.get("finetuning_type")
    if found is None:
        yield Setting("method", UNKNOWN, Provenance("derived", "the file that says it is not read"))
    elif found.value == "full":
        yield found.setting("method", "full")
        yield from _frozen(arguments, facts)
    elif found.value == "lora":
        yield found.setting("method", "lora")
        yield from _lora(arguments, facts)
    elif found.value == "freeze":
        layers = arguments.get("freeze_trainable_layers")
        yield found.setting("method", "full")
        yield found.setting("partly_frozen", True)
        if layers is not None:
            yield layers.setting("frozen_modules", (f"all but {layers.value} layers",))
    else:
        yield found.setting("method", UNKNOWN)
        if isinstance(found.value, str):
            yield found.setting("uncounted", f"the parameters of {found.value}")


def _lora(arguments: LlamaFactoryArguments, facts: ModelFacts | None) -> Iterator[Setting]:
    for setting, name in (("lora_rank", "lora_rank"), ("lora_dropout", "lora_dropout"), ("use_dora", "use_dora")):
        found = arguments.get(name)
        if found is not None:
            yield found.setting(setting, found.value)
    targets = arguments.get("lora_target")
    if targets is not None:
        yield targets.setting("lora_targets", _targets(arguments, targets.value, facts))
    saved = arguments.get("additional_target")
    if saved is not None and saved.value:
        named = saved.value.split(",") if isinstance(saved.value, str) else saved.value
        known = isinstance(named, list) and all(isinstance(each, str) for each in named)
        value = tuple(each.strip() for each in named) if known else UNKNOWN
        yield saved.setting("lora_modules_to_save", value)
    if arguments.value("use_llama_pro") is True:
        yield Setting("uncounted", "the blocks that LLaMA Pro adds", Provenance("derived", "use_llama_pro"))


def _targets(arguments: LlamaFactoryArguments, value: Any, facts: ModelFacts | None) -> Any:
    """``all``: the linear layers, of a model that sees those of the language model alone unless its encoders train."""
    named = [each.strip() for each in value.split(",")] if isinstance(value, str) else value
    if not isinstance(named, list) or not all(isinstance(each, str) for each in named):
        return UNKNOWN
    if named != ["all"]:
        return tuple(named)
    if facts is None or not vision.sees(facts):
        return "all-linear"
    switches = [
        arguments.value(f"freeze_{part}") for part in ("vision_tower", "multi_modal_projector", "language_model")
    ]
    if switches == [True, True, False]:
        return vision.linear_of_language(facts) or UNKNOWN
    return "all-linear" if switches == [False, False, False] else UNKNOWN


def _frozen(arguments: LlamaFactoryArguments, facts: ModelFacts | None) -> Iterator[Setting]:
    """What full fine-tuning leaves as it is of a model that sees (``visual.py:get_forbidden_modules``)."""
    if facts is None or not vision.sees(facts):
        return
    switches = [arguments.get(f"freeze_{part}") for part in ("vision_tower", "multi_modal_projector", "language_model")]
    encoders, aligners, language = (each is not None and each.value is True for each in switches)
    parts = vision.frozen_parts(facts, encoders, aligners, language)
    stated = next((each for each in switches if each is not None and each.provenance.kind == "file"), switches[0])
    if parts and stated is not None:
        yield stated.setting("frozen_modules", parts)


def attention(arguments: LlamaFactoryArguments, facts: ModelFacts | None) -> Iterator[Setting]:
    """The kernel; ``auto`` leaves transformers its choice. Pixels of an image are bounded beside it."""
    found = arguments.get("flash_attn")
    if found is not None and found.value == "auto":
        yield Setting("attention", "sdpa", Provenance.default("transformers takes sdpa where nothing is asked for"))
    elif found is not None:
        yield found.setting("attention", _KERNELS.get(str(found.value), UNKNOWN))
    pixels = arguments.get("image_max_pixels")
    if pixels is not None and vision.sees(facts):
        yield pixels.setting("image_max_pixels", pixels.value)


def optimizer(arguments: LlamaFactoryArguments) -> Iterator[Setting]:
    """Optimizers of LLaMA-Factory's own (``train/trainer_utils.py``), in place of ``optim``."""
    for name in ("galore", "apollo"):
        asked = arguments.stated(f"use_{name}")
        if asked is not None and asked.value is True:
            layerwise = arguments.value(f"{name}_layerwise") is True
            yield asked.setting("optimizer", f"{name}_adamw{'_layerwise' * layerwise}")
    for name, called in (("use_badam", "badam"), ("use_muon", "muon"), ("use_adam_mini", "adam_mini")):
        asked = arguments.stated(name)
        if asked is not None and asked.value is True:
            yield asked.setting("optimizer", called)


_OTHER_WAYS = {
    "fp8": "what training in fp8 holds",
    "use_kt": "what KTransformers leaves on the GPU",
    "mixture_of_depths": "what a mixture of depths adds",
    "use_hyper_parallel": "what HyperParallel shards",
    "use_unsloth": "what Unsloth's kernels hold",
    "pipeline_model_parallel_size": "what Megatron holds",
    "tensor_model_parallel_size": "what Megatron holds",
}
"""Keys that hand the training to somebody else, whose memory is not modelled."""


def elsewhere(arguments: LlamaFactoryArguments) -> str | None:
    """What is not counted where somebody else's code trains; None where LLaMA-Factory's own does."""
    for name, what in _OTHER_WAYS.items():
        found = arguments.stated(name)
        if found is not None and found.value not in (None, False):
            return what
    environment = arguments.keys.launch.environment
    switches = (environment.get(name, "0").lower() for name in ("USE_MCA", "USE_MEGATRON_BRIDGE"))
    return "what Megatron holds" if any(switch in ("1", "true", "y") for switch in switches) else None


def kernels(arguments: LlamaFactoryArguments) -> Iterator[Setting]:
    """Liger's loss, which needs no logits; the stages that look at them get the rest of its kernels alone."""
    liger = arguments.get("enable_liger_kernel")
    if liger is not None and liger.value is UNKNOWN:
        yield liger.setting("loss", UNKNOWN)
    elif liger is not None and liger.value is True and arguments.value("stage") in ("pt", "sft"):
        yield liger.setting("loss", "liger")
    else:
        yield Setting("loss", "full", Provenance.default("the model's own loss"))


def stage(arguments: LlamaFactoryArguments) -> Iterator[Setting]:
    """Whose step it is, and the models beside the one that trains."""
    found = arguments.get("stage")
    if found is None:
        yield Setting("trainer", UNKNOWN, Provenance("derived", "the file that says it is not read"))
        return
    loss = arguments.get("pref_loss")
    if found.value == "dpo" and loss is not None:
        asked = loss if loss.value in _LOSSES else found
        yield asked.setting("trainer", _LOSSES.get(str(loss.value), "dpo"))
    else:
        yield found.setting("trainer", _TRAINERS.get(str(found.value), UNKNOWN))
    yield from _beside(arguments, str(found.value), loss.value if loss is not None else None)


def _beside(arguments: LlamaFactoryArguments, kind: str, loss: Any) -> Iterator[Setting]:
    """The reference model (``create_ref_model``): one that is named, else a copy of a model that trains whole."""
    named, tuned = arguments.stated("ref_model"), arguments.value("finetuning_type")
    if kind not in ("dpo", "kto", "ppo") or (kind == "dpo" and loss in _LOSSES):
        yield Setting("reference_model", False, Provenance("derived", f"the stage {kind} needs none"))
    elif named is not None and named.value is not None:
        yield named.setting("frozen_models", ({"model": named.value if isinstance(named.value, str) else None},))
        yield named.setting("reference_model", False)
    else:
        whole = UNKNOWN if tuned is UNKNOWN else tuned != "lora"
        why = "a copy of the model" if whole is True else "the adapter is switched off for it"
        yield Setting("reference_model", whole, Provenance("derived", why))
    reward = arguments.stated("reward_model")
    if kind == "ppo" and reward is not None and arguments.value("reward_model_type") == "full":
        yield reward.setting("reward_model", reward.value if isinstance(reward.value, str) else UNKNOWN)
