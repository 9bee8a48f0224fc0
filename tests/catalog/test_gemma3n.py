"""Gemma 3n with its encoders, whose image encoder is timm's."""

from __future__ import annotations

import pytest

from lintfit.catalog import models
from lintfit.catalog.architectures import _mobilenet
from lintfit.catalog.models import CatalogError, lookup

TIMM = (294_126_912, 548)
"""Parameters and their tensors of ``timm.create_model("mobilenetv5_300m_enc", num_classes=0)``, timm 1.0.31."""


def test_the_image_encoder_has_as_many_parameters_as_timms() -> None:
    found = _mobilenet.tensors("timm_model")
    assert (sum(tensor.total for tensor in found), len(found)) == TIMM


@pytest.mark.parametrize(("model", "published", "sharing"), [("E2B", 5_439_438_272, 10), ("E4B", 7_849_978_192, 15)])
def test_published_parameters_less_keys_and_values_that_no_layer_has(model: str, published: int, sharing: int) -> None:
    facts = lookup(f"google/gemma-3n-{model}-it")
    assert facts is not None
    each = 2 * facts.kv_heads * facts.head_dim * facts.hidden + facts.head_dim  # and the keys' norm
    assert facts.parameters + sharing * each == published


def test_no_other_encoder_is_taken() -> None:
    with pytest.raises(CatalogError, match="architecture"):
        models.from_config({"model_type": "gemma3n", "text_config": {}, "vision_config": {"architecture": "resnet50"}})
