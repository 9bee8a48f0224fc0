"""The range around a loss that the script makes of the logits itself."""

from __future__ import annotations

from typing import Any

import pytest

from lintfit.memory import estimate
from lintfit.memory.reading.parse import spec_from_mapping
from lintfit.memory.result import Estimate

CONFIG = {
    "model_type": "llama",
    "hidden_size": 1024,
    "intermediate_size": 2816,
    "num_hidden_layers": 4,
    "num_attention_heads": 16,
    "num_key_value_heads": 4,
    "vocab_size": 64_000,
}
MIB = 2**20


def run(**more: Any) -> Estimate:
    stated = {"gpu_memory_gib": 1000, "optimizer": "sgd", "micro_batch_size": 2, "seq_len": 2048}
    stated |= {"versions": {"transformers": "5.23.0"}, "evaluation": {"batch_size": 0}, "gradient_checkpointing": False}
    stated |= {"loss": "full", "fused_kernels": []}
    return estimate(spec_from_mapping({**stated, "model_config": CONFIG, **more}))


TORCH = {
    "bf16": {"plain": 2558, "shifted": 2557, "in fp32": 4557, "plain, and the model's": 4558},
    "fp32": {"plain": 7113, "shifted": 7112, "in fp32": 7112, "plain, and the model's": 8113},
    "amp": {"plain": 4773, "shifted": 4772, "in fp32": 5272, "plain, and the model's": 5773},
}
"""MiB that torch counts (torch 2.13, transformers 5.23, fake tensors) of a step with a cross entropy on the logits, on
those of all tokens but the last, on a copy of them in fp32, and beside the loss of the model's own."""


@pytest.mark.parametrize("precision", TORCH)
def test_torchs_count_of_usual_losses_lies_in_the_range(precision: str) -> None:
    kinds: dict[str, dict[str, Any]] = {
        "bf16": {"weights_dtype": "bf16"},
        "fp32": {"weights_dtype": "fp32"},
        "amp": {"weights_dtype": "fp32", "mixed_precision": "bf16"},
    }
    plain, own = run(**kinds[precision]), run(own_loss=True, **kinds[precision])
    beside = plain.peak.low - plain.allocated_bytes
    for count in TORCH[precision].values():
        assert (own.peak.low - beside) / MIB <= count + 1 and count <= (own.peak.high - beside) / MIB
    assert own.allocated_bytes == plain.allocated_bytes
    assert min(TORCH[precision].values()) <= plain.allocated_bytes / MIB + 1


def test_the_low_end_of_pure_half_precision_is_three_copies() -> None:
    plain, own = run(weights_dtype="bf16"), run(weights_dtype="bf16", own_loss=True)
    found = (own.peak.low - plain.peak.low + plain.allocated_bytes) / MIB
    assert found == pytest.approx(TORCH["bf16"]["shifted"], abs=1.5)


@pytest.mark.parametrize("more", [{"loss": "liger"}, {"loss": "chunked"}, {"trainer": "dpo"}])
def test_only_whole_logits_go_into_it(more: dict[str, Any]) -> None:
    stated = {"weights_dtype": "bf16", "mixed_precision": "bf16", **more}
    assert run(**stated).peak == run(own_loss=True, **stated).peak


def test_it_is_said() -> None:
    assert any("loss of the script's own" in line for line in run(own_loss=True).assumptions)
