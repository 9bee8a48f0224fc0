"""Gemma 3n with its encoders, whose image encoder is timm's."""

from __future__ import annotations

import pytest

from lintfit.catalog import models
from lintfit.catalog.architectures import _mobilenet
from lintfit.catalog.models import CatalogError
from tests.support import PUBLISHED

TIMM = 'timm 1.0.31: create_model("mobilenetv5_300m_enc", num_classes=0)'


def test_the_image_encoder_has_as_many_parameters_as_timms() -> None:
    found = _mobilenet.tensors("timm_model")
    assert {"parameters": sum(tensor.total for tensor in found), "tensors": len(found)} == PUBLISHED["modules"][TIMM]


def test_no_other_encoder_is_taken() -> None:
    with pytest.raises(CatalogError, match="architecture"):
        models.from_config({"model_type": "gemma3n", "text_config": {}, "vision_config": {"architecture": "resnet50"}})
