"""What a run is, in its first lines."""

from __future__ import annotations

from typing import Any

import pytest

from lintfit.memory import estimate
from lintfit.memory.reading.parse import spec_from_mapping
from lintfit.report import View
from lintfit.report.estimate import render_spec


def first_lines(**more: Any) -> str:
    spec = spec_from_mapping({"model": "Qwen/Qwen2.5-0.5B", "micro_batch_size": 1, "seq_len": 256, **more})
    return " ".join(render_spec(spec, estimate(spec), View()).split("memory of one GPU")[0].split())


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"trainer": "ppo"}, "PPO with a reference, a reward and a value model · full fine-tuning"),
        ({"trainer": "ppo", "method": "lora"}, "PPO with a reward and a value model · LoRA"),
        ({"trainer": "dpo"}, "DPO with a reference model · full fine-tuning"),
        ({"reference_model": True}, "Qwen2.5-0.5B · beside it a reference model · full fine-tuning"),
        ({"trainer": "dpo", "reference_model": False}, "Qwen2.5-0.5B · full fine-tuning"),
        ({}, "Qwen2.5-0.5B · full fine-tuning"),
    ],
)
def test_the_models_that_a_trainer_holds(more: dict[str, Any], says: str) -> None:
    assert says in first_lines(**more)
