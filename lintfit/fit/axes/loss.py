"""A loss that never holds all logits."""

from __future__ import annotations

from collections.abc import Iterator

from lintfit.fit.options import Effect, Option, Subject
from lintfit.memory.spec import Spec
from lintfit.run.model import Run
from lintfit.run.versions import before

LIGER = frozenset(
    {
        "deepseek_v2", "deepseek_v3", "exaone4", "falcon_h1", "gemma", "gemma2", "gemma3", "gemma3_text", "glm4",
        "glm4v", "glm4v_moe", "gpt_oss", "internvl", "llama", "llama4", "llama4_text", "llava", "ministral", "mistral",
        "mixtral", "mllama", "nemotron", "olmo2", "olmo3", "paligemma", "phi3", "pixtral", "qwen2", "qwen2_5_vl",
        "qwen2_vl", "qwen3", "qwen3_5", "qwen3_5_moe", "qwen3_5_moe_text", "qwen3_5_text", "qwen3_moe", "qwen3_next",
        "qwen3_vl", "qwen3_vl_moe", "smollm3", "smolvlm",
    }
)  # fmt: skip
"""``model_type`` of the models whose loss liger-kernel 0.8.5 fuses by default (``MODEL_TYPE_TO_APPLY_LIGER_FN`` in its
``transformers/monkey_patch.py``; granite's is patched without the fused loss)."""


def has_liger(run: Run, spec: Spec) -> bool:
    """Whether a flag gives this model Liger's loss: transformers' ``use_liger_kernel``, since 4.45."""
    return spec.facts.model_type in LIGER and before(run.versions.get("transformers"), "4.45") is not True


def options(subject: Subject) -> Iterator[Option]:
    """Only where the trainer can do so: transformers since 4.45, TRL's SFT trainer in chunks from 1.8 on."""
    run, spec = subject.run, subject.spec
    if spec.loss != "full" or spec.trainer != "causal-lm" or run.recipe is not None:
        return
    arguments = run.script.facts.training_arguments if run.script is not None else None
    if run.script is not None and arguments is None:
        return
    note = "the same loss in another kernel (rounding differs); needs the package liger-kernel"
    if has_liger(run, spec):
        yield Option("Liger's fused loss", {"loss": "liger"}, Effect.NUMERICS, note)
    sft = arguments is not None and arguments.name == "SFTConfig" and spec.method == "full"
    if sft and before(run.versions.get("trl"), "1.8") is not True:
        yield Option("a chunked loss", {"loss": "chunked"}, Effect.NUMERICS, "the same loss, chunk by chunk")
