"""Why a run died, by its log and what it should need."""

from __future__ import annotations

from typing import Any

import pytest

from lintfit.memory import estimate
from lintfit.memory.reading.parse import spec_from_mapping
from lintfit.sources.logs.model import Death, Log, Where
from lintfit.verdict.died import causes

KILLED = Log(Death("host", "kernel", 1, "Out of memory: Killed process 1"), Where())


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({}, "while the model is loaded"),
        ({"method": "lora", "merges": True}, "while adapters are merged"),
        ({"zero_stage": 3, "offload_optimizer": "cpu", "gpus": 2}, "for what is offloaded"),
        ({"zero_stage": 3, "offload_optimizer": "cpu", "gpus": 2, "resumes": True}, "read from the checkpoint"),
    ],
)
def test_what_the_machine_needed_its_memory_for(more: dict[str, Any], said: str) -> None:
    spec = spec_from_mapping({"model": "EleutherAI/gpt-j-6b", "mixed_precision": "bf16", **more})
    (cause,) = causes(KILLED, estimate(spec))
    assert said in cause.said
