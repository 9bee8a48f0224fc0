"""What ZeRO 1 and 2 keep on the host."""

from __future__ import annotations

from typing import Any

import pytest

from lintfit.memory import estimate
from lintfit.memory.reading.parse import spec_from_mapping
from lintfit.memory.result import HostMemory
from tests.support import published

MODEL = "EleutherAI/gpt-j-6b"
PARAMETERS = published(MODEL)


def host(version: str, pins: bool) -> HostMemory:
    offload = {"device": "cpu", "pin_memory": pins}
    run: dict[str, Any] = {"model": MODEL, "engine": "deepspeed", "mixed_precision": "fp16"}
    config = {"zero_optimization": {"stage": 2, "offload_optimizer": offload}, "fp16": {"enabled": True}}
    return estimate(spec_from_mapping({**run, "deepspeed_config": config, "versions": {"deepspeed": version}})).host


@pytest.mark.parametrize(("version", "locked"), [("0.10.0", True), ("0.10.1", False)])
def test_gradients_were_locked_whatever_the_config_says(version: str, locked: bool) -> None:
    """Of GPT-J's 6.05 billion fp32 gradients page-locked memory comes in a power of two: 32 GiB."""
    found = host(version, pins=False)
    assert found.pinned == (2**35 if locked else 0)
    more = found.steady - host("0.12.0", pins=False).steady
    assert more == pytest.approx(2**35 - 4 * PARAMETERS if locked else 0, abs=512)
    assert host(version, pins=True).pinned == host("0.12.0", pins=True).pinned


@pytest.mark.parametrize(
    ("version", "before", "locked", "plain"),
    [("0.14.1", "0.14.0", 2**35, -4 * PARAMETERS), ("0.17.0", "0.16.9", 2**34, 0)],
)
def test_blocks_that_came_with_a_version(version: str, before: str, locked: int, plain: int) -> None:
    """Page-locked masters (32 GiB), and a 16-bit buffer of them (16 GiB), by the sources of these releases."""
    now, then = host(version, pins=True), host(before, pins=True)
    assert now.pinned - then.pinned == locked
    assert now.steady - then.steady == pytest.approx(locked + plain, abs=512)


@pytest.mark.parametrize(("version", "locked"), [("0.14.0", 0), ("0.14.1", 2**35), ("0.18.2", 2**35), ("0.18.3", 0)])
def test_masters_were_locked_whatever_the_config_says(version: str, locked: int) -> None:
    assert host(version, pins=False).pinned == locked
