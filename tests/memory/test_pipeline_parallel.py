"""Stages of a pipeline: what the first and the last hold, and which of them decides."""

from __future__ import annotations

from dataclasses import replace

from lintfit.memory import estimate
from lintfit.memory.engines.model_states import states
from lintfit.memory.micro_batch.step import Step
from lintfit.memory.recording import record
from lintfit.memory.result import Verdict
from lintfit.memory.spec import GIB, Spec
from lintfit.memory.tensors.parameters import inventory
from tests.memory.conftest import llama

PIPED = Spec(
    facts=llama(), engine="ddp", gpus=4, pipeline_parallel=4, gradient_accumulation_steps=8, seq_len=256,
    capacity_bytes=80 * GIB,
)  # fmt: skip


def stage(spec: Spec, which: str) -> Step:
    own = replace(spec, pipeline_stage=which)  # type: ignore[arg-type]
    return record(own, states(own))


def test_the_first_stage_has_most_micro_batches_and_the_last_the_logits() -> None:
    first, last = stage(PIPED, "first"), stage(PIPED, "last")
    assert (first.in_flight, last.in_flight) == (4, 1)
    assert first.head.saved.total == 0 and last.head.saved.logits
    assert stage(replace(PIPED, gradient_accumulation_steps=2), "first").in_flight == 2


def test_a_tied_head_is_on_both_ends() -> None:
    tied = replace(PIPED, facts=llama(tied=True))
    roles = [
        {weight.role for weight in inventory(replace(tied, pipeline_stage=which)).weights}
        for which in ("first", "last")
    ]
    assert all("embedding" in each for each in roles)
    alone = inventory(replace(PIPED, pipeline_stage="last")).weights
    assert "embedding" not in {weight.role for weight in alone}


def test_deepspeed_receives_in_fewer_buffers_than_torch() -> None:
    piped = replace(PIPED, engine="deepspeed", zero_stage=1, mixed_precision="bf16")
    assert stage(PIPED, "first").exchanged == 2 * stage(piped, "first").exchanged
    assert stage(piped, "last").exchanged == stage(piped, "first").exchanged // 2


def test_the_stage_that_needs_most_decides() -> None:
    assert estimate(replace(PIPED, facts=llama(vocab=200_000))).stage == "last"
    many = replace(PIPED, facts=llama(vocab=64, layers=32), seq_len=2048)
    assert estimate(many).stage == "first"
    peaks = [estimate(replace(many, pipeline_stage=which)).peak.likely for which in ("first", "last")]  # type: ignore[arg-type]
    assert estimate(many).peak.likely == max(peaks)


def test_layers_that_do_not_divide_are_not_said_to_fit() -> None:
    assert estimate(PIPED).verdict is Verdict.FITS
    found = estimate(replace(PIPED, gpus=3, pipeline_parallel=3))
    assert found.verdict is Verdict.UNKNOWN
    assert any("4 layers do not divide over 3 stages" in line for line in found.not_modelled)
