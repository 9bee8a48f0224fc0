"""DeepSpeed's own estimators, where their assumptions are lintfit's; docs/memory.md explains the differences."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys

import pytest

from lintfit.catalog.facts import ModelFacts
from lintfit.memory.components import total
from lintfit.memory.engines.model_states import states
from lintfit.memory.spec import Spec


def test_nothing_but_the_formulas(small: ModelFacts) -> None:
    """The estimators' closed forms, so that the comparison holds without DeepSpeed installed."""
    parameters, largest = 7_000_000_000, 500_000_000
    assert zero2(parameters, 8, offload=False) == 2 * parameters + 18 * parameters / 8
    assert zero3(parameters, largest, 8, offload=True, params=True) == 4 * largest
    assert zero3(parameters, largest, 8, offload=False, params=False) == 4 * largest + 18 * parameters / 8


def zero2(parameters: int, gpus: int, *, offload: bool) -> float:
    """GPU bytes of ``estimate_zero2_model_states_mem_needs`` (deepspeed stage_1_and_2.py)."""
    return 2 * parameters if offload else 2 * parameters + 18 * parameters / gpus


def zero3(parameters: int, largest: int, gpus: int, *, offload: bool, params: bool) -> float:
    """GPU bytes of ``estimate_zero3_model_states_mem_needs`` (deepspeed stage3.py)."""
    if not offload:
        return 4 * largest + 18 * parameters / gpus
    return 4 * largest if params else 4 * largest + 2 * parameters / gpus


@pytest.mark.peers
def test_the_closed_forms_are_deepspeeds_own() -> None:
    if importlib.util.find_spec("deepspeed") is None:
        pytest.skip("needs the peers extra")
    code = (
        "import json;"
        "from deepspeed.runtime.zero.stage_1_and_2 import estimate_zero2_model_states_mem_needs as z2;"
        "from deepspeed.runtime.zero.stage3 import estimate_zero3_model_states_mem_needs as z3;"
        "P, L = 7_000_000_000, 500_000_000;"
        "print(json.dumps([z2(P, 8, 1, False)[1], z2(P, 8, 1, True)[1], z3(P, L, 8, 1, False, False, True)[1],"
        " z3(P, L, 8, 1, True, False, True)[1], z3(P, L, 8, 1, True, True, True)[1]]))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    parameters, largest = 7_000_000_000, 500_000_000
    assert json.loads(ran.stdout.splitlines()[-1]) == pytest.approx(
        [
            zero2(parameters, 8, offload=False),
            zero2(parameters, 8, offload=True),
            zero3(parameters, largest, 8, offload=False, params=False),
            zero3(parameters, largest, 8, offload=True, params=False),
            zero3(parameters, largest, 8, offload=True, params=True),
        ],
        rel=1e-6,
    )


@pytest.mark.parametrize("gpus", [2, 8, 64])
def test_zero_2_between_backward_and_step(baichuan_7b: ModelFacts, gpus: int) -> None:
    """DeepSpeed counts 2P + 18P/N: weights, masters, states, and fp32 gradients beside... the 16-bit ones gone."""
    held = states(Spec(baichuan_7b, engine="deepspeed", zero_stage=2, gpus=gpus, mixed_precision="bf16"))
    parts = dict(held.reduced)
    # In optimizer.step the gradients are one fp32 copy: 2P + (4 + 8 + 4)P/N; DeepSpeed's 18 adds 16-bit gradients.
    parts["gradients"] = (4 + 2) * baichuan_7b.parameters // gpus
    assert total(parts) == pytest.approx(zero2(baichuan_7b.parameters, gpus, offload=False), rel=1e-4)


def test_zero_2_with_offload(baichuan_7b: ModelFacts) -> None:
    spec = Spec(baichuan_7b, engine="deepspeed", zero_stage=2, gpus=8, mixed_precision="bf16", offload_optimizer="cpu")
    # lintfit adds the buffer of one gradient on its way to the host (temp_grad_buffer_for_gpu_offload).
    held = states(spec).forward
    assert held["parameters"] == pytest.approx(zero2(baichuan_7b.parameters, 8, offload=True), rel=1e-4)
    assert held["communication_buffers"] == 2 * 64_000 * 4096


def test_zero_3_without_the_gather(baichuan_7b: ModelFacts) -> None:
    spec = Spec(baichuan_7b, engine="deepspeed", zero_stage=3, gpus=8, mixed_precision="bf16")
    held = states(spec)
    kinds = ("parameters", "master_weights", "optimizer_states")
    # 18P/N is 2 + 4 + 8 and fp32 gradients in the step; the largest layer's 4 bytes are a gather.
    inside = sum(held.step[kind] for kind in kinds) + 4 * baichuan_7b.parameters // 8
    assert inside == pytest.approx(zero3(baichuan_7b.parameters, 0, 8, offload=False, params=False), rel=2e-3)
