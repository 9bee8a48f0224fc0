"""An evaluation that only generates: prompts, keys and values, the logits of one token, and no loss."""

from __future__ import annotations

from typing import Any

import pytest

from lintfit.memory import estimate
from lintfit.memory.evaluation.generating import GENERATING, READING
from lintfit.memory.explain import OTHER, at
from lintfit.memory.reading.contradictions import SpecError
from lintfit.memory.reading.parse import spec_from_mapping
from lintfit.memory.result import Estimate, Moment, Verdict
from lintfit.memory.spec import Spec

BASE: dict[str, Any] = {
    "model": "meta-llama/Llama-3.2-3B",
    "gpu": "L40S",
    "weights_dtype": "bf16",
    "micro_batch_size": 4,
    "seq_len": 768,
    "padded_batches": True,
    "versions": {"transformers": "5.23.0"},
    "loss": "full",
    "fused_kernels": [],
}
CACHED = 28 * 2 * 8 * 128 * 2
"""Bytes of a token's keys and values."""
VOCAB = 128_256
ONLY: dict[str, Any] = {"batch_size": 50, "generates": "only", "prompt_len": 200, "new_tokens": 301}


def spec(more: dict[str, Any] | None = None, **evaluation: Any) -> Spec:
    return spec_from_mapping({**BASE, **(more or {}), "evaluation": {**ONLY, **evaluation}})


def moments(guess: Estimate) -> dict[str, Moment]:
    return {moment.name: moment for moment in guess.moments if moment.in_evaluation}


def test_it_has_no_loss() -> None:
    assert moments(estimate(spec())).keys() == {READING, GENERATING}


def test_keys_and_values_of_all_tokens_but_the_last() -> None:
    made = moments(estimate(spec(prompt_len=20, new_tokens=81)))[GENERATING].components
    assert made["logits"] == 50 * VOCAB * (4 + 2 + 4)
    assert made["activations"] == pytest.approx(50 * 100 * CACHED, rel=1e-3)
    longer = moments(estimate(spec()))[GENERATING].components
    assert longer["activations"] == pytest.approx(50 * 500 * CACHED * (1 + 1 / 2 / 28), rel=1e-3)


def test_keys_that_nothing_turns_stay_in_half_precision_under_autocast() -> None:
    """BLOOM adds its positions to the scores; Llama's rotary makes fp32 keys of an fp32 stream."""

    def held(model: str, layers: int, wide: int) -> float:
        autocast = {"model": model, "weights_dtype": "fp32", "mixed_precision": "bf16"}
        made = moments(estimate(spec(autocast, prompt_len=100, new_tokens=1901)))[GENERATING].components
        return made["activations"] / (50 * 2000 * 2 * layers * wide)

    assert 2 <= held("bigscience/bloom-560m", 24, 1024) < 2.2
    assert 4 <= held("huggyllama/llama-7b", 32, 4096) < 4.2


def test_the_logits_of_a_prompt() -> None:
    """Llama's ``forward`` knows ``num_logits_to_keep`` since 4.45, GPT-2's since 4.53."""

    def logits(version: str, **more: Any) -> int:
        run = spec({"versions": {"transformers": version}, **more}, new_tokens=1)
        return moments(estimate(run))[READING].components.get("logits", 0)

    assert logits("4.44.2") == 50 * 200 * VOCAB * (2 + 4)
    assert logits("4.45.0") == 0
    gpt2 = {"model": "gpt2", "seq_len": 512}
    assert logits("4.52.4", **gpt2) == 50 * 200 * 50_257 * 2
    assert logits("4.53.0", **gpt2) == 0


def test_groups_are_repeated_for_a_mask_before_5_23() -> None:
    def passing(version: str) -> int:
        run = spec({"versions": {"transformers": version}, "model": "Qwen/Qwen2.5-7B"}, batch_size=2, new_tokens=3000)
        return moments(estimate(run))[GENERATING].components["activations"]

    layer = 2 * 4 * 128 * 2 * 2 * 3199
    assert passing("5.22.0") - passing("5.23.0") == 7 * layer - layer // 2


def test_every_beam_is_a_row() -> None:
    one, four = (moments(estimate(spec(batch_size=size, beams=beams))) for size, beams in ((48, 1), (12, 4)))
    assert one[READING].components == four[READING].components
    assert four[GENERATING].components["logits"] - one[GENERATING].components["logits"] == 48 * VOCAB * 4


