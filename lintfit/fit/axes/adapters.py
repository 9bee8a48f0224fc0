"""LoRA and QLoRA in the place of full fine-tuning: another thing is trained. Of adapters, a reference model of its own
beside them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lintfit.fit.options import Effect, Option, Subject, half
from lintfit.memory.tensors.frozen_parts import frozen_parts

RANK = 16
"""Adapters' rank: PEFT's and Unsloth's examples use 8 to 64; it takes megabytes whatever it is."""


def options(subject: Subject) -> Iterator[Option]:
    spec = subject.spec
    if spec.method == "lora":
        yield from _without_reference(subject)
        return
    if frozen_parts(spec).of_text:
        return  # who trains a part of a model has chosen what
    dtype = spec.mixed_precision if spec.mixed_precision != "no" else half(subject)
    if dtype == "bf16":
        dtype = half(subject)
    changes: dict[str, Any] = {
        "method": "lora",
        "lora_rank": RANK,
        "lora_targets": "all-linear",
        "weights_dtype": dtype,
    }
    if spec.reference_model:
        changes["reference_model"] = False  # the model with its adapters switched off is one
    if spec.quantization is not None:
        # They do not train (transformers ``validate_quantization_for_training``); what is in few bits stays so.
        del changes["weights_dtype"]
    trained = "adapters are trained and saved (at a higher learning rate), the model stays frozen"
    yield Option("LoRA", changes, Effect.ADAPTERS, trained, kind="LoRA")
    if spec.quantization is not None:
        return
    quantized = f"{trained} and is rounded to four bits"
    yield Option("QLoRA", {**changes, "quantization": "nf4-double"}, Effect.ADAPTERS, quantized, kind="QLoRA")


def _without_reference(subject: Subject) -> Iterator[Option]:
    """The model with its adapters switched off is a reference; somebody hands over another one, maybe of another
    checkpoint."""
    if subject.spec.reference_model:
        note = "the reference is the base of the adapters: the same only where both are one checkpoint"
        yield Option("no second reference model", {"reference_model": False}, Effect.NUMERICS, note)
