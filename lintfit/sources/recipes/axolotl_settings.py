"""The settings that follow from axolotl's config: model, adapters, precision, batch, checkpointing, loss, optimizer.

Read in axolotl 0.18.0, and by release from 0.5.0 on: ``utils/config/__init__.py`` (``normalize_config``),
``loaders/model.py``, ``loaders/adapter.py``, ``core/builders/base.py``, ``causal.py`` and ``rl.py``, ``train.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lintfit.catalog.quantized import by_name
from lintfit.settings.model import UNKNOWN, Provenance, Setting
from lintfit.sources.recipes.axolotl_config import ADAPTERS, Config
from lintfit.sources.recipes.axolotl_engine import asks_for_fsdp, fsdp_config
from lintfit.sources.recipes.axolotl_frozen import frozen_modules
from lintfit.sources.recipes.axolotl_loss import accumulation, evaluation, loss
from lintfit.sources.recipes.keys import Stated
from lintfit.sources.recipes.trainer import resumes
from lintfit.versions import before

TRAINERS: Mapping[str, str] = {
    "dpo": "dpo",
    "ipo": "dpo",
    "kto": "kto",
    "orpo": "orpo",
    "simpo": "cpo",
    "grpo": "grpo",
    "gdpo": "grpo",
}
"""TRL's trainers by axolotl's ``rl``; that of ``ebft`` is axolotl's own."""

OPTIMIZERS: Mapping[str, str] = {
    "optimi_adamw": "adamw_torch",
    "ao_adamw_8bit": "adamw_torch_8bit",
    "ao_adamw_4bit": "adamw_torch_4bit",
    "adopt_adamw": "adamw_torch",
}
"""axolotl's own names of optimizers by transformers' name of one with the same states (``_configure_optimizer``)."""

_OWN = frozenset({
    "ao_adamw_fp8", "came_pytorch", "dion", "sinkgd", "flash_adamw", "flash_adam", "flash_sgd", "flash_sgdw",
    "flash_lion", "q_galore_adamw8bit",
})  # fmt: skip
"""Its other optimizers (``CustomSupportedOptimizers``), whose states are none that are counted."""

_NUMBERS: Mapping[str, str] = {
    name: name for name in ("learning_rate", "adam_beta1", "adam_beta2", "adam_epsilon", "weight_decay", "warmup_steps")
}
_SHAPE = frozenset({
    "hidden_size", "intermediate_size", "num_attention_heads", "num_experts", "num_hidden_layers",
    "num_key_value_heads", "num_local_experts", "vocab_size",
})  # fmt: skip
"""Keys of a model's config that make another model of it."""
_GEMMA_4 = "gemma-4"


def settings(config: Config) -> Iterator[Setting]:
    """All but engines and the number of processes."""
    yield from _model(config)
    yield from _precision(config)
    yield from _method(config)
    yield from _trainer(config)
    yield from _batch(config)
    yield from _checkpointing(config)
    yield from loss(config)
    yield _optimizer(config)
    yield from evaluation(config)
    resumed = config.get("resume_from_checkpoint")
    if resumes(resumed.value):
        yield resumed.setting("resumes", True)
    compiled = config.get("torch_compile")
    if compiled.value:
        yield compiled.setting("torch_compile", True if compiled.value is not UNKNOWN else UNKNOWN)


def _model(config: Config) -> Iterator[Setting]:
    found = config.get("base_model")
    known = isinstance(found.value, str) and not _reshaped(config)
    yield found.setting("model", found.value if known else UNKNOWN)
    processor = config.get("processor_type")
    if not processor.value:  # only the collator of a processor hands on images (``build_collator``)
        yield Setting("images", 0, Provenance("derived", "no processor_type: text alone", found.provenance.place))
    yield config.attention()


def _reshaped(config: Config) -> bool:
    """Whether the recipe changes the shape of the model that it names."""
    for key in ("overrides_of_model_config", "model_config"):
        value = config.value(key)
        if isinstance(value, Mapping) and _SHAPE.intersection(value):
            return True
    return False


def _precision(config: Config) -> Iterator[Setting]:
    yield _prepared_dtype(config) or config.dtype()
    bf16, fp16, by = config.half()
    own = config.get("bfloat16")
    if config.truth("fp8") is not False:
        yield config.get("fp8").setting("bf16", UNKNOWN)
    elif bf16 == "full":
        yield by.setting("bf16", False)
    elif not bf16 and own.value:
        yield own.setting("bf16", own.value if own.value is UNKNOWN else True)
    else:
        yield by.setting("bf16", bf16)
    yield by.setting("fp16", fp16)


