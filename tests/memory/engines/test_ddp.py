"""DDP's buckets, beside the gradients or in their place.

torch 2.13 on gloo, eight linear layers of 256 x 256 in fp32: with ``gradient_as_bucket_view`` the gradients lie in two
storages of 2,097,152 bytes together, as much as the parameters; without it in eight of their own beside the buckets.
"""

from __future__ import annotations

from typing import Any

import pytest

from lintfit.memory import estimate
from lintfit.memory.explain import at
from lintfit.memory.reading.contradictions import SpecError
from lintfit.memory.reading.parse import spec_from_mapping
from lintfit.memory.result import Estimate, Moment
from lintfit.memory.spec import Spec
from tests.support import published

RUN: dict[str, Any] = {
    "model": "Qwen/Qwen2.5-0.5B",
    "gpu": "A100-80GB",
    "gpus": 4,
    "weights_dtype": "fp32",
    "mixed_precision": "no",
    "micro_batch_size": 1,
    "seq_len": 128,
    "optimizer": "adamw_torch_fused",
}
TRAINED = 4 * published("Qwen/Qwen2.5-0.5B")
LARGEST = 4 * 151_936 * 896


def spec(**more: Any) -> Spec:
    return spec_from_mapping({**RUN, **more})


def moment(found: Estimate, name: str) -> Moment:
    return next(each for each in found.moments if each.name == name)


@pytest.mark.parametrize("steps", [1, 4])
def test_views_take_the_place_of_gradients(steps: int) -> None:
    beside, views = (
        estimate(spec(gradient_as_bucket_view=view, gradient_accumulation_steps=steps)) for view in (False, True)
    )
    for name in ("optimizer step", "end of backward"):
        parts = moment(views, name).components
        assert parts.get("gradients", 0) == 0
        assert parts["communication_buffers"] == pytest.approx(TRAINED, rel=1e-3)
    saved = moment(beside, "optimizer step").allocated - moment(views, "optimizer step").allocated
    assert saved == pytest.approx(TRAINED, rel=1e-3)
    assert any("gradient_as_bucket_view" in line for line in beside.assumptions) is False


def test_a_gradient_is_made_apart_before_it_goes_into_its_bucket() -> None:
    (views,) = [estimate(spec(gradient_as_bucket_view=True))]
    assert moment(views, "end of backward").components["temporaries"] >= LARGEST


def test_nobody_says_so() -> None:
    assert any("gradient_as_bucket_view is off" in line for line in estimate(spec()).assumptions)


def test_they_are_explained() -> None:
    asked = spec(gradient_as_bucket_view=True)
    found = estimate(asked)
    explained = [(each, part) for each in found.moments for part in at(asked, found, each)]
    assert all(part.size == each.components[part.component] for each, part in explained)
    buffers = [part for _, part in explained if part.component == "communication_buffers"]
    assert buffers and all(any("views" in term.what for term in part.terms) for part in buffers)


@pytest.mark.parametrize("more", [{"zero_stage": 2}, {"engine": "fsdp"}, {"gpus": 1}])
def test_only_ddp_has_buckets_of_this_kind(more: dict[str, Any]) -> None:
    with pytest.raises(SpecError, match="gradient_as_bucket_view: true needs engine 'ddp'"):
        spec(gradient_as_bucket_view=True, **more)
