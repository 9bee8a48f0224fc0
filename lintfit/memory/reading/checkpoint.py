"""What a spec's quantization is where its model is a checkpoint that is quantised already."""

from __future__ import annotations

from typing import Any

from lintfit.catalog.facts import ModelFacts, Stored
from lintfit.memory.reading.contradictions import SpecError

LEAST = "nf4-double"
"""What is taken for weights that nobody has counted: a run that does not fit even so does not fit."""


def quantize(values: dict[str, Any], model: str, facts: ModelFacts) -> None:
    """Fill in ``quantization`` and ``method`` of a spec whose model is quantised, by its name or its config.

    transformers loads such a model as it is stored whatever else is asked for, and refuses to train its weights
    (``trainer.py:validate_quantization_for_training``): what trains are adapters. Raises
    :class:`~lintfit.memory.reading.contradictions.SpecError` for a key that says otherwise.
    """
    stored = facts.stored
    if stored is None:
        return
    if "quantization" in values:
        if not _agrees(values["quantization"], stored):
            given = "null" if values["quantization"] is None else repr(values["quantization"])
            raise SpecError(
                f"quantization: {given} contradicts the model {model!r}, whose weights are {stored.kind}; leave it "
                "out, or name the model that it was quantised from"
            )
        return
    if values.get("method") == "full":
        raise SpecError(
            f"method: 'full' cannot train the {stored.kind} weights of the model {model!r}; use 'lora', or name the "
            "model that it was quantised from"
        )
    values["quantization"] = stored.method or LEAST
    values["method"] = "lora"


def _agrees(given: str | None, stored: Stored) -> bool:
    """Whether a stated quantization may be that of the checkpoint; a name does not tell whether it is nested."""
    if given is None:
        return False
    if stored.method is None:
        return not stored.kind.startswith("GPTQ") or given.startswith("gptq")
    return given == stored.method or (given.startswith("nf4") and stored.method.startswith("nf4"))