def _prepared_dtype(config: Config) -> Setting | None:
    """float32 where LoRA is asked for beside ``load_in_4bit``: nothing is quantized then, and PEFT's
    ``prepare_model_for_kbit_training``, which runs all the same, casts every half-precision weight
    (``_prepare_model_for_quantization``). Norms, embeddings and head are cast back.

    It is left out under FSDP that loads efficiently, and under ZeRO-3.
    """
    four = config.get("load_in_4bit")
    if config.adapter != "lora" or four.value is not True or config.get("load_in_8bit").value is not False:
        return None
    if hands_bits_on(config) or config.get("deepspeed").value or asks_for_fsdp(config) is not None:
        return None
    model = config.get("base_model").value
    stored = by_name(model) if isinstance(model, str) else None
    return four.setting("weights_dtype", "fp32") if stored is None else None


# -- what trains ----------------------------------------------------------------------------------------------------


def _method(config: Config) -> Iterator[Setting]:
    found = config.get("adapter")
    if config.plugin("HatcheryPlugin"):
        # It hands every batch to a service, which trains a model that is not here.
        yield config.get("plugins").setting("method", UNKNOWN)
        return
    if not found.value:
        yield from _whole(config, found)
        return
    yield found.setting("method", "lora" if found.value in ADAPTERS else UNKNOWN)
    yield from _quantization(config)
    if found.value not in ADAPTERS:
        return
    yield config.number("lora_rank", "lora_r")
    dropout = config.get("lora_dropout")
    yield dropout.setting("lora_dropout", 0.0 if dropout.value is None else dropout.value)
    yield _targets(config)
    saved = config.get("lora_modules_to_save")
    if saved.value:
        yield saved.setting("lora_modules_to_save", saved.value)
    yield _adapter_dtype(config)
    if config.get("peft_use_dora").value:
        yield config.setting("use_dora", "peft_use_dora")


def _whole(config: Config, adapter: Stated) -> Iterator[Setting]:
    """Full fine-tuning, of everything or of the parameters whose names fit ``unfrozen_parameters``."""
    unread = adapter.value is UNKNOWN
    yield adapter.setting("method", UNKNOWN if unread else "full")
    yield from _quantization(config)
    kept = config.get("unfrozen_parameters")
    if kept.value:
        names = frozen_modules(kept.value)
        yield kept.setting("frozen_modules", ("*",) if names is None else names)
        yield kept.setting("partly_frozen", True)
    elif config.truth("freeze_mm_modules"):
        yield config.get("freeze_mm_modules").setting("frozen_modules", ("vision_tower", "multi_modal_projector"))


def _quantization(config: Config) -> Iterator[Setting]:
    """bitsandbytes as ``_set_quantization_config`` asks for it, else what the checkpoint's name says."""
    adapter, four, eight = config.get("adapter"), config.get("load_in_4bit"), config.get("load_in_8bit")
    model = config.get("base_model")
    stored = by_name(model.value) if isinstance(model.value, str) else None
    if adapter.value in ADAPTERS and stored is not None:
        why = "the checkpoint's name says that it is quantized"
        yield Setting("quantization", stored.method or UNKNOWN, Provenance("derived", why, model.provenance.place))
    elif adapter.value == "qlora" and four.value:
        yield from _quantized(config, four, _four_bits(config))
    elif adapter.value == "lora" and eight.value:
        yield from _quantized(config, eight, "int8")
    elif adapter.value == "lora" and four.value and eight.value is not UNKNOWN and hands_bits_on(config):
        yield from _quantized(
            config, four, "nf4"
        )  # transformers' default, fp4 without double quantization, is as large
    elif config.truth("gptq") is not False or adapter.value is UNKNOWN:
        yield (config.get("gptq") if adapter.value is not UNKNOWN else adapter).setting("quantization", UNKNOWN)
    elif config.get("model_quantization_config").value:
        own = config.get("model_quantization_config")
        whole = config.inner("model_quantization_config_kwargs", "dequantize")
        yield own.setting("quantization", None if whole is not None and whole.value is True else UNKNOWN)
    else:
        why = "no adapter that quantizes is asked for"
        yield Setting("quantization", None, Provenance("derived", why, adapter.provenance.place))


