"""The header of a run: how it is spread over its GPUs."""

from __future__ import annotations

from typing import Any

import pytest

from lintfit.memory.reading.parse import spec_from_mapping
from lintfit.report.runs import engine, evaluates


@pytest.mark.parametrize(
    ("stated", "said"),
    [
        ({}, "one process"),
        ({"gpus": 8}, "DDP"),
        ({"gpus": 8, "tensor_parallel": 8}, "tensor parallel 8"),
        ({"gpus": 8, "tensor_parallel": 4}, "DDP, tensor parallel 4"),
        ({"gpus": 8, "tensor_parallel": 2, "pipeline_parallel": 4}, "tensor parallel 2, pipeline parallel 4"),
        ({"gpus": 8, "engine": "fsdp", "sequence_parallel": 2}, "FSDP1 FULL_SHARD, sequence parallel 2"),
        (
            {"gpus": 8, "engine": "deepspeed", "zero_stage": 3, "offload_optimizer": "cpu", "sequence_parallel": 4},
            "ZeRO-3, optimizer offloaded to cpu, sequence parallel 4",
        ),
    ],
)
def test_how_a_run_is_spread_over_its_cards(stated: dict[str, Any], said: str) -> None:
    assert engine(spec_from_mapping({"model": "meta-llama/Llama-3.1-8B", **stated})) == said


@pytest.mark.parametrize(
    ("evaluation", "said"),
    [
        (None, []),
        ({"batch_size": 2}, []),
        ({"batch_size": 8}, ["evaluation batch 8"]),
        ({"batch_size": 0}, ["no evaluation"]),
        ({"batch_size": 2, "predictions": "kept"}, ["evaluation batch 2, logits kept for metrics"]),
        ({"batch_size": 2, "predictions": "dropped"}, []),
        ({"batch_size": 4, "predictions": "kept", "generates": True}, ["evaluation batch 4"]),
        ({"batch_size": 4, "generates": "only"}, ["evaluation batch 4, answers alone"]),
    ],
)
def test_the_evaluation_is_named_where_it_is_not_as_the_training(
    evaluation: dict[str, Any] | None, said: list[str]
) -> None:
    spec = {"model": "meta-llama/Llama-3.1-8B", "micro_batch_size": 2, "evaluation": evaluation}
    assert evaluates(spec_from_mapping(spec)) == said
