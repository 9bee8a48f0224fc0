"""Whose step a LLaMA-Factory run has, how long its sequences are, and what is recomputed.

Read in LLaMA-Factory 0.2.0 to 0.9.6: ``train/*/workflow.py``, ``train/trainer_utils.py``, ``hparams/parser.py``,
``hparams/data_args.py``, ``data/processor`` and ``model/model_utils`` (``attention.py``, ``checkpointing.py``,
``liger_kernel.py``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lintfit.settings.model import UNKNOWN, Provenance, Setting, is_count
from lintfit.settings.uncounted import VALUE_HEAD
from lintfit.sources.recipes import llamafactory_engine as engine
from lintfit.sources.recipes.keys import Stated
from lintfit.sources.recipes.llamafactory_arguments import LlamaFactoryArguments
from lintfit.sources.recipes.llamafactory_model import known
from lintfit.sources.recipes.trainer import evaluation_of
from lintfit.sources.training_words import STRATEGIES

_TRAINERS: Mapping[str, str] = {
    "pt": "causal-lm", "sft": "causal-lm", "rm": "reward", "dpo": "dpo", "kto": "kto", "orpo": "orpo",
}  # fmt: skip
"""Whose step each stage is; ``orpo`` is a stage of 0.6.2 to 0.7.1."""
_LOSSES: Mapping[str, str] = {"orpo": "orpo", "simpo": "cpo"}
"""The same of losses of stage ``dpo`` that need no reference (``use_ref_model``)."""
KERNELS: Mapping[str, str] = {
    "fa2": "flash_attention_2", "fa3": "flash_attention_2", "sdpa": "sdpa", "disabled": "eager", "off": "eager"
}  # fmt: skip
"""Attention kernels by ``flash_attn``'s words; FlashAttention 3 saves what 2 saves."""
_PACKS = ("pt", "sft")
_WITHOUT_LABELS = "0.9.2"
"""The first version whose ``CustomSeq2SeqTrainer.prediction_step`` keeps the labels from a model that generates, which
so makes no logits of whole samples. Its samples are prompts (``do_generate`` in ``data/loader.py``)."""


def trainer(arguments: LlamaFactoryArguments) -> Iterator[Setting]:
    """Whose step it is, and the models beside the one that is trained."""
    stage, loss = arguments.found("stage"), arguments.value("pref_loss")
    kind: Any = _TRAINERS.get(str(stage.value), UNKNOWN)
    if stage.value == "dpo":
        kind = UNKNOWN if loss is UNKNOWN else _LOSSES.get(str(loss), kind)
    # Policy, value head and a reward model that is an adapter share one model: no trainer that is counted does so.
    yield stage.setting("trainer", kind)
    if stage.value in ("rm", "ppo"):
        yield stage.setting("uncounted", VALUE_HEAD)
    yield from _beside(arguments, stage)


def _beside(arguments: LlamaFactoryArguments, stage: Stated) -> Iterator[Setting]:
    """The frozen copy of ``create_ref_model``: of a model that trains whole, or another one by its name."""
    tuning, named, loss = (arguments.found(name) for name in ("finetuning_type", "ref_model", "pref_loss"))
    asked = arguments.on("use_asft_loss") or stage.value in ("ppo", "kto")
    asked = asked or (stage.value == "dpo" and loss.value not in _LOSSES)
    if not asked:
        why = Provenance("derived", f"stage {stage.value} needs none")
        yield Setting("reference_model", UNKNOWN if stage.value is UNKNOWN else False, why)
    elif isinstance(named.value, str):
        bits = arguments.value("ref_model_quantization_bit")
        entry = {"model": named.value, **({"quantization": "nf4-double"} if bits == 4 else {})}
        yield named.setting("frozen_models", (entry,))
        yield named.setting("reference_model", False)
    else:
        whole: Any = UNKNOWN if tuning.value is UNKNOWN else tuning.value != "lora"
        why_not = "a copy of the model that trains whole" if whole else "the adapter is switched off for it"
        yield Setting("reference_model", whole, Provenance("derived", why_not, tuning.provenance.place))


# -- a step ---------------------------------------------------------------------------------------------------------


def batch(arguments: LlamaFactoryArguments) -> Iterator[Setting]:
    """Sequences: how long, and whether several are put into one."""
    stage, packs = arguments.found("stage"), packing(arguments)
    yield packs
    cut = arguments.found("cutoff_len")
    value: Any = cut.value if is_count(cut.value) else UNKNOWN
    stated = arguments.value("packing", "sft_packing") is True or arguments.on("neat_packing")
    if stated and stage.value == "pt" and arguments.since("0.9.3") and value is not UNKNOWN:
        value -= 1  # DataArguments.__post_init__ takes a token off, which only SFT's packing puts back
    yield cut.setting("seq_len", value)
    if packs.value is True and arguments.value("flash_attn") in ("fa2", True) and arguments.on("neat_packing"):
        yield Setting("padded_batches", False, packs.provenance)


def packing(arguments: LlamaFactoryArguments) -> Setting:
    """Whether several samples share a row: where it is said, and in pretraining."""
    stage, neat = arguments.found("stage"), arguments.get("neat_packing")
    found = arguments.get("packing", "sft_packing")
    if stage.value is UNKNOWN:
        return stage.setting("packing", UNKNOWN)
    if stage.value not in _PACKS:
        return Setting("packing", False, Provenance("derived", f"stage {stage.value} packs nothing"))
    if neat is not None and neat.value is True:
        return neat.setting("packing", True)
    if found is not None and found.value is not None and (stage.value == "sft" or "packing" in arguments.keys):
        return found.setting("packing", found.value)
    return Setting("packing", stage.value == "pt", Provenance.default("LLaMA-Factory packs for stage pt alone"))


