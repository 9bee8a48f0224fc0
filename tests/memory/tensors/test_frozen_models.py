"""Models on the GPU beside the trained one: their weights count in every phase, and no verdict stands on the rest."""

from __future__ import annotations

from typing import Any

import pytest

from lintfit.memory import estimate
from lintfit.memory.explain import explain
from lintfit.memory.reading.contradictions import SpecError
from lintfit.memory.reading.parse import spec_from_mapping
from lintfit.memory.result import Estimate, Verdict
from tests.support import published

TEACHER = "Qwen/Qwen2.5-7B"
PARAMETERS = published("Qwen/Qwen2.5-7B-Instruct")
HEAD = 152_064 * 3584


def run(*models: dict[str, Any], **more: Any) -> Estimate:
    stated = {"model": "Qwen/Qwen2.5-0.5B", "gpu": "A100-80GB", "seq_len": 512, **more}
    return estimate(spec_from_mapping({**stated, "frozen_models": list(models)}))


@pytest.mark.parametrize(
    ("stated", "size"),
    [
        ({}, 2 * PARAMETERS),
        ({"weights_dtype": "fp32"}, 4 * PARAMETERS),
        ({"scores": True, "weights_dtype": "bf16"}, 2 * (PARAMETERS - HEAD)),
    ],
)
def test_the_weights_are_there_in_every_phase(stated: dict[str, Any], size: int) -> None:
    without, found = run(), run({"model": TEACHER, **stated})
    for before, after in zip(without.moments, found.moments, strict=True):
        assert after.allocated - before.allocated == pytest.approx(size, rel=1e-3)
    assert without.not_modelled == ()


def test_quantised_it_takes_a_quarter_and_what_stays_whole() -> None:
    words = 2 * 2 * HEAD  # embedding and head stay in 16 bits
    found = run({"model": TEACHER, "quantization": "nf4-double"}).moments[0].allocated - run().moments[0].allocated
    assert found == pytest.approx(words + (1 / 2 + 1 / 64 + 4 / (64 * 256)) * (PARAMETERS - 2 * HEAD), rel=0.01)


def test_no_verdict_stands_on_what_nobody_has_counted() -> None:
    found = run({"model": TEACHER})
    assert run().verdict is Verdict.FITS
    assert found.verdict is Verdict.UNKNOWN
    assert any(TEACHER in line for line in found.not_modelled)
    assert run({"model": TEACHER}, gpu="RTX 3060").verdict is Verdict.DOES_NOT_FIT


def test_rewards_are_asked_for_where_no_graph_is_alive() -> None:
    found = run({"model": TEACHER, "scores": True}, trainer="grpo")
    assert found.verdict is Verdict.FITS and not found.not_modelled


@pytest.mark.parametrize(
    ("more", "share"),
    [
        ({"zero_stage": 2}, 1),
        ({"zero_stage": 3}, 4),
        ({"engine": "fsdp"}, 1),
        ({"zero_stage": 3, "offload_param": "cpu"}, None),
        ({"engine": "fsdp", "prepared": True}, 4),
        ({"engine": "ddp", "prepared": True}, 1),
        ({"engine": "fsdp", "prepared": True, "fsdp": {"cpu_offload": True}}, None),
    ],
)
def test_stage_3_shards_it_and_fsdp_where_accelerate_prepares_it(more: dict[str, Any], share: int | None) -> None:
    teacher = {"model": TEACHER, "prepared": more.get("prepared", False)}
    others = {key: value for key, value in more.items() if key != "prepared"}
    found = run(teacher, gpus=4, **others).moments[0].allocated - run(gpus=4, **others).moments[0].allocated
    assert found == pytest.approx(2 * PARAMETERS / share if share else 0, rel=1e-3)


def test_it_is_explained() -> None:
    spec = spec_from_mapping({"model": "gpt2", "frozen_models": [{"model": TEACHER}]})
    part = next(part for part in explain(spec, estimate(spec)) if part.component == "parameters")
    assert any(item.what == f"{TEACHER}, beside the trained model" for item in part.terms)


@pytest.mark.parametrize(
    ("stated", "message"),
    [
        ({"model": TEACHER}, "frozen_models: {'model': 'Qwen/Qwen2.5-7B'} must be a list of objects"),
        ([TEACHER], "frozen_models[0]: 'Qwen/Qwen2.5-7B' must be a JSON object"),
        ([{"model": "no/such"}], "frozen_models[0].model: 'no/such' is not known"),
        ([{"model": TEACHER}, {}], "frozen_models[1].model: missing"),
        ([{"model": TEACHER, "dtype": "bf16"}], "frozen_models[0].dtype: unknown key"),
        ([{"model": TEACHER, "weights_dtype": "int3"}], "frozen_models[0].weights_dtype: 'int3' must be one of"),
    ],
)
def test_bad_input(stated: Any, message: str) -> None:
    with pytest.raises(SpecError) as caught:
        spec_from_mapping({"model": "gpt2", "frozen_models": stated})
    assert str(caught.value).startswith(message) and "\n" not in str(caught.value)
