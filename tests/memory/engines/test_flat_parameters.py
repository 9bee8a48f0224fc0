"""FSDP 1's flat parameters that hold frozen weights and adapters, as LitGPT's and a script's own loops make them.

Counted with torch 2.6 on two gloo ranks: a block of 33,280 elements, 512 of them trained, has a gradient of 16,640
on each rank, and of 33,280 under ``no_sync``; a root unit in which nothing is trained has none.
"""

from __future__ import annotations

from typing import Any

import pytest

from lintfit.memory import estimate
from lintfit.memory.engines.fsdp import accumulated, flattened, fsdp, optimized, sharded, stored
from lintfit.memory.explain import OTHER, at
from lintfit.memory.reading.parse import spec_from_mapping
from lintfit.memory.spec import Spec
from lintfit.memory.tensors.parameters import inventory

LITGPT: dict[str, Any] = {"front_end": "litgpt", "fsdp": {"version": 1}}
OWN: dict[str, Any] = {"fsdp": {"version": 1, "adapters_apart": False}}


def spec(**more: Any) -> Spec:
    stated = {"model": "meta-llama/Meta-Llama-3-8B", "gpus": 4, "gpu": "A100-80GB", "engine": "fsdp", "method": "lora"}
    stated |= {"weights_dtype": "bf16", "mixed_precision": "no", "lora_dtype": "bf16", "gradient_checkpointing": True}
    return spec_from_mapping({**stated, "lora_targets": ["q_proj", "v_proj"], "lora_rank": 32, "loss": "full", **more})


@pytest.mark.parametrize("how", [LITGPT, OWN], ids=["litgpt", "own"])
def test_all_of_a_layer_has_a_gradient(how: dict[str, Any]) -> None:
    run = spec(**how)
    layers = sum(weight.bytes for weight in inventory(run).weights if weight.per_layer)
    assert flattened(run, inventory(run)).trainable_bytes == layers
    assert fsdp(run).reduced["gradients"] == pytest.approx(layers / 4, rel=1e-3)


@pytest.mark.parametrize("how", [LITGPT, OWN], ids=["litgpt", "own"])
def test_under_no_sync_it_is_whole(how: dict[str, Any]) -> None:
    run = spec(**how, gradient_accumulation_steps=4)
    held = stored(run)
    layers = sum(weight.bytes for weight in held.weights if weight.per_layer)
    assert accumulated(run, held, sharded(held, 4)) == layers
    grown = estimate(run).allocated_bytes - estimate(spec(**how)).allocated_bytes
    assert grown > 0.7 * layers


def test_peft_wraps_its_adapters_apart() -> None:
    run = spec(fsdp={"version": 1}, gradient_accumulation_steps=4)
    held = stored(run)
    assert held.trainable_bytes == inventory(run).trainable_bytes
    second = spec(front_end="litgpt", fsdp={"version": 2})
    assert flattened(second, inventory(second)) is inventory(second)


def test_the_optimizer_steps_adapters_alone() -> None:
    run = spec(**LITGPT)
    stepped = optimized(run, sharded(stored(run), 4))
    # The flat parameter is cut from end to end: one rank may have all adapters of it.
    assert stepped.trainable_bytes == pytest.approx(inventory(run).trainable_bytes, rel=1e-3)


@pytest.mark.parametrize("how", [LITGPT, OWN], ids=["litgpt", "own"])
@pytest.mark.parametrize("steps", [1, 4])
def test_the_terms_explain_it(how: dict[str, Any], steps: int) -> None:
    run = spec(**how, gradient_accumulation_steps=steps)
    found = estimate(run)
    for moment in found.moments:
        assert not any(term.what == OTHER for part in at(run, found, moment) for term in part.terms)
