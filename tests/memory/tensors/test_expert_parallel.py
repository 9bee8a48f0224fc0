"""Experts that are shared out over ranks: whose weights and whose states a rank has."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lintfit.catalog import models
from lintfit.memory import estimate
from lintfit.memory.engines.model_states import states
from lintfit.memory.recording import record
from lintfit.memory.result import Verdict
from lintfit.memory.spec import GIB, Spec
from lintfit.memory.tensors.parameters import inventory
from tests.memory.conftest import llama

FACTS = models.find("mistralai/Mixtral-8x7B-v0.1")
assert FACTS is not None
WHOLE = Spec(facts=FACTS, engine="deepspeed", zero_stage=2, gpus=8, mixed_precision="bf16", seq_len=512)
SPLIT = replace(WHOLE, expert_parallel=4)
EXPERTS = sum(tensor.total for tensor in FACTS.tensors if tensor.role == "expert")


def test_a_rank_has_a_part_of_the_experts_and_all_else() -> None:
    assert inventory(WHOLE).trainable - inventory(SPLIT).trainable == EXPERTS * 3 // 4


@pytest.mark.parametrize("stage", [1, 2, 3])
def test_masters_and_states_of_a_rank_are_what_they_are_without(stage: int) -> None:
    whole, split = (states(replace(spec, zero_stage=stage)).save for spec in (WHOLE, SPLIT))
    for kind in ("master_weights", "optimizer_states"):
        assert split[kind] == pytest.approx(whole[kind], rel=1e-6)


def test_a_layer_makes_gradients_of_its_own_experts_only() -> None:
    made = [record(spec, states(spec)).layers[0].weights for spec in (WHOLE, SPLIT)]
    assert made[0] - made[1] == 2 * EXPERTS * 3 // 4 // FACTS.layers


def test_experts_are_not_split_twice() -> None:
    both = replace(SPLIT, tensor_parallel=4, gpus=8)
    experts = sum(weight.total for weight in inventory(both).weights if weight.role == "expert")
    assert experts == EXPERTS // 4


def test_experts_that_nobody_can_share_are_not_said_to_fit() -> None:
    for changes, line in (({"gpus": 3, "expert_parallel": 3}, "8 experts"), ({"facts": llama()}, "has none")):
        found = estimate(replace(SPLIT, capacity_bytes=2000 * GIB, **changes))  # type: ignore[arg-type]
        assert found.verdict is Verdict.UNKNOWN
        assert any(line in each for each in found.not_modelled)
