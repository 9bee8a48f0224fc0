"""The step-time model against what is known of it: the order of engines, published ratios and measured links."""

from __future__ import annotations

from typing import Any

import pytest

from lintfit.fit.speed import arithmetic, relative_step_time, rest, rounded
from lintfit.memory.reading.parse import spec_from_mapping
from lintfit.memory.spec import Spec

RUN = {
    "model": "meta-llama/Llama-2-7b-hf",
    "gpu": "A100-SXM4-80GB",
    "gpus": 4,
    "engine": "deepspeed",
    "zero_stage": 2,
    "weights_dtype": "bf16",
    "mixed_precision": "bf16",
    "micro_batch_size": 4,
    "seq_len": 2048,
}


def spec(**changes: Any) -> Spec:
    stated = {**RUN, **changes}
    if stated["engine"] != "deepspeed":
        del stated["zero_stage"]
    return spec_from_mapping({name: value for name, value in stated.items() if value is not None})


def test_a_second_forward_pass_takes_a_third_of_two() -> None:
    assert relative_step_time(spec(), spec(gradient_checkpointing=True)) == pytest.approx(4 / 3, abs=0.1)


def test_four_bits_take_what_litgpt_measured() -> None:
    one: dict[str, Any] = {"engine": "single", "gpus": 1, "method": "lora", "gpu": "A10G"}
    assert relative_step_time(spec(**one), spec(**one, quantization="nf4")) == pytest.approx(1.4, abs=0.05)


def communicated(**changes: Any) -> float:
    return rest(spec(**changes)).communication


def test_more_sharding_communicates_more() -> None:
    for steps in (1, 8):
        stages = [communicated(zero_stage=stage, gradient_accumulation_steps=steps) for stage in (1, 2, 3)]
        assert stages == sorted(stages)
    strategies = [
        communicated(engine="fsdp", fsdp={"version": 1, "strategy": strategy, "cpu_offload": False})
        for strategy in ("SHARD_GRAD_OP", "FULL_SHARD")
    ]
    assert strategies == sorted(strategies)
    assert communicated(zero_stage=1) == pytest.approx(communicated(zero_stage=1, gradient_accumulation_steps=8))


def test_links_are_in_their_order() -> None:
    cards = ("H100 SXM", "A100-SXM4-80GB", "A800", "V100-SXM2-32GB", "H100 PCIe", "A100 80GB PCIe")
    times = [communicated(gpu=card) for card in cards]
    assert times == sorted(times)
    assert communicated(gpus=16, nodes=2) > 5 * communicated(gpus=8)


def test_the_hosts_adam_takes_what_deepspeed_reports() -> None:
    offload = rest(spec(offload_optimizer="cpu")).offload
    assert offload == pytest.approx(4.0 + 2 * 2 * 6.74e9 / 4 / 26.3e9, rel=0.05)
    on_nvme = rest(spec(zero_stage=3, offload_optimizer="nvme")).offload
    assert on_nvme > 5 * offload


def test_a_frozen_model_takes_two_thirds_of_the_arithmetic() -> None:
    assert arithmetic(spec(method="lora")) / arithmetic(spec()) == pytest.approx(2 / 3, abs=0.05)


@pytest.mark.parametrize(("ratio", "shown"), [(1.234, 1.2), (2.96, 3.0), (3.3, 3.5), (9.8, 10.0), (12.4, 12.0)])
def test_no_more_digits_than_the_model_can_answer_for(ratio: float, shown: float) -> None:
    assert rounded(ratio) == shown
