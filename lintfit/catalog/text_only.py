"""The language model of a vision-language model, where a class for text loads it alone."""

from __future__ import annotations

from lintfit.catalog.facts import Code, ModelFacts
from lintfit.frozen import replace


def text_only(facts: ModelFacts) -> ModelFacts:
    """A vision-language model's language model, as a class for text loads it from the same checkpoint.

    ``facts`` themselves where the language model is none that also stands alone.
    """
    if not facts.text_type:
        return facts
    tensors = tuple(
        replace(tensor, name=tensor.name.replace("model.language_model.", "model.", 1).removeprefix("language_model."))
        for tensor in facts.tensors
        if tensor.where != "vision"
    )
    note = f"the language model of {facts.name} alone, as its class for text loads it"
    return replace(
        facts,
        model_type=facts.text_type,
        tensors=tensors,
        vision=None,
        text_type="",
        text_config={},
        text_code=Code(),
        config=facts.text_config,
        code=facts.text_code,
        notes=(*facts.notes, note),
    )