def attention(arguments: LlamaFactoryArguments) -> Setting:
    """The kernel by ``flash_attn``; ``auto`` leaves it to transformers, which takes sdpa."""
    found = arguments.found("flash_attn")
    if found.value is UNKNOWN:
        return found.setting("attention", UNKNOWN)
    if found.value is True:
        return found.setting("attention", "flash_attention_2")
    if found.value in (None, False, "auto"):
        return Setting("attention", "sdpa", Provenance.default("transformers takes sdpa where nothing is asked for"))
    return found.setting("attention", KERNELS.get(str(found.value), UNKNOWN))


def checkpointing(arguments: LlamaFactoryArguments) -> Iterator[Setting]:
    """On unless ``disable_gradient_checkpointing`` says otherwise (``prepare_model_for_training``).

    The Trainer's own ``gradient_checkpointing: true`` switches it on all the same.
    """
    off, own = arguments.found("disable_gradient_checkpointing"), arguments.stated("gradient_checkpointing")
    facts, unsloth = known(arguments), arguments.stated("use_unsloth", "use_unsloth_gc")
    never = facts is not None and facts.model_type in ("gemma3n", "gemma3n_text") and arguments.since("0.9.4")
    name = "gradient_checkpointing"
    if own is not None and own.value is True and (off.value is True or never):
        yield own.setting(name, True)
    elif never:
        yield Setting(name, False, Provenance("derived", "LLaMA-Factory switches it off for Gemma 3n"))
        return
    else:
        yield off.setting(name, UNKNOWN if off.value is UNKNOWN else off.value is not True)
    if off.value is True and (own is None or own.value is not True):
        return
    if unsloth is not None and unsloth.value is True:
        yield unsloth.setting("activation_offload", True)
    yield _reentrant(arguments)


def _reentrant(arguments: LlamaFactoryArguments) -> Setting:
    found = arguments.found("use_reentrant_gc")
    if engine.is_fsdp_2(arguments) and arguments.since("0.9.4"):
        return Setting("use_reentrant", False, Provenance("derived", "LLaMA-Factory switches it off under FSDP 2"))
    if found.value is None:
        return Setting("use_reentrant", True, arguments.by_default)
    return found.setting("use_reentrant", found.value)


def loss(arguments: LlamaFactoryArguments) -> Setting:
    """Liger's loss without logits for stages pt and sft (``require_logits``); Unsloth's own, which is not counted."""
    found, stage = arguments.found("enable_liger_kernel"), arguments.value("stage")
    unsloth, own = arguments.stated("use_unsloth"), arguments.stated("use_liger_kernel")
    if unsloth is not None and unsloth.value is not False:
        return unsloth.setting("loss", UNKNOWN)
    if own is not None and own.value is True:
        return own.setting("loss", "liger")
    if found.value is UNKNOWN or (found.value is True and stage is UNKNOWN):
        return found.setting("loss", UNKNOWN)
    if found.value is True and stage in _PACKS:
        return found.setting("loss", "liger")
    return Setting("loss", "full", Provenance.default("transformers' loss over all logits"))


def optimizer(arguments: LlamaFactoryArguments) -> Setting:
    """transformers' ``optim``, or one of ``create_custom_optimizer``."""
    base = arguments.found("optim")
    for name in ("galore", "apollo"):
        asked = arguments.get(f"use_{name}")
        if asked is not None and asked.value is True:
            eight = isinstance(base.value, str) and "8bit" in base.value
            layerwise = arguments.on(f"{name}_layerwise")
            return asked.setting("optimizer", f"{name}_adamw{'_8bit' * eight}{'_layerwise' * layerwise}")
    badam = arguments.get("use_badam")
    if badam is not None and badam.value is True:
        return badam.setting("optimizer", "badam")
    for name, made in (("use_adam_mini", "adam_mini"), ("use_muon", UNKNOWN)):
        asked = arguments.get(name)
        if asked is not None and asked.value is True:
            return asked.setting("optimizer", made)
    return base.setting("optimizer", base.value if isinstance(base.value, str) else UNKNOWN)


def evaluates(arguments: LlamaFactoryArguments) -> bool:
    """Whether it evaluates between its steps, or at its end."""
    strategy = arguments.stated("eval_strategy", "evaluation_strategy")
    between = strategy is not None and str(strategy.value).lower() in STRATEGIES
    return between or arguments.on("do_eval")


def evaluation(arguments: LlamaFactoryArguments) -> Iterator[Setting]:
    """What it evaluates with; without a metric the predictions are dropped."""
    if not evaluates(arguments):
        return
    yield from evaluation_of(arguments).values()
    generates = arguments.found("predict_with_generate")
    if generates.value is True and arguments.value("stage") == "sft" and arguments.since(_WITHOUT_LABELS):
        yield generates.setting("eval_generates", "only")
        new = arguments.found("max_new_tokens")
        if is_count(new.value):
            yield new.setting("eval_new_tokens", new.value)
    elif arguments.value("stage") in _PACKS and generates.value is not True:
        kept = arguments.found("compute_accuracy")
        if kept.value in (None, False):
            yield Setting("eval_predictions", "dropped", arguments.by_default)
