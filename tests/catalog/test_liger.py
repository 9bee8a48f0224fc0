from __future__ import annotations

import pytest

from lintfit.catalog import architectures
from lintfit.catalog.liger import _SINCE, fused_since
from lintfit.versions import before


@pytest.mark.parametrize(
    ("model_type", "version"),
    [("llama", "0.2.0"), ("qwen2_5_vl", "0.5.5"), ("qwen3", "0.5.9"), ("deepseek_v2", "0.8.5")],
)
def test_the_first_release_that_fuses_the_loss(model_type: str, version: str) -> None:
    assert fused_since(model_type) == version


@pytest.mark.parametrize("model_type", sorted(_SINCE))
def test_the_table_has_none_that_is_not_fused(model_type: str) -> None:
    found = architectures.find(model_type)
    assert found is None or found.code.liger
    assert before(fused_since(model_type), "0.8.6") is True
