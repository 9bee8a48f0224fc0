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


SAVING = Log(Death("gpu", "torch", 1, "CUDA out of memory"), Where("save"))


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({}, []),
        ({"gpus": 2}, []),
        ({"gpus": 2, "zero_stage": 3}, ["gathers what is sharded"]),
        ({"gpus": 2, "fsdp": {"version": 1}}, ["gathers what is sharded"]),
        ({"method": "lora", "quantization": "int8"}, ["bitsandbytes 0.38"]),
        ({"method": "lora", "quantization": "int8", "versions": {"bitsandbytes": "0.38.1"}}, ["bitsandbytes 0.38"]),
        ({"method": "lora", "quantization": "int8", "versions": {"bitsandbytes": "0.43.0"}}, []),
    ],
)
def test_what_saving_is_known_for_in_such_a_run(more: dict[str, Any], said: list[str]) -> None:
    spec = spec_from_mapping({"model": "EleutherAI/gpt-j-6b", **more})
    found = [cause.said for cause in causes(SAVING, estimate(spec), spec)]
    assert len(found) == len(said) and all(words in text for words, text in zip(said, found, strict=True))
    assert len(causes(SAVING, None)) == 2, "by the log alone it may be any of them"
