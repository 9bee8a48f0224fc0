"""An attention kernel that does not keep the score matrix."""

from __future__ import annotations

from collections.abc import Iterator

from lintfit.fit.options import Effect, Option, Subject

WITHOUT_SDPA = frozenset({"bloom", "codegen", "gemma2", "gpt_neo", "gpt_oss", "gptj", "mpt"})
WITHOUT_FLASH = frozenset({"bloom", "codegen", "mllama", "mpt"})
"""``model_type`` of models whose class has ``_supports_sdpa`` or ``_supports_flash_attn`` False (transformers 5.23)."""

IN_TRANSFORMERS_ONLY = frozenset(
    {"baichuan", "chatglm", "deepseek", "internlm", "internlm2", "minicpm", "minicpmv", "mt5", "orion", "qwen", "t5"}
    | {"umt5"}
)
"""Models with code of their own (or without a choice), where the argument may mean nothing."""


def options(subject: Subject) -> Iterator[Option]:
    """SDPA for eager attention; FlashAttention 2 where the card and the dtype can do it and a mask or window is in
    SDPA's way (without one, SDPA runs the same kernel)."""
    spec = subject.spec
    kind = spec.facts.model_type
    if kind in IN_TRANSFORMERS_ONLY or not spec.facts.exact or spec.attention == "flash_attention_2":
        return
    if spec.attention == "eager" and kind not in WITHOUT_SDPA:
        note = "attention in another kernel (rounding differs)"
        yield Option("sdpa attention", {"attention": "sdpa"}, Effect.NUMERICS, note)
    masked = spec.padded_batches or spec.facts.sliding_window is not None
    if kind not in WITHOUT_FLASH and _flash(subject) and (spec.attention == "eager" or masked):
        note = "attention in another kernel (rounding differs); needs the package flash-attn"
        yield Option("FlashAttention 2", {"attention": "flash_attention_2"}, Effect.NUMERICS, note)


def _flash(subject: Subject) -> bool:
    """Whether FlashAttention 2 runs here: Ampere and up, in 16 bits."""
    gpu, spec = subject.spec.gpu, subject.spec
    halved = spec.weights_dtype != "fp32" or spec.mixed_precision != "no"
    return gpu is not None and gpu.flash_attention_2 is True and halved
