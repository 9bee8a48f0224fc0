"""The opposite question: what is said to be the most does fit, and one more does not."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import HealthCheck, Phase, given, settings

from lintfit.catalog.gpus import lookup
from lintfit.fit.extremes import Goal, _smaller, extremes
from lintfit.fit.least_sharding import _from_the_least
from lintfit.fit.options import Effect, Subject, run_of
from lintfit.fit.search import Search, suffices
from lintfit.fit.space import Space
from lintfit.memory import estimate
from lintfit.memory.reading.parse import spec_from_mapping
from lintfit.memory.spec import Spec
from lintfit.options.model import Margin
from lintfit.run.change import changed_spec
from lintfit.settings.values import Fsdp
from tests.fit.generated import specs

few = settings(
    max_examples=8,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)

ROOMY = spec_from_mapping(
    {
        "model": "Qwen/Qwen2.5-1.5B",
        "gpu": "A100-SXM4-80GB",
        "gpus": 4,
        "host_memory_gib": 512,
        "engine": "deepspeed",
        "zero_stage": 3,
        "offload_optimizer": "cpu",
        "mixed_precision": "bf16",
        "micro_batch_size": 1,
        "gradient_accumulation_steps": 8,
        "seq_len": 1024,
        "gradient_checkpointing": True,
    }
)


def _peak(spec: Spec, **changes: object) -> int:
    return estimate(changed_spec(spec, changes)).peak.high


@few
@given(specs)
def test_one_more_does_not_fit(spec: Spec) -> None:
    goals: tuple[tuple[Goal, str], ...] = (("micro-batch", "micro_batch_size"), ("seq-len", "seq_len"))
    for goal, name in goals:
        answer = extremes(run_of(spec), goal)[0]
        limit = spec.capacity_bytes
        if answer.best is not None:
            assert suffices(estimate(changed_spec(spec, {name: answer.best.value})))
        if answer.beyond is not None:
            assert answer.beyond.value == (answer.best.value + 1 if answer.best is not None else 1)
            result = answer.beyond.estimate
            assert limit is not None
            assert result.peak.high > limit or result.host.peak > (spec.host_memory_bytes or 0)


@few
@given(specs)
def test_no_step_is_shorter_that_fits(spec: Spec) -> None:
    for answer in extremes(run_of(spec), "step-time"):
        if answer.best is not None and answer.fitting is not None:
            assert suffices(answer.best.estimate)
            assert answer.fitting.spec.effective_batch == spec.effective_batch


def test_a_roomy_run_gives_up_what_it_does_not_need() -> None:
    same = extremes(run_of(ROOMY), "step-time")[0]
    assert same.best is not None
    assert same.best.step_time is not None
    assert same.best.step_time < 0.7
    assert same.best.changes["offload_optimizer"] == "none"
    assert same.best.changes["gradient_checkpointing"] is False


def test_the_largest_micro_batch_keeps_the_samples_of_a_step() -> None:
    free, kept = extremes(run_of(ROOMY), "micro-batch")
    assert free.best is not None
    assert kept.best is not None
    assert kept.best.value <= free.best.value
    assert kept.best.value * kept.best.changes["gradient_accumulation_steps"] == 8


def test_fewer_cards_keep_the_samples_and_the_next_fewer_does_not_fit() -> None:
    spec = replace(ROOMY, gpu=lookup("RTX 3090"), capacity_bytes=12 * 2**30, offload_optimizer="none")
    answer = extremes(run_of(spec), "gpus")[0]
    assert answer.best is not None
    assert answer.best.value <= 4
    if answer.beyond is not None:
        assert answer.beyond.value < answer.best.value
        assert answer.beyond.estimate.peak.high > 12 * 2**30


def test_the_smallest_card_is_smaller_and_still_fits() -> None:
    answer = extremes(run_of(ROOMY), "gpus")[1]
    assert answer.best is not None
    assert answer.beyond is not None
    best, beyond = answer.best.estimate, answer.beyond.estimate
    assert suffices(best)
    assert (beyond.capacity_bytes or 0) < (best.capacity_bytes or 0) < (ROOMY.capacity_bytes or 0)
    assert beyond.peak.high > (beyond.capacity_bytes or 0)


def test_every_smaller_card_is_too_small_and_every_larger_one_is_not() -> None:
    spec = replace(ROOMY, gpus=1, offload_optimizer="none", engine="single", zero_stage=0, micro_batch_size=2)
    best = extremes(run_of(spec), "gpus")[1].best
    assert best is not None
    for card in _smaller(spec):
        on = replace(spec, gpu=card, capacity_bytes=card.usable_bytes)
        search = Search(Space(Subject(run_of(on), on), Effect.NUMERICS), Margin())
        fits = next(search.fitting(), None) is not None
        assert fits is (card.usable_bytes >= (best.estimate.capacity_bytes or 0)), card.name


def test_tokens_end_where_the_model_does() -> None:
    answer = extremes(run_of(replace(ROOMY, micro_batch_size=1)), "seq-len")[0]
    assert answer.best is not None
    positions = ROOMY.facts.max_positions
    assert answer.best.value == positions or _peak(ROOMY, seq_len=answer.best.value + 1) > (ROOMY.capacity_bytes or 0)


@few
@given(specs)
def test_nothing_less_sharded_fits(spec: Spec) -> None:
    answer = extremes(run_of(spec), "sharding")[0]
    names = [name for name, _ in _from_the_least(Subject(run_of(spec), spec))]
    options = dict(_from_the_least(Subject(run_of(spec), spec)))
    fits = [name for name in names if suffices(estimate(changed_spec(spec, options[name].changes)))]
    assert (answer.best.text if answer.best is not None else None) == next(iter(fits), None)
    if answer.best is not None and answer.beyond is not None:
        assert names.index(answer.beyond.text) == names.index(answer.best.text) - 1
    if answer.fitting is not None:
        assert answer.fitting.spec.effective_batch == spec.effective_batch


def test_what_is_not_needed_of_the_sharding_is_told() -> None:
    answer = extremes(run_of(ROOMY), "sharding")[0]
    assert answer.best is not None and answer.beyond is None
    assert answer.best.text == "ZeRO-0"
    fsdp = replace(ROOMY, engine="fsdp", zero_stage=0, offload_optimizer="none", fsdp=Fsdp(1, "FULL_SHARD", True))
    answer = extremes(run_of(fsdp), "sharding")[0]
    assert answer.best is not None
    assert answer.best.changes == {"fsdp": Fsdp(1, "NO_SHARD", False)}
