"""LoRA and QLoRA in the place of full fine-tuning: another thing is trained."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lintfit.fit.options import Effect, Option, Subject, half
from lintfit.memory.tensors.frozen_parts import frozen_parts

RANK = 16
"""Adapters' rank: PEFT's and Unsloth's examples use 8 to 64; it takes megabytes whatever it is."""


def options(subject: Subject) -> Iterator[Option]:
    spec = subject.spec
    if spec.method != "full" or spec.quantization is not None or frozen_parts(spec).of_text:
        return  # who trains a part of a model has chosen what
    dtype = spec.mixed_precision if spec.mixed_precision != "no" else half(subject)
    changes: dict[str, Any] = {
        "method": "lora",
        "lora_rank": RANK,
        "lora_targets": "all-linear",
        "weights_dtype": dtype,
    }
    if spec.reference_model:
        changes["reference_model"] = False  # the model with its adapters switched off is one
    trained = "adapters are trained and saved (at a higher learning rate), the model stays frozen"
    yield Option("LoRA", changes, Effect.ADAPTERS, trained, kind="LoRA")
    quantized = f"{trained} and is rounded to four bits"
    yield Option("QLoRA", {**changes, "quantization": "nf4-double"}, Effect.ADAPTERS, quantized, kind="QLoRA")