def test_the_newest_tokens_experts_are_copied_since_transformers_5() -> None:
    def temporaries(version: str) -> int:
        mixtral = {"model": "mistralai/Mixtral-8x7B-v0.1", "versions": {"transformers": version}, "optimizer": "sgd"}
        run = spec({**mixtral, "gpu": "H200"}, batch_size=16, prompt_len=64, new_tokens=16)
        return moments(estimate(run))[GENERATING].components.get("temporaries", 0)

    assert temporaries("5.23.0") - temporaries("4.57.0") == 16 * 2 * 3 * 4096 * 14336 * 2


@pytest.mark.parametrize(
    ("more", "reserved"),
    [
        ({"method": "full"}, 36.2),
        ({"method": "lora", "lora_rank": 32, "lora_targets": ["q_proj", "v_proj"], "lora_dtype": "fp32"}, 20.8),
    ],
)
def test_a_run_of_pefts_comparison(more: dict[str, Any], reserved: float) -> None:
    """huggingface/peft method_comparison/MetaMathQA: 50 prompts of GSM8K at once, answers of up to 300 tokens."""
    loop = {"optimizer": "adamw_torch", "use_cache": True, "loop_outputs": "held", "zero_grad": "forward"}
    asked = spec({**loop, **more}, new_tokens=300)
    with_loss = spec_from_mapping({**BASE, **loop, **more, "evaluation": {"batch_size": 50, "generates": True}})
    assert estimate(with_loss).verdict is Verdict.DOES_NOT_FIT
    found = estimate(asked)
    assert found.verdict is Verdict.FITS
    assert found.allocated_bytes / 2**30 == pytest.approx(reserved, rel=0.05)
    assert max(moment.allocated for moment in moments(found).values()) < found.allocated_bytes


def test_prompts_of_unknown_length_are_one_token_at_the_low_end() -> None:
    said, unsaid = estimate(spec(batch_size=1000)), estimate(spec(batch_size=1000, prompt_len=None))
    one = estimate(spec(batch_size=1000, prompt_len=1))
    assert unsaid.peak.low == one.peak.low < said.peak.low
    assert any("evaluation.prompt_len not stated" in line for line in unsaid.assumptions)
    assert not any("evaluation.prompt_len not stated" in line for line in said.assumptions)


@pytest.mark.parametrize(
    ("evaluation", "more", "line"),
    [
        ({"generates": False}, {}, "evaluation.prompt_len: 200 needs evaluation.generates"),
        ({"generates": "yes"}, {}, "evaluation.generates: 'yes' must be one of true, false, 'only'"),
        ({"prompt_len": 0}, {}, "evaluation.prompt_len: 0 must be a whole number"),
        ({}, {"trainer": "reward"}, "evaluation.generates: a model with scores generates nothing"),
    ],
)
def test_what_cannot_be(evaluation: dict[str, Any], more: dict[str, Any], line: str) -> None:
    with pytest.raises(SpecError, match=line):
        spec(more, **evaluation)


@pytest.mark.parametrize("more", [{}, {"prompt_len": 512, "new_tokens": 64}])
def test_a_decoder_keeps_what_its_encoder_has_read(more: dict[str, Any]) -> None:
    """``predict_with_generate`` on T5 of 24 layers with 16 heads of 64 (``EncoderDecoderCache``)."""
    t5 = {"model": "google-t5/t5-large", "weights_dtype": "fp32", "decoder_seq_len": 64, "seq_len": 512}
    asked = {"batch_size": 8, "predictions": "kept", "samples": 8, "generates": True, **more}
    found, without = (
        moments(estimate(spec_from_mapping({**BASE, **t5, "evaluation": {**asked, "beams": beams}})))
        for beams in (2, 1)
    )
    name = "evaluation, generation"
    added = found[name].components["activations"] - without[name].components["activations"]
    assert added == 25 * 2 * 16 * 64 * 4 * 8 * (512 + 64)


def test_grpo_generates_in_its_own_way() -> None:
    assert moments(estimate(spec({"trainer": "grpo"}))).keys() >= {"evaluation", "evaluation, generation"}


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"versions": {"transformers": "4.41.2"}},
        {"weights_dtype": "fp32", "mixed_precision": "bf16"},
        {"engine": "fsdp", "gpus": 2},
        {"gpus": 2, "zero_stage": 3},
        {"model": "Qwen/Qwen3-30B-A3B", "gpu": "H200"},
        {"attention": "flash_attention_2"},
    ],
)
def test_every_byte_has_a_term(more: dict[str, Any]) -> None:
    run = spec(more)
    guess = estimate(run)
    for moment in moments(guess).values():
        assert [part for part in at(run, guess, moment) for term in part.terms if term.what == OTHER] == []
