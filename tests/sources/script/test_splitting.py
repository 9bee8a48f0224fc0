"""Ranks that split a model or a sequence, as scripts ask for them."""

from __future__ import annotations

import pytest

from lintfit.settings.model import UNKNOWN
from tests.sources.scripts import script, values

HEAD = """
import torch
from accelerate import Accelerator
from accelerate.utils import ParallelismConfig
from transformers import AutoModelForCausalLM, DistributedConfig, Trainer, TrainingArguments
"""
TAIL = """
trainer = Trainer(model=model, args=TrainingArguments(output_dir="out"{arguments}), train_dataset=data)
trainer.train()
"""


def read(load: str, arguments: str = "") -> dict[str, object]:
    text = HEAD + f'model = AutoModelForCausalLM.from_pretrained("gpt2"{load})' + TAIL.format(arguments=arguments)
    return values(script(text))


@pytest.mark.parametrize(
    ("load", "ranks"),
    [
        (', tp_plan="auto"', "all"),
        (', tp_plan="auto", tp_size=4', 4),
        (", tp_plan=None", None),
        (", distributed_config=DistributedConfig(tp_size=2)", 2),
        (", distributed_config=DistributedConfig(tp_size=2, ep_size=2)", UNKNOWN),
        (", distributed_config=settings", UNKNOWN),
        ("", None),
    ],
)
def test_transformers_splits_while_it_loads(load: str, ranks: object) -> None:
    assert read(load).get("tensor_parallel") == ranks


def test_accelerate_is_told_how() -> None:
    found = read("", ", parallelism_config=ParallelismConfig(dp_replicate_size=2, dp_shard_size=2, cp_size=4)")
    assert (found["context_parallel"], found["replicas"]) == (4, 2) and "sequence_parallel" not in found
    assert read("", ", parallelism_config=ParallelismConfig(sp_size=2, tp_size=1)")["sequence_parallel"] == 2


@pytest.mark.parametrize(
    ("call", "split"),
    [
        ("prepare_seq_parallel_inputs(mode, batch)", True),
        ("apply_zigzag_ring_attn_monkey_patch(model)", True),
        ("get_sequence_parallel_world_size()", False),
        ("is_sequence_parallel_enabled()", False),
    ],
)
def test_a_project_splits_sequences_itself(call: str, split: bool) -> None:
    found = read(f")\nfrom parallel import *\n({call}")
    assert (found.get("sequence_parallel") is UNKNOWN) is split
