"""An attention kernel that does not keep the score matrix."""

from __future__ import annotations

from collections.abc import Iterator

from lintfit.catalog.attention import CHOOSES, has_flash, has_sdpa
from lintfit.fit.options import Effect, Option, Subject
from lintfit.frozen import replace
from lintfit.memory.activations.recipe import attention_of
from lintfit.memory.versions import release, transformers_version
from lintfit.run.plain_entry import plain_entry


def options(subject: Subject) -> Iterator[Option]:
    """SDPA for eager attention; FlashAttention 2 where the GPU and the dtype can do it and a mask, a window or
    the model's heads are in SDPA's way (else SDPA runs the same kernel). SDPA leaves a soft cap of the scores out.

    Where FlashAttention is asked for or put in and the GPUs are older than it runs on, no plan goes without another
    kernel."""
    spec = subject.spec
    code, running = spec.facts.code, attention_of(spec)
    version, torch = transformers_version(spec), release(spec.versions.get("torch"))
    if version >= CHOOSES and _stops(subject):
        note = "the GPUs cannot run FlashAttention 2: attention in another kernel (rounding differs)"
        for kernel in ("sdpa", "eager"):
            yield Option(f"{kernel} attention", {"attention": kernel}, Effect.NUMERICS, note, must=True)
        return
    if _puts_in(subject):
        kernel = attention_of(replace(spec, attention="sdpa", stated=spec.stated - {"attention"}))
        note = "the GPUs cannot run FlashAttention: transformers' own attention (rounding differs)"
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


def _puts_in(subject: Subject) -> bool:
    """Whether GPUs that are older than it would run FlashAttention that the launched file puts in, and another file
    beside it does not."""
    gpu, run = subject.spec.gpu, subject.run
    old = gpu is not None and gpu.flash_attention_2 is False
    own = run.settings.get("own_attention") if old and "attention" not in run.settings else None
    patched = own is not None and any(kernel == "flash_attention_2" for kernel, _ in own.value.values())
    return patched and plain_entry(run) is not None


def _flash(subject: Subject) -> bool:
    """Whether FlashAttention 2 runs here: Ampere and up, in 16 bits."""
    gpu, spec = subject.spec.gpu, subject.spec
    halved = spec.weights_dtype != "fp32" or spec.mixed_precision != "no"
    return gpu is not None and gpu.flash_attention_2 is True and halved
