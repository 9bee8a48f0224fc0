"""What a spec may not say: settings that contradict each other, as one line that names key, value and remedy."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from lintfit.catalog.facts import ModelFacts
from lintfit.errors import LintfitError
from lintfit.memory.spec import SCORING
from lintfit.settings.registry import SPLITS

IMAGES_BESIDE = frozenset({"mllama"})
"""Model types whose images add nothing to the sequence."""


class SpecError(LintfitError):
    """A spec that cannot be estimated. The message is one line: the key, its value, and what is allowed."""


def consistent(values: Mapping[str, Any], facts: ModelFacts) -> None:
    """Raise :class:`SpecError` for the first settings that contradict each other."""
    _ranks(values, facts)
    _engine(values)
    _trainer(values)
    _evaluation(values)
    images = values.get("images") or 0
    if images > values["seq_len"] and facts.model_type not in IMAGES_BESIDE:
        raise SpecError(f"images: {images} need a token each, seq_len is {values['seq_len']}")
    _experts(values, facts)
    if values.get("quantization") and values.get("method", "full") == "full":
        raise SpecError(
            f"quantization: '{values['quantization']}' weights cannot be trained with method 'full'; use 'lora'"
        )


def _ranks(values: Mapping[str, Any], facts: ModelFacts) -> None:
    """How the GPUs divide a model, a sequence, or experts."""
    ranks, nodes = values.get("gpus", 1), values.get("nodes", 1)
    if nodes > ranks:
        raise SpecError(f"nodes: {nodes} is more than gpus ({ranks}), which counts the GPUs of all nodes")
    if values.get("pipeline_parallel", 1) > facts.layers:
        pipeline = values["pipeline_parallel"]
        raise SpecError(f"pipeline_parallel: {pipeline} is more than the model's {facts.layers} layers")
    product = _split(values)
    if ranks % product:
        raise SpecError(f"gpus: {ranks} is no multiple of {' x '.join(SPLITS)} ({product})")
    if ranks % values.get("expert_parallel", 1):
        raise SpecError(f"gpus: {ranks} is no multiple of expert_parallel ({values['expert_parallel']})")
    unshared = unshared_experts(facts, values.get("expert_parallel", 1))
    if unshared:
        raise SpecError(f"expert_parallel: {unshared}")


def _split(values: Mapping[str, Any]) -> int:
    """Ranks that hold a model and a sequence together."""
    return math.prod(values.get(key, 1) for key in SPLITS)


def _engine(values: Mapping[str, Any]) -> None:
    """What only one engine knows."""
    engine = values["engine"]
    if values.get("zero_stage") and engine != "deepspeed":
        raise SpecError(f"zero_stage: {values['zero_stage']} needs engine 'deepspeed', the spec says '{engine}'")
    if values.get("fsdp") is not None and engine != "fsdp":
        raise SpecError(f"fsdp: needs engine 'fsdp', the spec says '{engine}'")
    if values.get("gradient_as_bucket_view") and engine != "ddp":
        raise SpecError(f"gradient_as_bucket_view: true needs engine 'ddp', the spec says '{engine}'")
    for key in ("offload_optimizer", "offload_param"):
        if values.get(key, "none") != "none" and engine != "deepspeed":
            raise SpecError(f"{key}: '{values[key]}' needs engine 'deepspeed', the spec says '{engine}'")
    if engine == "single" and values.get("gpus", 1) > 1:
        ranks = values["gpus"]
        raise SpecError(f"engine: 'single' runs on one GPU, gpus is {ranks}; use 'ddp', 'deepspeed' or 'fsdp'")


def _trainer(values: Mapping[str, Any]) -> None:
    """What TRL's trainers cannot do, and rollouts longer than a sequence."""
    product = _split(values)
    if values.get("trainer") == "ppo" and product > 1:
        raise SpecError(f"trainer: 'ppo' splits no model over GPUs, the spec does so {product} times")
    generation, longest = values.get("generation"), values["seq_len"]
    if generation is not None and generation.completion_len > longest:
        raise SpecError(
            f"generation.completion_len: {generation.completion_len} is more than seq_len ({longest}), which counts "
            "prompt and completion"
        )


def _evaluation(values: Mapping[str, Any]) -> None:
    """What only an evaluation that generates has, and what cannot generate."""
    evaluation, trainer = values.get("evaluation"), values.get("trainer")
    if evaluation is None:
        return
    for key in ("prompt_len", "new_tokens"):
        size = getattr(evaluation, key)
        if size is not None and not evaluation.generates:
            raise SpecError(f"evaluation.{key}: {size} needs evaluation.generates, true or 'only'")
    if evaluation.generates and trainer in SCORING:
        raise SpecError(f"evaluation.generates: a model with scores generates nothing, trainer is '{trainer}'")
    images = values.get("images") or 0
    if evaluation.prompt_len is not None and images > evaluation.prompt_len:
        raise SpecError(f"evaluation.prompt_len: {evaluation.prompt_len} has no room for {images} images")


def _experts(values: Mapping[str, Any], facts: ModelFacts) -> None:
    """What quantises experts that are one parameter: bitsandbytes, where there are such."""
    if not values.get("quantized_experts"):
        return
    if facts.moe is None:
        raise SpecError(f"quantized_experts: {facts.name or facts.model_type} has no experts")
    if not (values.get("quantization") or "").startswith(("nf4", "int8")):
        raise SpecError("quantized_experts: true needs quantization 'nf4', 'nf4-double' or 'int8'")


def unshared_experts(facts: ModelFacts, ranks: int) -> str:
    """Why ranks cannot share a model's experts, or nothing: each gets the same number of whole ones."""
    if ranks == 1:
        return ""
    if facts.moe is None:
        return f"{ranks} needs a model with experts; {facts.name or facts.model_type} has none"
    return f"{ranks} does not divide the model's {facts.moe.experts} experts" if facts.moe.experts % ranks else ""
