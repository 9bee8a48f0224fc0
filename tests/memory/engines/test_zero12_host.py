"""What ZeRO 1 and 2 keep on the host."""

from __future__ import annotations

from typing import Any

import pytest

from lintfit.memory import estimate
from lintfit.memory.reading.parse import spec_from_mapping
from lintfit.memory.result import HostMemory


def host(version: str, pins: bool) -> HostMemory:
    offload = {"device": "cpu", "pin_memory": pins}
    run: dict[str, Any] = {"model": "EleutherAI/gpt-j-6b", "engine": "deepspeed", "mixed_precision": "fp16"}
    config = {"zero_optimization": {"stage": 2, "offload_optimizer": offload}, "fp16": {"enabled": True}}
    return estimate(spec_from_mapping({**run, "deepspeed_config": config, "versions": {"deepspeed": version}})).host


@pytest.mark.parametrize(("version", "locked"), [("0.10.0", True), ("0.10.1", False)])
def test_gradients_were_locked_whatever_the_config_says(version: str, locked: bool) -> None:
    """Of GPT-J's 6.05 billion fp32 gradients page-locked memory comes in a power of two: 32 GiB."""
    found = host(version, pins=False)
    assert found.pinned == (2**35 if locked else 0)
    more = found.steady - host("0.12.0", pins=False).steady
    assert more == pytest.approx(2**35 - 4 * 6_050_882_784 if locked else 0, abs=512)
    assert host(version, pins=True).pinned == host("0.12.0", pins=True).pinned
