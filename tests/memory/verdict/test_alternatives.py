"""What a spec may mean besides what it is taken to mean: the ends of the range count it."""

from __future__ import annotations

from typing import Any

import pytest

from lintfit.memory import estimate
from lintfit.memory.reading.parse import spec_from_mapping
from lintfit.memory.result import Estimate


def adapted(**more: Any) -> Estimate:
    stated = {"model": "meta-llama/Llama-2-7b-hf", "gpu": "A100-80GB", "method": "lora", "micro_batch_size": 4}
    return estimate(spec_from_mapping({**stated, "seq_len": 1024, **more}))


def test_adapters_that_nobody_places_are_pefts() -> None:
    """Neither weights nor activations of other layers: PEFT adapts query and value of a Llama."""
    unstated, placed = adapted(), adapted(lora_targets=["q_proj", "v_proj"])
    assert unstated.allocated_bytes == placed.allocated_bytes
    assert unstated.peak.low == placed.peak.low


def test_code_that_nobody_names_may_adapt_every_linear_layer() -> None:
    everywhere = adapted(lora_targets="all-linear")
    found = adapted()
    assert found.peak.high == pytest.approx(everywhere.peak.high, rel=0.01)
    assert any("whose code makes the adapters" in line for line in found.assumptions)


@pytest.mark.parametrize("checkpoints", [True, False])
def test_the_weights_of_large_adapters_on_every_linear_layer_count_as_well(checkpoints: bool) -> None:
    """The table of huggingface/blog 4bit-transformers-bitsandbytes, whose notebook adapts all linear layers with rank
    64: LLaMA-13B does not fit a T4 with 1024 tokens, which rank 64 on queries and values would."""
    large = {"lora_rank": 64, "gradient_checkpointing": checkpoints}
    assert adapted(**large).peak.high == adapted(**large, lora_targets="all-linear").peak.high


@pytest.mark.parametrize(
    "more",
    [{"lora_targets": ["q_proj"]}, {"front_end": "transformers"}, {"method": "full"}, {"gradient_checkpointing": True}],
)
def test_nothing_is_left_open_where_it_is_stated(more: dict[str, Any]) -> None:
    assert not any("whose code makes the adapters" in line for line in adapted(**more).assumptions)


def sharded(**more: Any) -> Estimate:
    stated = {"model": "meta-llama/Llama-2-7b-hf", "gpu": "RTX 4090", "gpus": 2, "engine": "fsdp", "seq_len": 1024}
    offload = {"fsdp": {"version": 2, "strategy": "FULL_SHARD", "cpu_offload": True}}
    common = {"mixed_precision": "bf16", "micro_batch_size": 1, "gradient_accumulation_steps": 2}
    return estimate(spec_from_mapping({**stated, **offload, **common, "gradient_checkpointing": True, **more}))


def test_an_accelerate_of_the_months_of_an_older_transformers_may_reduce_every_micro_batch() -> None:
    """Measured: gpt-oss-20b with FSDP 2 and CPU offload on two 24 GB GPUs, two steps accumulated (axolotl's
    examples/gpt-oss at transformers 4.55)."""
    unstated = sharded(versions={"transformers": "4.55.0"})
    reduced = sharded(versions={"transformers": "4.55.0", "accelerate": "1.10.0"})
    whole = sharded(versions={"transformers": "4.55.0", "accelerate": "1.11.0"})
    assert unstated.peak.low == reduced.peak.low < whole.peak.low
    assert unstated.peak.likely == whole.peak.likely
    assert any("accelerate since 1.11" in line for line in unstated.assumptions)
    for versions in ({"accelerate": "1.12.0"}, {"transformers": "5.2.0"}):
        assert not any("accelerate since 1.11" in line for line in sharded(versions=versions).assumptions)
