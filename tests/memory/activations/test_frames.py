"""The table of what models' classes do around their layers."""

from __future__ import annotations

import pytest

from lintfit.catalog.architectures import find
from lintfit.memory.activations.frames import FRAMES, Frame, frame
from lintfit.memory.reading.parse import spec_from_mapping


@pytest.mark.parametrize("kind", sorted(FRAMES))
def test_a_row_is_of_a_model_type_that_is_read(kind: str) -> None:
    assert find(kind) is not None or find(kind.removesuffix("_text")) is not None


def test_a_row_says_something() -> None:
    assert Frame() not in FRAMES.values()


def test_another_name_of_a_type_has_its_row() -> None:
    config = {"model_type": "xlm-roberta", "vocab_size": 1000, "hidden_size": 64, "num_hidden_layers": 1}
    facts = spec_from_mapping({"model_config": {**config, "num_attention_heads": 4, "intermediate_size": 64}}).facts
    assert frame(facts) is FRAMES["roberta"]
