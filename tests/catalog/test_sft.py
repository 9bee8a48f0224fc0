"""TRL's SFT trainer by version, as its ``SFTConfig`` and ``sft_trainer.py`` of these releases have it."""

from __future__ import annotations

import pytest

from lintfit.catalog import sft


@pytest.mark.parametrize(
    ("version", "checkpoints", "in_bf16", "loss"),
    [
        ("0.15.2", False, False, "full"),
        ("0.18.1", False, False, "full"),
        ("0.19.1", False, True, "full"),
        ("0.21.0", False, True, "full"),
        ("0.22.0", True, True, "full"),
        ("0.28.0", True, True, "full"),
        ("1.8.0", True, True, "chunked"),
        ("1.16.0", True, True, "chunked"),
        (None, True, True, "chunked"),
    ],
)
def test_defaults(version: str | None, checkpoints: bool, in_bf16: bool, loss: str) -> None:
    assert (sft.checkpoints(version), sft.in_bf16(version), sft.loss(version)) == (checkpoints, in_bf16, loss)
    assert sft.length(version) == 1024
