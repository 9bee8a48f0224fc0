"""ZeRO 1 and 2 with an offloaded optimizer, DeepSpeed 0.14.1 to 0.16.9: the new masters are put on the GPU in fp32.

``stage_1_and_2.py`` of the releases 0.14.0, 0.14.1, 0.16.9 and 0.17.0: ``bit16_partitions[partition_id].data.copy_(
fp32_partition.to(get_accelerator().current_device_name()).data)``.
"""

from __future__ import annotations

from typing import Any

import pytest

from lintfit.memory import estimate
from lintfit.memory.explain import at
from lintfit.memory.reading.parse import spec_from_mapping
from lintfit.memory.result import Estimate, Moment
from tests.support import published

RUN: dict[str, Any] = {
    "model": "Qwen/Qwen2.5-7B",
    "gpu": "RTX 3090",
    "gpus": 8,
    "zero_stage": 2,
    "offload_optimizer": "cpu",
    "mixed_precision": "bf16",
    "micro_batch_size": 1,
    "seq_len": 512,
}
MASTERS = 4 * published("Qwen/Qwen2.5-7B-Instruct") // 8


def run(versions: dict[str, str], **more: Any) -> Estimate:
    return estimate(spec_from_mapping({**RUN, **more, "versions": versions}))


def step(found: Estimate) -> Moment:
    return next(moment for moment in found.moments if moment.phase == "step")


@pytest.mark.parametrize("stage", [1, 2])
@pytest.mark.parametrize(
    ("version", "copied"), [("0.14.0", 0), ("0.14.1", MASTERS), ("0.16.9", MASTERS), ("0.17.0", 0), ("0.19.8", 0)]
)
def test_the_masters_are_copied_to_the_gpu(version: str, copied: int, stage: int) -> None:
    found = step(run({"deepspeed": version}, zero_stage=stage))
    assert found.components.get("temporaries", 0) == pytest.approx(copied, rel=1e-3)


def test_they_are_explained() -> None:
    versions = {"deepspeed": "0.15.4"}
    found = run(versions)
    parts = at(spec_from_mapping({**RUN, "versions": versions}), found, step(found))
    (temporaries,) = [part for part in parts if part.component == "temporaries"]
    assert [term.what for term in temporaries.terms] == ["the new masters, to be cast"]


def test_where_nobody_states_the_version_the_months_of_transformers_do() -> None:
    then, now = run({"transformers": "4.46.0"}, gpus=1, gpu="A100-40GB"), run({"transformers": "4.55.0"}, gpus=1)
    stated = run({"transformers": "4.46.0", "deepspeed": "0.16.9"}, gpus=1, gpu="A100-40GB")
    assert any("fp32 masters on the GPU" in line for line in then.assumptions)
    assert not any("fp32 masters on the GPU" in line for line in now.assumptions)
    assert then.peak.high >= stated.peak.likely > then.peak.likely


def test_stage_3_and_states_on_the_gpu_have_no_such_copy() -> None:
    for more in ({"zero_stage": 3}, {"offload_optimizer": "none"}):
        old, new = (run({"deepspeed": version}, **more) for version in ("0.16.9", "0.17.0"))
        assert step(old).components.get("temporaries", 0) == step(new).components.get("temporaries", 0)
