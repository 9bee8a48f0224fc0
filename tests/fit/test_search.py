"""The search against brute force, and the bounds that it leaves combinations out with."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from lintfit.fit.axes import attention, axes, micro_batch
from lintfit.fit.bounds import floor
from lintfit.fit.options import Effect, Subject, run_of
from lintfit.fit.search import Search, leaves_room, suffices
from lintfit.fit.space import Space
from lintfit.memory import estimate
from lintfit.memory.engines.model_states import states
from lintfit.memory.reading.parse import spec_from_mapping
from lintfit.memory.spec import GIB, Spec
from lintfit.options.model import Margin, Options
from lintfit.run.change import changed_spec
from lintfit.settings.registry import ZERO_SECTION
from tests.fit.generated import spec_of, specs

few = settings(
    max_examples=8,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)


def _search(spec: Spec, margin: Margin = Margin(), most: Effect = Effect.NUMERICS) -> Search:  # noqa: B008
    return Search(Space(Subject(run_of(spec), spec), most), margin)


@few
@given(specs, st.sampled_from([Margin(), Margin(size=2 * GIB), Margin(share=0.2)]))
def test_brute_force_finds_nothing_better(spec: Spec, margin: Margin) -> None:
    search = _search(spec, margin)
    found = next(search.fitting(), None)
    fitting = []
    for candidate in search.space:
        changed = changed_spec(spec, candidate.changes)
        if suffices(estimate(changed), search.limit):
            fitting.append(search.rank(candidate, changed))
    if found is None:
        assert not fitting
    else:
        assert found.rank == min(fitting)
        assert found.estimate.peak.high <= search.capacity - margin.bytes_of(search.capacity)


small = st.fixed_dictionaries(
    {
        "model": st.sampled_from(["Qwen/Qwen2.5-1.5B", "gpt2-xl", "meta-llama/Llama-2-7b-hf"]),
        "gpu": st.sampled_from(["RTX 4070", "RTX 3090", "A100-SXM4-40GB"]),
        "gpus": st.sampled_from([1, 2]),
        "host_memory_gib": st.sampled_from([16, 64, 256]),
        "weights_dtype": st.just("bf16"),
        "mixed_precision": st.just("bf16"),
        "method": st.sampled_from(["full", "lora"]),
        "micro_batch_size": st.sampled_from([1, 2]),
        "gradient_accumulation_steps": st.sampled_from([1, 2]),
        "seq_len": st.sampled_from([512, 1024]),
        "gradient_checkpointing": st.booleans(),
        "attention": st.just("sdpa"),
        "engine": st.sampled_from(["plain", "deepspeed", "fsdp"]),
        "zero_stage": st.sampled_from([1, 2, 3]),
    }
)
"""Runs whose whole space, more GPUs and other trainings included, is small enough to estimate."""


@pytest.mark.slow
@settings(parent=few, max_examples=12)
@given(small, st.booleans())
def test_brute_force_over_all_axes_finds_nothing_better(described: dict[str, Any], nvme: bool) -> None:
    spec = spec_of(described)
    run = replace(run_of(spec), options=Options(nvme_path="/scratch" if nvme else None))
    search = Search(Space(Subject(run, spec)), Margin())
    fitting = {}
    for candidate in search.space:
        changed = changed_spec(spec, candidate.changes)
        if suffices(estimate(changed), search.limit):
            fitting[search.rank(candidate, changed)] = candidate
    best = {effect: [rank for rank, one in fitting.items() if one.effect is effect] for effect in Effect}
    for effect in Effect:
        found = next(search.of_class(effect), None)
        assert (found.rank if found is not None else None) == min(best[effect], default=None), effect


@few
@given(specs)
def test_the_nearest_that_does_not_fit_is_the_nearest(spec: Spec) -> None:
    search = _search(spec)
    if next(search.fitting(), None) is not None:
        return
    peaks = [estimate(changed_spec(spec, one.changes)) for one in search.space]
    short = [result.peak.high for result in peaks if result.host.peak <= (result.host_capacity_bytes or 0)]
    nearest = search.closest()
    assert search.tried.count == len(peaks)
    assert (nearest[1].peak.high if nearest is not None else None) == min(short, default=None)


@few
@given(specs, st.data())
def test_no_candidate_is_smaller_than_its_bounds(spec: Spec, data: st.DataObject) -> None:
    space = Space(Subject(run_of(spec), spec))
    candidates = list(space)
    for _ in range(8):
        candidate = candidates[data.draw(st.integers(0, len(candidates) - 1))]
        changed = changed_spec(spec, candidate.changes)
        high = estimate(changed).peak.high
        least = estimate(replace(changed, micro_batch_size=1, seq_len=min(256, changed.seq_len))).peak.high
        assert floor(states(changed)) <= least <= high, candidate.name


@few
@given(specs)
def test_what_a_group_shares_gives_the_rank_and_spec_of_each_candidate(spec: Spec) -> None:
    search = _search(spec, most=Effect.HARDWARE)
    for effect in Effect:
        for number, found in enumerate(search.reachable(effect)):
            if number % 7 == 0:
                changed = changed_spec(spec, found.candidate.changes)
                assert found.candidate.effect is effect
                assert found.rank == search.rank(found.candidate, changed)
                assert found.spec == changed


@few
@given(specs)
def test_every_candidate_keeps_the_samples_of_a_step(spec: Spec) -> None:
    for candidate in Space(Subject(run_of(spec), spec)):
        assert changed_spec(spec, candidate.changes).effective_batch == spec.effective_batch, candidate.name


@few
@given(specs)
def test_only_what_leaves_the_training_alone_is_safe(spec: Spec) -> None:
    for candidate in Space(Subject(run_of(spec), spec)):
        changed = changed_spec(spec, candidate.changes)
        if candidate.effect is Effect.SAME:
            kept = ("loss", "attention", "method", "seq_len", "optimizer", "quantization", "engine", "mixed_precision")
            assert all(getattr(changed, name) == getattr(spec, name) for name in kept), candidate.name
            assert not candidate.notes
        else:
            assert candidate.notes, candidate.name


@few
@given(specs)
def test_changes_are_settings(spec: Spec) -> None:
    known = {field.name for field in fields(Spec)} | ZERO_SECTION
    for options in (axes(Subject(run_of(spec), spec)),):
        assert {name for axis in options for option in axis for name in option.changes} <= known


def test_flash_attention_is_a_way_where_sdpa_keeps_scores() -> None:
    base = {"gpu": "A100-SXM4-40GB", "gpus": 1, "weights_dtype": "bf16", "method": "lora", "lora_rank": 8}

    def kernels(**more: Any) -> list[Any]:
        spec = spec_from_mapping({**base, **more})
        return [option.changes["attention"] for option in attention.options(Subject(run_of(spec), spec))]

    assert kernels(model="tiiuae/falcon-7b") == ["flash_attention_2"]
    assert kernels(model="meta-llama/Llama-2-7b-hf") == []
    assert kernels(model="meta-llama/Llama-2-7b-hf", padded_batches=True) == ["flash_attention_2"]
    assert kernels(model="tiiuae/falcon-7b", gpu="T4") == []


def test_no_more_is_offloaded_than_a_run_needs_to_fit() -> None:
    """What asks for less of the host and fits alone is taken before what leaves more room on the GPU."""
    spec = spec_from_mapping(
        {
            "model": "Qwen/Qwen2.5-7B",
            "weights_dtype": "bf16",
            "mixed_precision": "bf16",
            "gpu": "A100-SXM4-80GB",
            "gpus": 4,
            "host_memory_gib": 1024,
            "engine": "deepspeed",
            "zero_stage": 3,
            "seq_len": 1024,
            "gradient_checkpointing": True,
        }
    )
    space = Space(Subject(run_of(spec), spec), Effect.NUMERICS)
    both = next(
        candidate
        for candidate in space
        if candidate.changes.get("offload_param") == "cpu" and candidate.changes.get("offload_optimizer") == "cpu"
    )
    less = [each.changes for each in space.offloading_less(both) if each is not None]
    assert less
    assert all(each.get("offload_param", "none") == "none" for each in less)


def test_a_run_that_keeps_its_activations_would_rather_recompute_than_have_sixteen_times_as_many_micro_batches() -> (
    None
):
    said = {"model": "Qwen/Qwen2.5-1.5B", "gpu": "RTX 3090", "seq_len": 512, "micro_batch_size": 16}
    for recomputes, one in ((False, 9), (True, 1)):
        spec = spec_from_mapping({**said, "gradient_checkpointing": recomputes})
        counts = {o.changes["micro_batch_size"]: o.counts for o in micro_batch.options(Subject(run_of(spec), spec))}
        assert counts == {1: one, 2: 1, 4: 1, 8: 1}


def test_room_is_a_fifth_of_the_gpu() -> None:
    result = estimate(spec_from_mapping({"model": "gpt2", "gpu": "RTX 3090", "seq_len": 128}))
    assert leaves_room(result, 2 * result.peak.likely) and not leaves_room(result, result.peak.likely + GIB // 8)
