"""Which kernel runs where nobody states one, and what follows from it for the layer, the planner and the step time."""

from __future__ import annotations

from typing import Any

import pytest

from lintfit.fit.axes import attention
from lintfit.fit.options import Subject, run_of
from lintfit.fit.speed import arithmetic
from lintfit.memory import estimate
from lintfit.memory.activations.recipe import attention_of
from lintfit.memory.reading.parse import spec_from_mapping
from lintfit.memory.spec import Spec

RUN = {"gpu": "A100-SXM4-80GB", "weights_dtype": "bf16", "mixed_precision": "bf16", "seq_len": 2048}


def spec(model: str, **more: Any) -> Spec:
    return spec_from_mapping({**RUN, "model": model, **more})


def offered(run: Spec) -> list[str]:
    return [option.name for option in attention.options(Subject(run_of(run), run))]


@pytest.mark.parametrize(
    ("model", "transformers", "kernel"),
    [
        ("facebook/opt-6.7b", "4.45.2", "eager"),
        ("facebook/opt-6.7b", "4.46.3", "sdpa"),
        ("google/gemma-2-9b", "4.47.1", "eager"),
        ("google/gemma-2-9b", "4.57.6", "sdpa"),
        ("google/gemma-2-9b", "5.21.0", "eager"),
        ("EleutherAI/gpt-j-6b", "5.23.0", "eager"),
    ],
)
def test_the_default_goes_by_the_version(model: str, transformers: str, kernel: str) -> None:
    assert attention_of(spec(model, versions={"transformers": transformers})) == kernel


@pytest.mark.parametrize(
    ("model", "torch", "kernel"),
    [
        ("huggyllama/llama-7b", "2.0.1", "eager"),
        ("huggyllama/llama-7b", "2.1.0", "eager"),
        ("huggyllama/llama-7b", "2.1.1", "sdpa"),
        ("tiiuae/falcon-7b", "2.0.1", "sdpa"),
    ],
)
def test_the_default_goes_by_torch_too(model: str, torch: str, kernel: str) -> None:
    """Falcon's class called SDPA before transformers chose among kernels."""
    assert attention_of(spec(model, versions={"torch": torch})) == kernel


def test_who_states_sdpa_has_a_version_with_it() -> None:
    assert attention_of(spec("google/gemma-2-9b", attention="sdpa")) == "sdpa"
    assert attention_of(spec("EleutherAI/gpt-j-6b", attention="sdpa")) == "eager"


def test_what_runs_eager_without_saying_so_is_offered_another_kernel() -> None:
    assert offered(spec("EleutherAI/gpt-j-6b")) == ["FlashAttention 2"]
    assert offered(spec("google/gemma-2-9b", versions={"transformers": "5.23.0"})) == ["FlashAttention 2"]
    assert offered(spec("facebook/opt-6.7b", versions={"transformers": "4.45.2"})) == ["FlashAttention 2"]
    assert offered(spec("facebook/opt-6.7b", attention="eager")) == ["sdpa attention", "FlashAttention 2"]
    assert offered(spec("huggyllama/llama-7b", versions={"torch": "2.0.1"})) == ["FlashAttention 2"]
    assert offered(spec("huggyllama/llama-7b", versions={"transformers": "4.29.0"})) == []
    assert offered(spec("openai/gpt-oss-20b")) == offered(spec("bigscience/bloom-7b1")) == []


def test_gptj_with_flash_attention_keeps_no_scores() -> None:
    kernels = ("eager", "flash_attention_2")
    eager, flash = (estimate(spec("EleutherAI/gpt-j-6b", attention=kernel)) for kernel in kernels)
    scores = 28 * 16 * 2048 * 2048 * 2  # one bf16 copy of each
    assert eager.allocated_bytes - flash.allocated_bytes > 2 * scores


def test_the_step_time_goes_by_what_runs() -> None:
    run = {"versions": {"transformers": "4.45.2"}}
    assert arithmetic(spec("facebook/opt-6.7b", **run)) == arithmetic(spec("facebook/opt-6.7b", attention="eager"))
    assert arithmetic(spec("facebook/opt-6.7b", **run)) > arithmetic(spec("facebook/opt-6.7b"))
