"""Gradients that a loop of the script's own lets go of late.

What torch counts of small ones is in ``tests/recordings/``.
"""

from __future__ import annotations

from typing import Any

import pytest

from lintfit.memory import estimate
from lintfit.memory.reading.parse import spec_from_mapping
from lintfit.memory.spec import GIB
from tests.memory.activations.steps import AMP, step

SMALL: dict[str, Any] = {
    "model_type": "llama", "hidden_size": 1024, "intermediate_size": 2816, "num_hidden_layers": 4,
    "num_attention_heads": 16, "num_key_value_heads": 16, "vocab_size": 2000,
}  # fmt: skip


@pytest.mark.parametrize(("when", "there"), [("step", False), ("forward", True), ("backward", True), ("never", True)])
def test_between_steps(when: str, there: bool) -> None:
    guess = step(SMALL, 2, 1024, {**AMP, "zero_grad": when})
    between = [moment for moment in guess.moments if moment.phase in ("evaluate", "save")]
    assert {moment.phase for moment in between} == {"evaluate", "save"}
    assert {bool(moment.components.get("gradients")) for moment in between} == {there}


def test_deepspeed_lets_go_of_them_itself() -> None:
    shared = {"model": "Qwen/Qwen2.5-0.5B", "engine": "deepspeed", "gpus": 4, "zero_stage": 2}
    soon, late = (estimate(spec_from_mapping({**shared, "zero_grad": when})) for when in ("step", "never"))
    assert soon.allocated_bytes == late.allocated_bytes


def test_torch_1_fills_the_trainers_gradients_with_zeros() -> None:
    """Measured: BERT-large in fp32, 4 x 512 tokens, in 14.6 GiB on a V100 with torch 1.10 (transformers' docs of
    4.15, perf_train_gpu_one)."""
    stated: dict[str, Any] = {"model": "bert-large-uncased", "gpu": "V100 16GB", "weights_dtype": "fp32"}
    run = {**stated, "mixed_precision": "no", "trainer": "classification", "optimizer": "adamw_hf", "seq_len": 512}

    def guess(**more: Any) -> Any:
        shared = {**run, "micro_batch_size": 4, "evaluation": {"batch_size": 0}}
        return estimate(
            spec_from_mapping({**shared, **more, "versions": {"transformers": "4.15.0", **more["versions"]}})
        )

    old, new, open_ = (guess(versions={"torch": text} if text else {}) for text in ("1.13.1", "2.0.0", ""))
    assert guess(versions={"torch": "1.10.0"}).peak.low < 14.6 * GIB < guess(versions={"torch": "1.10.0"}).peak.high
    layer = 4 * 1024 * 1025 + 4096 * 1025 + 1024 * 4097 + 2 * 2 * 1024
    parameters = 24 * layer + (30522 + 512 + 2) * 1024
    assert old.allocated_bytes - new.allocated_bytes == pytest.approx(4 * parameters, rel=0.01)
    assert old.peak.low < 14.6 * GIB < old.peak.high == open_.peak.high
    assert open_.peak.likely == new.peak.likely
    assert any("torch 1" in line for line in open_.assumptions)
    assert guess(versions={"torch": "1.13.1"}, zero_grad="step").allocated_bytes == new.allocated_bytes
