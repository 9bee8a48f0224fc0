"""Models that lie on the GPU beside the trained one and are only asked (:class:`.spec.FrozenModel`)."""

from __future__ import annotations

from lintfit.memory.spec import FrozenModel, Spec
from lintfit.memory.tensors.parameters import inventory


def weight_bytes(each: FrozenModel) -> int:
    """Bytes of the weights of one of them, as loaded."""
    return inventory(
        Spec(
            facts=each.facts,
            weights_dtype=each.weights_dtype,
            quantization=each.quantization,
            trainer="classification" if each.scores else "causal-lm",
        )
    ).bytes


def name_of(each: FrozenModel) -> str:
    """What a report calls one of them."""
    return each.facts.name or each.facts.model_type
