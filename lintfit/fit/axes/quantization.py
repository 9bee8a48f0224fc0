"""The frozen base of a LoRA in four bits: it is not the same model any more, which only evaluation can judge."""

from __future__ import annotations

from collections.abc import Iterator

from lintfit.fit.options import Effect, Option, Subject


def options(subject: Subject) -> Iterator[Option]:
    spec = subject.spec
    if spec.method != "lora" or spec.quantization is not None or spec.zero_stage == 3 or spec.engine == "fsdp":
        return
    note = "the frozen weights are rounded to four bits"
    for name, value in (("nf4 weights", "nf4"), ("nf4 weights, double-quantized", "nf4-double")):
        yield Option(name, {"quantization": value}, Effect.ROUNDED_BASE, note, kind="nf4")