_ONLY_QLORA = "0.13"
"""The first axolotl that quantizes to four bits for ``qlora`` alone (#3205); from 0.4.0 to 0.12.2 ``load_in_4bit`` went
to ``from_pretrained`` where no other quantization was asked for."""


def hands_bits_on(config: Config) -> bool:
    """Whether it is an axolotl that loads in four bits whatever adapter stands beside it."""
    return before(config.range.newest, _ONLY_QLORA) is True


def _quantized(config: Config, by: Stated, kind: Any) -> Iterator[Setting]:
    """What bitsandbytes makes of the base; norms, embeddings and head are cast back to its dtype afterwards."""
    yield by.setting("quantization", UNKNOWN if by.value is UNKNOWN else kind)
    yield by.setting("kbit_upcast", "none")
    experts = config.get("quantize_moe_experts")
    if experts.value:
        yield experts.setting("quantized_experts", experts.value)


def _four_bits(config: Config) -> Any:
    """nf4 with double quantization, unless ``bnb_config_kwargs`` says otherwise; fp4 differs in its code alone."""
    nested = config.inner("bnb_config_kwargs", "bnb_4bit_use_double_quant")
    if nested is None or nested.value is True:
        return "nf4-double"
    return "nf4" if nested.value is False else UNKNOWN


def _targets(config: Config) -> Setting:
    linear, modules = config.get("lora_target_linear"), config.get("lora_target_modules")
    if config.get("lora_target_parameters").value:
        return config.get("lora_target_parameters").setting("lora_targets", UNKNOWN)
    if linear.value is True:
        return linear.setting("lora_targets", "all-linear")
    value = modules.value
    if linear.value is UNKNOWN or not value:
        return (linear if linear.value is UNKNOWN else modules).setting("lora_targets", UNKNOWN)
    return modules.setting("lora_targets", tuple(value) if isinstance(value, list) else value)


def _adapter_dtype(config: Config) -> Setting:
    """PEFT makes adapters of a half precision float32 unless it is told not to (``autocast_adapter_dtype``)."""
    found = config.get("peft_autocast_adapter_dtype")
    if found.value is None or found.value is True:
        return Setting("lora_dtype", "fp32", Provenance.default("PEFT's default: autocast_adapter_dtype"))
    dtype = config.dtype()
    return found.setting("lora_dtype", dtype.value if found.value is False else UNKNOWN)


def _trainer(config: Config) -> Iterator[Setting]:
    rl, name = config.get("rl"), ""
    if rl.value:
        yield rl.setting("trainer", TRAINERS.get(str(rl.value), UNKNOWN))
        name = str(rl.value)
    elif config.get("reward_model").value:
        yield config.get("reward_model").setting("trainer", "reward")
    elif config.get("process_reward_model").value:
        yield config.get("process_reward_model").setting("trainer", "classification")
    else:
        yield Setting("trainer", "causal-lm", Provenance("derived", "AxolotlTrainer trains a causal language model"))
    yield _reference(config, rl)
    if name in ("grpo", "gdpo"):
        yield from _rollouts(config)


def _reference(config: Config, rl: Stated) -> Setting:
    """A second, frozen copy of the model (``setup_reference_model`` of ``axolotl/train.py``)."""
    needed: Any = False
    if rl.value is UNKNOWN:
        return rl.setting("reference_model", UNKNOWN)
    beta = config.inner("trl", "beta")
    if not rl.value or rl.value in ("orpo", "simpo"):
        why = "no reference model is needed"
    elif config.adapter and not config.truth("rl_adapter_ref_model"):
        why = "the adapter is switched off for it"
    elif rl.value in ("grpo", "gdpo", "ebft") and (beta is None or not beta.value):
        why = "beta is 0"
    else:
        needed, why = True, f"rl: {rl.value} without an adapter loads the model twice"
    return Setting("reference_model", needed, Provenance("derived", why, rl.provenance.place))


def _rollouts(config: Config) -> Iterator[Setting]:
    """What ``trl`` and ``vllm`` say of GRPO's generations."""
    for name in ("num_generations", "max_completion_length", "use_vllm", "vllm_mode", "beta"):
        found = config.inner("trl", name)
        if found is not None and found.value is not None:
            yield found.setting(name, found.value)
    share = config.inner("vllm", "gpu_memory_utilization")
    if share is not None:
        yield share.setting("vllm_gpu_memory_utilization", share.value)
    sleeps = config.inner("trl", "vllm_enable_sleep_mode")
    if sleeps is not None:
        yield sleeps.setting("vllm_enable_sleep_mode", sleeps.value)


