"""Ranks that share a sequence: what Ulysses and torch's ring keep beside the sequence's part, and what they refuse."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lintfit.memory import estimate
from lintfit.memory.engines.model_states import states
from lintfit.memory.recording import record
from lintfit.memory.result import Verdict
from lintfit.memory.spec import GIB, Spec
from lintfit.settings.values import Fsdp
from tests.memory.conftest import llama

TOKENS = 4096
ULYSSES = Spec(
    facts=llama(kv_heads=8), engine="deepspeed", zero_stage=1, gpus=2, sequence_parallel=2, mixed_precision="bf16",
    seq_len=TOKENS, capacity_bytes=80 * GIB,
)  # fmt: skip
RING = replace(ULYSSES, engine="fsdp", zero_stage=0, fsdp=Fsdp(version=2), mixed_precision="no")


def layer(spec: Spec) -> int:
    return record(spec, states(spec)).layers[1].saved.total


@pytest.mark.parametrize("spec", [ULYSSES, RING])
def test_the_attentions_result_is_there_twice(spec: Spec) -> None:
    alone = replace(spec, sequence_parallel=1, gpus=1, seq_len=TOKENS // 2)
    assert layer(spec) == layer(alone) + TOKENS // 2 * spec.facts.hidden * 2


def test_ulysses_copies_key_heads_that_are_fewer_than_ranks() -> None:
    few = replace(ULYSSES, facts=llama(kv_heads=2), gpus=4, sequence_parallel=4)
    alone = replace(few, sequence_parallel=1, gpus=1, seq_len=TOKENS // 4)
    keys = 2 * few.facts.kv_heads * few.facts.head_dim
    assert layer(few) == layer(alone) + TOKENS // 4 * (few.facts.hidden + keys) * 2


def test_states_are_shared_by_all_ranks_of_a_sequence() -> None:
    four = replace(RING, gpus=4)
    assert states(four).forward["parameters"] == pytest.approx(states(RING).forward["parameters"] / 2, rel=0.01)


def test_replicas_of_fsdp_share_less() -> None:
    twice = replace(RING, gpus=4, fsdp=Fsdp(version=2, replicas=2))
    assert states(twice).forward["parameters"] == states(RING).forward["parameters"]


@pytest.mark.parametrize(
    ("spec", "line"),
    [
        (replace(ULYSSES, gpus=3, sequence_parallel=3), "cannot split 8 heads over 3 ranks"),
        (replace(ULYSSES, attention="eager"), "Ulysses refuses eager attention"),
        (replace(RING, attention="flash_attention_2"), "torch's ring runs SDPA"),
        (replace(RING, engine="ddp"), "context parallelism without FSDP 2"),
        (replace(RING, fsdp=Fsdp(version=1), stated=frozenset({"fsdp"})), "context parallelism without FSDP 2"),
    ],
)
def test_what_the_libraries_refuse_is_not_said_to_fit(spec: Spec, line: str) -> None:
    found = estimate(spec)
    assert found.verdict is Verdict.UNKNOWN
    assert any(line in each for each in found.not_modelled)


@pytest.mark.parametrize("spec", [ULYSSES, RING])
def test_what_they_run_fits(spec: Spec) -> None:
    assert estimate(spec).verdict is Verdict.FITS
