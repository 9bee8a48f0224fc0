"""Which micro-batches share the form of a layer."""

from __future__ import annotations

import pytest

from lintfit.memory.activations.profile import _form, _How
from lintfit.memory.activations.recipe import of
from lintfit.memory.reading.parse import spec_from_mapping


@pytest.mark.parametrize(
    ("model", "attention", "shared"),
    [("gpt2", "sdpa", True), ("gpt2", "eager", False), ("EleutherAI/gpt-j-6b", "sdpa", False)],
)
def test_one_sequence_and_several_share_a_form_unless_the_layer_asks(model: str, attention: str, shared: bool) -> None:
    spec = spec_from_mapping({"model": model, "attention": attention})
    one, several = (
        _form(spec.facts, of(spec), 0, _How(2, True, False, False, batched, False)) for batched in (False, True)
    )
    assert (one is several) is shared