# -- a step ---------------------------------------------------------------------------------------------------------


def _length(config: Config) -> Setting:
    """``sequence_len``; the collator of a model with pictures cuts no sample (``utils/collators/mm_chat.py``)."""
    found, sees = config.number("seq_len", "sequence_len"), config.get("processor_type")
    if not sees.value:
        return found
    why = "samples with pictures are not cut: sequence_len is what they may have"
    return Setting("seq_len", found.value, Provenance("assumed", why, found.provenance.place))


def _batch(config: Config) -> Iterator[Setting]:
    yield config.number("micro_batch_size", "micro_batch_size")
    yield accumulation(config)
    yield _length(config)
    packs = config.get("sample_packing")
    yield packs.setting("packing", packs.value if packs.value is UNKNOWN else bool(packs.value))
    if config.truth("pad_to_sequence_len") is not False:
        yield config.setting("pads_to_length", "pad_to_sequence_len")
    if packs.value is True and config.attention().value == "flash_attention_2":
        yield packs.setting("padded_batches", False)
    norm = config.get("max_grad_norm")
    if norm.value is None:
        yield Setting("max_grad_norm", 1.0, Provenance.default("transformers' default"))
    else:
        yield config.number("max_grad_norm", "max_grad_norm")
    for name, key in _NUMBERS.items():
        if config.get(key).value is not None:
            yield config.setting(name, key)


def _checkpointing(config: Config) -> Iterator[Setting]:
    """Gradient checkpointing, by the recipe or by FSDP, and whether its inputs are moved to the host.

    ``unsloth``, ``offload`` and ``offload_disk`` in its place offload as well.
    """
    found, by_fsdp = config.get("gradient_checkpointing"), fsdp_config(config, "activation_checkpointing")
    moved, selective = config.get("activation_offloading"), config.get("selective_checkpointing")
    on: Any = found.value if found.value is UNKNOWN else bool(found.value)
    wraps = on is False and by_fsdp is not None and bool(by_fsdp.value)
    if wraps and by_fsdp is not None:
        found, on = by_fsdp, by_fsdp.value if by_fsdp.value is UNKNOWN else True
    if on is True and selective.value:
        yield selective.setting("gradient_checkpointing", "selective")
    else:
        yield found.setting("gradient_checkpointing", on)
    if isinstance(found.value, str):
        yield found.setting("activation_offload", True)
    else:
        yield moved.setting("activation_offload", moved.value if moved.value is UNKNOWN else bool(moved.value))
    if wraps:
        yield found.setting("use_reentrant", False)  # Accelerate's own wrapper
    elif on is False:
        yield Setting("use_reentrant", False, Provenance("derived", "nothing is recomputed"))
    else:
        yield _reentrant(config)


def _reentrant(config: Config) -> Setting:
    """True only where nothing is said of it: without kwargs, ``rl`` and ``unfrozen_parameters`` (``normalize_config``).

    Kwargs that leave it out leave it to torch, which takes true; Gemma 4 gets false whatever is asked.
    """
    name, kwargs = "use_reentrant", config.get("gradient_checkpointing_kwargs")
    model = config.get("base_model").value
    if isinstance(model, str) and _GEMMA_4 in model.lower() and config.range.all_since("0.17"):
        return Setting(name, False, Provenance("derived", "axolotl switches it off for Gemma 4"))
    asked = config.inner("gradient_checkpointing_kwargs", name)
    if asked is not None:
        return asked.setting(name, asked.value)
    if kwargs.value is not None:
        return kwargs.setting(name, True if isinstance(kwargs.value, Mapping) else UNKNOWN)
    plain = config.get("rl").value is None and config.get("unfrozen_parameters").value is None
    beside = "" if plain else " with rl or unfrozen_parameters"
    return Setting(name, plain, Provenance.default(f"axolotl {config.range.newest} default{beside}"))


def _optimizer(config: Config) -> Setting:
    found = config.get("optimizer")
    known = isinstance(found.value, str) and found.value not in _OWN
    return found.setting("optimizer", OPTIMIZERS.get(found.value, found.value) if known else UNKNOWN)
