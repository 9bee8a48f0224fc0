"""Which micro-batches share the form of a layer."""

from __future__ import annotations

import pytest

from lintfit.frozen import replace
from lintfit.memory.activations import profile as profiles
from lintfit.memory.activations.profile import profile
from lintfit.memory.activations.recipe import of
from lintfit.memory.reading.parse import spec_from_mapping


@pytest.mark.parametrize(
    ("model", "attention", "shared"),
    [("gpt2", "sdpa", True), ("gpt2", "eager", False), ("EleutherAI/gpt-j-6b", "sdpa", False)],
)
def test_one_sequence_and_several_share_a_form_unless_the_layer_asks(
    model: str, attention: str, shared: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = spec_from_mapping({"model": model, "attention": attention})
    fresh = replace(spec.facts, name="a model that nobody has asked for")
    made, recorded = [], profiles._recorded
    monkeypatch.setattr(profiles, "_recorded", lambda *how: made.append(how) or recorded(*how))
    for batch in (1, 2):
        profile(fresh, of(spec), batch, 512, 0, stream=2)
    assert len(made) == (1 if shared else 2)
