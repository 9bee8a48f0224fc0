"""An attention kernel that does not keep the score matrix."""

from __future__ import annotations

from collections.abc import Iterator

from lintfit.catalog.attention import CHOOSES, has_flash, has_sdpa
from lintfit.fit.options import Effect, Option, Subject
from lintfit.memory.activations.recipe import attention_of
from lintfit.memory.versions import release, transformers_version


def options(subject: Subject) -> Iterator[Option]:
    """SDPA for eager attention; FlashAttention 2 where the GPU and the dtype can do it and a mask, a window or
    the model's heads are in SDPA's way (else SDPA runs the same kernel). SDPA leaves a soft cap of the scores out.

    Where FlashAttention 2 is asked for and the GPUs are older than it runs on, no plan goes without another kernel."""
    spec = subject.spec
    code, running = spec.facts.code, attention_of(spec)
    version, torch = transformers_version(spec), release(spec.versions.get("torch"))
    if version >= CHOOSES and _stops(subject):
        note = "the GPUs cannot run FlashAttention 2: attention in another kernel (rounding differs)"
        for kernel in ("sdpa", "eager"):
            yield Option(f"{kernel} attention", {"attention": kernel}, Effect.NUMERICS, note, must=True)
        return
    if not code.chooses_kernel or not spec.facts.exact or running == "flash_attention_2":
        return
    if version < CHOOSES:  # there is nothing to tell it by
        return
    if running == "eager" and has_sdpa(code, version, torch) and spec.facts.attention_softcap is None:
        note = "attention in another kernel (rounding differs)"
        yield Option("sdpa attention", {"attention": "sdpa"}, Effect.NUMERICS, note)
    masked = spec.padded_batches or spec.facts.sliding_window is not None or code.sdpa_leaves_scores
    if has_flash(code, version) and _flash(subject) and (running == "eager" or masked):
        note = "attention in another kernel (rounding differs); needs the package flash-attn"
        yield Option("FlashAttention 2", {"attention": "flash_attention_2"}, Effect.NUMERICS, note)


def _stops(subject: Subject) -> bool:
    """Whether FlashAttention 2 is asked for on GPUs that are older than it."""
    gpu, stated = subject.spec.gpu, subject.run.settings.get("attention")
    old = gpu is not None and gpu.flash_attention_2 is False
    return old and stated is not None and stated.value == "flash_attention_2"


def _flash(subject: Subject) -> bool:
    """Whether FlashAttention 2 runs here: Ampere and up, in 16 bits."""
    gpu, spec = subject.spec.gpu, subject.spec
    halved = spec.weights_dtype != "fp32" or spec.mixed_precision != "no"
    return gpu is not None and gpu.flash_attention_2 is True and halved
