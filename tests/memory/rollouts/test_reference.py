"""The frozen reference: sharded as the policy is, offloaded with it, and gathered by FSDP while it runs."""

from __future__ import annotations

from typing import Any

import pytest

from lintfit.memory import estimate
from lintfit.memory.reading.parse import spec_from_mapping
from lintfit.memory.result import Estimate
from lintfit.memory.rollouts.reference import Gathered, beside_on_host, reference_bytes, reference_gathered
from lintfit.memory.spec import Spec
from tests.support import published

MODEL = "meta-llama/Llama-3.1-8B"
WHOLE = 2 * published("meta-llama/Meta-Llama-3-8B")
"""Bytes of the model in bf16."""


def _spec(**changes: Any) -> Spec:
    defaults = {"model": MODEL, "gpus": 16, "nodes": 2, "trainer": "dpo", "micro_batch_size": 1, "seq_len": 256}
    return spec_from_mapping({**defaults, **changes})


@pytest.mark.parametrize(
    ("changes", "ranks"),
    [
        ({"engine": "ddp"}, 1),
        ({"zero_stage": 2, "mixed_precision": "bf16"}, 1),
        ({"zero_stage": 3, "mixed_precision": "bf16"}, 16),
        ({"fsdp": {"version": 1}}, 16),
        ({"fsdp": {"version": 2}}, 16),
        ({"fsdp": {"version": 1, "strategy": "HYBRID_SHARD"}}, 8),
        ({"fsdp": {"version": 1, "strategy": "NO_SHARD"}}, 1),
        ({"fsdp": {"version": 1}, "trainer": "ppo"}, 1),
    ],
)
def test_it_is_shared_by_the_ranks_that_share_the_policy(changes: dict[str, Any], ranks: int) -> None:
    assert reference_bytes(_spec(**changes)) == -(-WHOLE // ranks)


def test_adapters_need_none() -> None:
    spec = _spec(fsdp={"version": 2}, method="lora")
    assert (reference_bytes(spec), reference_gathered(spec)) == (0, Gathered())


@pytest.mark.parametrize(
    "changes",
    [
        {"engine": "ddp"},
        {"zero_stage": 3, "mixed_precision": "bf16"},
        {"fsdp": {"version": 1}},
        {"fsdp": {"version": 2}},
        {"fsdp": {"version": 2, "strategy": "SHARD_GRAD_OP"}},
        {"fsdp": {"version": 1, "cpu_offload": True}},
        {"engine": "ddp", "trainer": "ppo"},
    ],
)
def test_one_that_is_handed_over_beside_adapters_is_as_that_of_a_model_that_trains_whole(
    changes: dict[str, Any],
) -> None:
    spec, whole = _spec(**changes, method="lora", reference_model=True), _spec(**changes, reference_model=True)
    assert reference_bytes(spec) == reference_bytes(whole)
    assert reference_gathered(spec) == reference_gathered(whole)
    assert beside_on_host(spec) == beside_on_host(whole)


@pytest.mark.parametrize("changes", [{"engine": "ddp"}, {"zero_stage": 3, "mixed_precision": "bf16"}])
def test_it_is_there_in_every_phase_beside_adapters(changes: dict[str, Any]) -> None:
    found, without = (
        estimate(_spec(**changes, method="lora", reference_model=reference)).moments for reference in (True, False)
    )
    share = reference_bytes(_spec(**changes, method="lora", reference_model=True))
    more = {
        here.name: here.components["parameters"] - there.components["parameters"]
        for here, there in zip(found, without, strict=True)
    }
    assert set(more.values()) == {share}


def test_both_are_read_before_the_policy_is_moved() -> None:
    """TRL makes the reference of a model that trains whole only behind that."""
    two, one = (estimate(_spec(engine="ddp", method="lora", reference_model=each)).host for each in (True, False))
    assert (two.load_peak, one.load_peak) == (2 * 8 * WHOLE, 8 * WHOLE)
    whole = estimate(_spec(engine="ddp", reference_model=True)).host
    assert whole.load_peak == 8 * WHOLE


def test_beside_a_base_of_four_bits_it_has_four_bits() -> None:
    settings = {"engine": "ddp", "method": "lora", "quantization": "nf4", "kbit_upcast": "all"}
    spec = _spec(**settings, reference_model=True)
    base = estimate(_spec(engine="ddp", method="lora", quantization="nf4")).component("parameters")
    assert WHOLE / 4 < reference_bytes(spec) < base


@pytest.mark.parametrize(
    ("changes", "copies"),
    [
        ({"zero_stage": 3, "offload_param": "cpu", "mixed_precision": "bf16"}, 1),
        ({"fsdp": {"cpu_offload": True}}, 2),
        ({"fsdp": {"version": 2, "cpu_offload": True}}, 1),
    ],
)
def test_it_is_offloaded_with_the_policys_parameters(changes: dict[str, Any], copies: int) -> None:
    """FSDP 1 locks a gradient of every unit, of a frozen one too."""
    spec = _spec(**changes)
    assert (reference_bytes(spec), beside_on_host(spec)) == (0, copies * 8 * -(-WHOLE // 16))
    without = estimate(_spec(**changes, reference_model=False))
    assert estimate(spec).host.steady - without.host.steady == beside_on_host(spec)


def test_nvme_takes_it_too() -> None:
    changes = {"zero_stage": 3, "offload_param": "nvme"}
    spec = _spec(**changes)
    without = estimate(_spec(**changes, reference_model=False))
    assert estimate(spec).host.nvme - without.host.nvme == beside_on_host(spec)
    assert estimate(spec).host.steady == without.host.steady


def _gathered(found: Estimate, moment: str) -> int:
    (point,) = [point for point in found.moments if point.name == moment]
    return point.components.get("communication_buffers", 0)


@pytest.mark.parametrize("trainer", ["dpo", "kto", "grpo"])
def test_fsdp_2_gathers_all_of_it_at_once(trainer: str) -> None:
    """The flat buffer stays beside the parameters until its forward is over; no other moment has any of it."""
    changes = {"fsdp": {"version": 2}, "trainer": trainer, "generation": {"completion_len": 64}}
    found = estimate(_spec(**changes, reference_model=True))
    without = estimate(_spec(**changes, reference_model=False))
    moment = "reference scored" if trainer == "grpo" else "reference, forward"
    assert _gathered(found, moment) - _gathered(without, "loss, forward") == 2 * WHOLE
    assert _gathered(found, "head, backward") == _gathered(without, "head, backward")


def test_fsdp_1_leaves_its_root_unit_gathered() -> None:
    found, without = (estimate(_spec(fsdp={"version": 1}, reference_model=reference)) for reference in (True, False))
    root = 2 * (2 * 128_256 * 4096 + 4096)
    assert _gathered(found, "optimizer step") - _gathered(without, "optimizer step") == root
    assert _gathered(found, "engine initialized") == _gathered(without, "engine initialized")
    layer = _gathered(found, "reference, forward") - _gathered(found, "loss, forward")
    assert layer == (WHOLE - root) // 32


def test_without_resharding_all_of_it_stays() -> None:
    for version, running in ((1, 0), (2, WHOLE)):
        spec = _spec(fsdp={"version": version, "strategy": "SHARD_GRAD_OP"})
        assert reference_gathered(spec) == Gathered(WHOLE, running)
