"""Which mixed precision a run has: a Trainer's arguments, DeepSpeed's blocks, Accelerate's file or the script."""

from __future__ import annotations

from collections.abc import Mapping

from lintfit.catalog.facts import Gpu
from lintfit.frozen import replace
from lintfit.run.precedence import Sources, default, derived, first
from lintfit.settings.model import AUTO, BY_CARD, UNKNOWN, Provenance, Setting


def mixed_precision(sources: Sources, settings: Mapping[str, Setting]) -> Setting | None:
    """What the training computes in: ``bf16``, ``fp16``, ``no``, or what none of the files can tell."""
    argument = _precision_arguments(sources)
    environment = sources.first("mixed_precision", "launch", "accelerate")
    in_code = sources.said("script", "mixed_precision")
    stated = in_code or environment or (argument if argument is not None and argument.value != "no" else None)
    if sources.missing_yaml is not None and sources.deepspeed is None and stated is None:
        return Setting("mixed_precision", UNKNOWN, sources.missing_yaml.provenance)
    if settings["engine"].value == "deepspeed" and sources.deepspeed is not None:
        return _deepspeed_precision(sources, argument, in_code, environment)
    if sources.uses_trainer:
        if argument is not None and argument.value == "no" and argument.provenance.kind == "default":
            return first("mixed_precision", environment, argument)
        if argument is None and environment is not None and _partly_read(sources):
            return _unless_said(environment)
        return first("mixed_precision", argument, environment)
    if in_code is None and environment is not None and sources.launch is not None and not sources.training_is_read:
        return _unless_said(environment)
    return first("mixed_precision", in_code, environment) or argument


def _unless_said(environment: Setting) -> Setting:
    """The launcher's precision where a trainer's arguments that are not known may say another."""
    why = "the training's own arguments are not known; without a precision among them the launcher's holds"
    provenance = Provenance("assumed", why, environment.provenance.place)
    return Setting(environment.name, environment.value, provenance, (environment,))


def _partly_read(sources: Sources) -> bool:
    """Whether the trainer's arguments may say more than is known of them: a config file that is not at hand."""
    made = sources.script.facts.training_arguments if sources.script is not None else None
    return made is not None and made.spreads


def _precision_arguments(sources: Sources) -> Setting | None:
    """``bf16`` and ``fp16`` of TrainingArguments as one setting; None where there are no such arguments."""
    bf16, fp16 = sources.said("script", "bf16"), sources.said("script", "fp16")
    for name, flag in (("bf16", bf16), ("fp16", fp16)):
        if flag is not None and flag.value is True:
            return Setting("mixed_precision", name, flag.provenance)
    for flag in (bf16, fp16):
        if flag is not None and flag.value is UNKNOWN:
            return Setting("mixed_precision", UNKNOWN, flag.provenance)
    stated = next((flag for flag in (bf16, fp16) if flag is not None and flag.provenance.kind == "file"), bf16 or fp16)
    return Setting("mixed_precision", "no", stated.provenance) if stated is not None else None


def _deepspeed_precision(
    sources: Sources, argument: Setting | None, in_code: Setting | None, environment: Setting | None
) -> Setting:
    bf16, fp16 = sources.said("deepspeed", "bf16"), sources.said("deepspeed", "fp16")
    others = (argument, in_code, environment)
    for name, block in (("bf16", bf16), ("fp16", fp16)):
        if block is not None and block.value is True:
            return Setting("mixed_precision", name, block.provenance).over(*others)
    for block in (bf16, fp16):
        if block is not None and block.value is UNKNOWN:
            return Setting("mixed_precision", UNKNOWN, block.provenance)
    outside = argument if sources.uses_trainer else first("mixed_precision", in_code, environment)
    if outside is not None and outside.value in ("bf16", "fp16"):
        block = bf16 if outside.value == "bf16" else fp16
        if block is None or block.value is AUTO:
            return Setting("mixed_precision", outside.value, outside.provenance).over(block)
    if outside is not None and outside.value is UNKNOWN:
        return outside
    block = next((b for b in (bf16, fp16) if b is not None), None)
    if sources.launch is not None and not sources.training_is_read and AUTO in (b.value for b in (bf16, fp16) if b):
        return derived("mixed_precision", UNKNOWN, "the training that fills in auto is not read", block)
    if block is not None:
        why = "neither bf16 nor fp16 is switched on"
        return (
            Setting("mixed_precision", "no", block.provenance).over(*others)
            if block.value is False
            else derived("mixed_precision", "no", why, block, *others)
        )
    return default("mixed_precision", "no", "DeepSpeed's default without a bf16 or fp16 block").over(*others)


_NO_BF16 = Provenance("derived", "unsloth takes float16 on a GPU without bfloat16")
_NOT_IN_FLOAT16 = frozenset(
    {"gemma3", "gemma3_text", "gemma3n", "gemma4", "gemma4_text", "glm4_moe", "gpt_oss", "qwen3_5"}
)
"""Models that Unsloth trains in float32 where it would take float16 (``FORCE_FLOAT32`` in ``unsloth/models/loader.py``
of August 2026, Gemma 3 since March 2025): they overflow."""


def without_overflow(settings: dict[str, Setting], model_type: str | None) -> dict[str, Setting]:
    """The settings where Unsloth switches to float32 for a model that cannot work in float16.

    Its trainer then has no autocast (``force_float32`` in ``unsloth/models/rl.py``), and compiled modules cast as they
    see fit: what the weights and activations are held in is not known.
    """
    if model_type not in _NOT_IN_FLOAT16:
        return settings
    why = Provenance("derived", f"unsloth trains {model_type} in float32 on a GPU without bfloat16")
    values = {"mixed_precision": "no", "weights_dtype": UNKNOWN}
    taken = {n: s for n, s in settings.items() if n in values and s.provenance is _NO_BF16}
    return settings | {name: replace(s, value=values[name], provenance=why) for name, s in taken.items()}


def on_card(settings: dict[str, Setting], gpu: Gpu | None) -> dict[str, Setting]:
    """The settings with the half precision that the GPU has, where the library takes that: once the GPU is known, they
    are no assumption."""
    chosen = {n: s for n, s in settings.items() if s.value == "bf16" and s.provenance.detail == BY_CARD}
    if gpu is None or gpu.native_bf16 is None or not chosen:
        return settings
    if gpu.native_bf16 is False:
        return settings | {n: replace(s, value="fp16", provenance=_NO_BF16) for n, s in chosen.items()}
    return settings | {n: replace(s, provenance=Provenance("derived", BY_CARD)) for n, s in chosen.items()}
