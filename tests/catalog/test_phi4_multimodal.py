"""Phi 4 multimodal by the code beside its weights, which has adapters built in."""

from __future__ import annotations

from typing import Any

import pytest

from lintfit.catalog.config import CatalogError
from lintfit.catalog.models import from_config
from tests.catalog.small.image_encoders import PHI4_AUDIO, PHI4_VISION
from tests.catalog.small.sizes import PADDED

OWN: dict[str, Any] = {"model_type": "phi4mm", **PADDED, "vision_config": PHI4_VISION, "audio_config": PHI4_AUDIO}


def test_adapters_that_are_built_in_are_parameters_of_the_model() -> None:
    plain, both = from_config(OWN), from_config({**OWN, "vision_lora": {"r": 8}, "speech_lora": {"r": 4}})
    hidden, wide, inner, layers = 64, 64 + 2 * 16, 176, 3
    a_rank = (hidden + wide) + (hidden + hidden) + (hidden + 2 * inner) + (inner + hidden)
    assert both.parameters - plain.parameters == (8 + 4) * a_rank * layers


def test_what_the_config_says_of_sound_is_read() -> None:
    audio = {"config": {"relative_attention_bias_args": {"type": "t5", "t5_bias_max_distance": 500}}}
    bare = {key: value for key, value in OWN.items() if key != "audio_config"}
    usual, near = from_config(bare), from_config({**bare, "audio_processor": audio})
    assert usual.parameters - near.parameters == 2 * 500 * 16


@pytest.mark.parametrize(
    ("more", "line"),
    [
        ({"vision_lora": {"r": "many"}}, "vision_lora: r is 'many'"),
        ({"audio_config": {**PHI4_AUDIO, "time_reduction": 3}}, "audio_config: time_reduction is 3, must be even"),
    ],
)
def test_odd_values_are_named(more: dict[str, Any], line: str) -> None:
    with pytest.raises(CatalogError, match=line):
        from_config({**OWN, **more})
