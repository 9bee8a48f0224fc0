"""A machine's memory by what happens."""

from __future__ import annotations

from typing import Any

from lintfit.memory import estimate
from lintfit.memory.reading.parse import spec_from_mapping
from lintfit.report import View
from lintfit.report.host import host_lines
from lintfit.report.styled import plain


def shown(**more: Any) -> str:
    spec = spec_from_mapping({"model": "EleutherAI/gpt-j-6b", "micro_batch_size": 1, "seq_len": 512, **more})
    return plain(host_lines(spec, estimate(spec), View()))


def test_nothing_where_nothing_lies_there_and_no_memory_is_stated() -> None:
    assert shown() == ""


def test_each_process_that_reads_a_copy() -> None:
    text = shown(gpus=8, zero_stage=2, weights_dtype="fp32", host_memory_gib=256, mixed_precision="bf16")
    assert "host memory of a machine, of 256.0 GiB" in text
    assert "each of 8 processes reads 22.5 GiB" in text and "    fits" in text


def test_copies_that_are_made_flat_are_not_what_is_read() -> None:
    """Beside an optimizer on the host DeepSpeed flattens the parameters there, which takes two copies of them."""
    offload = {"zero_stage": 2, "offload_optimizer": "cpu", "weights_dtype": "bf16", "mixed_precision": "bf16"}
    text = shown(**offload, gpus=2, gpu="L4", host_memory_gib=512)
    assert "two copies of the parameters" in text and "processes reads" not in text


def test_resuming_and_saving_stand_beside_training() -> None:
    offload = {"gpus": 2, "zero_stage": 3, "offload_optimizer": "cpu", "mixed_precision": "bf16"}
    gathers = {"zero_optimization": {"stage3_gather_16bit_weights_on_model_save": True}}
    text = shown(**offload, resumes=True, host_memory_gib=150, deepspeed_config=gathers)
    assert "67.6 GiB of it read from the checkpoint" in text
    assert "11.3 GiB of it the whole model, on one process" in text
    assert "does not fit: a process that runs out is killed (exit code -9)" in text
    assert "resuming" not in shown(**offload) and "saving" not in shown(**offload, saves=False)


def test_what_processes_have_of_their_own_makes_it_tight() -> None:
    offload = {"gpus": 2, "zero_stage": 3, "offload_optimizer": "cpu", "mixed_precision": "bf16", "saves": False}
    assert "tight: with what the processes have of their own" in shown(**offload, host_memory_gib=120)
