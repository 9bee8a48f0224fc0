"""What a spec's DeepSpeed JSON states of the run, where the spec itself does not."""

from __future__ import annotations

from typing import Any

import pytest

from lintfit.memory.reading.contradictions import SpecError
from lintfit.memory.reading.parse import spec_from_mapping
from lintfit.memory.spec import Spec


def _spec(config: dict[str, Any], **more: Any) -> Spec:
    return spec_from_mapping({"model": "meta-llama/Llama-2-7b-hf", "gpus": 8, "deepspeed_config": config, **more})


@pytest.mark.parametrize(
    ("config", "name", "value"),
    [
        ({"bf16": {"enabled": True}}, "mixed_precision", "bf16"),
        ({"bfloat16": {"enabled": True}}, "mixed_precision", "bf16"),
        ({"bf16": {"enabled": False}, "bfloat16": {"enabled": True}}, "mixed_precision", "no"),
        ({"fp16": {"enabled": True}}, "mixed_precision", "fp16"),
        ({"fp16": {"enabled": "auto"}}, "mixed_precision", "no"),
        ({"train_micro_batch_size_per_gpu": 3}, "micro_batch_size", 3),
        ({"train_micro_batch_size_per_gpu": "auto"}, "micro_batch_size", 8),
        ({"gradient_accumulation_steps": 16}, "gradient_accumulation_steps", 16),
        ({"sequence_parallel_size": 4}, "sequence_parallel", 4),
        ({"tensor_parallel": {"autotp_size": 2}}, "tensor_parallel", 2),
        ({"tensor_parallel": {"autotp_size": 0}}, "tensor_parallel", 1),
        ({"zero_optimization": {"stage": 3}}, "zero_stage", 3),
        ({"zero_optimization": {"stage": 2, "cpu_offload": True}}, "offload_optimizer", "cpu"),
        ({"zero_optimization": {"stage": 2, "cpu_offload": False}}, "offload_optimizer", "none"),
        ({"zero_optimization": {"stage": 3, "cpu_offload_param": True}}, "offload_param", "cpu"),
        ({"zero_optimization": {"stage": 3, "offload_param": {"device": "nvme"}}}, "offload_param", "nvme"),
    ],
)
def test_what_it_states(config: dict[str, Any], name: str, value: Any) -> None:
    assert getattr(_spec(config), name) == value


def test_it_is_stated() -> None:
    found = _spec({"train_micro_batch_size_per_gpu": 3, "gradient_accumulation_steps": "auto"}).stated
    assert "micro_batch_size" in found
    assert "gradient_accumulation_steps" not in found


def test_the_spec_itself_beats_it() -> None:
    config = {"train_micro_batch_size_per_gpu": 3, "bf16": {"enabled": True}}
    spec = _spec(config, micro_batch_size=1, mixed_precision="fp16")
    assert (spec.micro_batch_size, spec.mixed_precision) == (1, "fp16")


def test_another_engine_does_not_read_it() -> None:
    spec = _spec({"train_micro_batch_size_per_gpu": 3, "bf16": {"enabled": True}}, engine="ddp")
    assert (spec.micro_batch_size, spec.mixed_precision) == (8, "no")


def test_a_bad_value_is_told_with_its_place() -> None:
    with pytest.raises(SpecError, match=r"^deepspeed_config.train_micro_batch_size_per_gpu: -1 must be"):
        _spec({"train_micro_batch_size_per_gpu": -1})
    with pytest.raises(SpecError, match=r"^deepspeed_config.tensor_parallel.autotp_size: 'two' must be"):
        _spec({"tensor_parallel": {"autotp_size": "two"}})
