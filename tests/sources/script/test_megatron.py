"""Megatron-LM's own loop: what its flags say, and what nobody can tell of it."""

from __future__ import annotations

import pytest

from lintfit.settings.model import UNKNOWN
from tests.sources.scripts import script, values

PRETRAIN = """
from functools import partial
from megatron.training import pretrain
from megatron.model import GPTModel

def model_provider(pre_process=True, post_process=True):
    return GPTModel(pre_process=pre_process, post_process=post_process)

if __name__ == "__main__":
    pretrain(data_provider, model_provider, forward_step)
"""
SIZES = "--num-layers 24 --hidden-size 1024 --num-attention-heads 16 --seq-length 1024 --micro-batch-size 4"


def read(line: str, world: str = "8") -> dict[str, object]:
    return values(script(PRETRAIN, f"{SIZES} {line}", env={"WORLD_SIZE": world}))


def test_flags_are_the_settings() -> None:
    found = read("--bf16 --global-batch-size 64 --recompute-granularity full --recompute-method uniform")
    assert (found["weights_dtype"], found["mixed_precision"], found["method"]) == ("bf16", "bf16", "full")
    assert (found["micro_batch_size"], found["seq_len"], found["gradient_accumulation_steps"]) == (4, 1024, 2)
    assert found["gradient_checkpointing"] is True


def test_what_it_does_where_nobody_says_anything() -> None:
    found = read("")
    assert (found["weights_dtype"], found["mixed_precision"]) == ("fp32", "no")
    assert (found["gradient_accumulation_steps"], found["gradient_checkpointing"]) == (1, False)
    assert (found["engine"], found["zero_stage"], found["offload_optimizer"]) == (UNKNOWN, 0, "none")


@pytest.mark.parametrize(
    ("flags", "world", "steps"),
    [
        ("--tensor-model-parallel-size 2 --pipeline-model-parallel-size 2", "8", 8),
        ("--tensor-model-parallel-size 16", "8", 16),
        ("", "", 16),
        ("", "unknown", UNKNOWN),
        ("", "6", UNKNOWN),
        ("--rampup-batch-size 16 16 300", "8", UNKNOWN),
        ("--tensor-model-parallel-size $TP", "8", UNKNOWN),
    ],
)
def test_accumulation_is_what_the_data_parallel_ranks_leave(flags: str, world: str, steps: object) -> None:
    assert read(f"--global-batch-size 64 {flags}", world)["gradient_accumulation_steps"] == steps


@pytest.mark.parametrize(
    ("flags", "on"),
    [
        ("--checkpoint-activations", True),
        ("--activations-checkpoint-method uniform", True),
        ("--recompute-activations", UNKNOWN),
        ("--recompute-granularity selective", UNKNOWN),
        ("--recompute-granularity full --recompute-method block --recompute-num-layers 4", UNKNOWN),
    ],
)
def test_layers_that_are_recomputed_whole_or_in_part(flags: str, on: object) -> None:
    assert read(flags)["gradient_checkpointing"] is on


def test_a_sharded_optimizer_is_no_stage_that_is_known() -> None:
    assert read("--use-distributed-optimizer")["zero_stage"] is UNKNOWN


def test_deepspeed_decides_its_own() -> None:
    found = read("--deepspeed --deepspeed_config ds.json")
    assert "engine" not in found and "zero_stage" not in found


def test_another_pretrain_is_not_megatrons() -> None:
    text = PRETRAIN.replace("megatron.training", "kit.training")
    assert "trainer" not in values(script(text, SIZES))
