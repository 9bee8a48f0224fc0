"""Bugs of certain versions: which runs meet them, what they cost, and that each is within its versions only."""

from __future__ import annotations

from typing import Any

import pytest

from lintfit.memory import estimate, known_bugs
from lintfit.memory.reading.parse import spec_from_mapping
from lintfit.versions import numbers

LLAMA_70B = 70_553_706_496
RUNS: dict[str, dict[str, Any]] = {
    "bnb-save": {"model": "huggyllama/llama-7b", "method": "lora", "quantization": "int8", "gpu": "A100-80GB"},
    "resume-on-gpu": {"model": "gpt2", "resumes": True},
    "resume-copies": {"model": "gpt2", "resumes": True, "gpus": 2},
    "square-mask": {
        "model": "deepseek-ai/deepseek-coder-6.7b-instruct", "weights_dtype": "bf16", "micro_batch_size": 2,
    },
    "fsdp2-frozen-fp32": {
        "model": "meta-llama/Llama-3.1-70B", "method": "lora", "weights_dtype": "bf16", "mixed_precision": "bf16",
        "fsdp": {"version": 2}, "gpus": 8,
    },
    "fsdp2-load": {"model": "gpt2", "fsdp": {"version": 2}, "gpus": 2},
    "fsdp2-get-state-dict": {"model": "gpt2", "fsdp": {"version": 2}, "gpus": 2},
    "fsdp1-frozen-gradients": {
        "model": "meta-llama/Llama-2-7b-hf", "front_end": "litgpt", "method": "lora", "weights_dtype": "bf16",
        "fsdp": {"version": 1}, "gpus": 4,
    },
    "merged-in-fp32": {"model": "gpt2", "method": "lora", "merges": True, "weights_dtype": "bf16"},
    "masters-on-gpu": {
        "model": "gpt2", "zero_stage": 2, "offload_optimizer": "cpu", "mixed_precision": "bf16", "gpus": 2,
    },
    "zero3-left-gathered": {"model": "gpt2", "zero_stage": 3, "trainer": "dpo", "method": "lora", "gpus": 2},
    "trl-offload-leak": {"model": "gpt2", "activation_offload": True, "gradient_checkpointing": True},
}  # fmt: skip
ROWS = {bug.name: bug for bug in known_bugs.BUGS}


def _met(name: str, version: str | None, **more: Any) -> dict[str, known_bugs.Met]:
    versions = {"versions": {ROWS[name].library: version}} if version is not None else {}
    spec = spec_from_mapping({"micro_batch_size": 1, "seq_len": 512, **RUNS[name], **versions, **more})
    return {each.bug.name: each for each in known_bugs.met(spec)}


def _before(version: str) -> str:
    parts = list(numbers(version) or ())
    last = max(index for index, number in enumerate(parts) if number)
    return ".".join(map(str, [*parts[:last], parts[last] - 1, *[9] * (2 - last)]))


def test_every_row_has_a_run_here() -> None:
    assert set(RUNS) == set(ROWS)


@pytest.mark.parametrize("name", sorted(RUNS))
def test_within_its_versions_only(name: str) -> None:
    bug = ROWS[name]
    assert name in _met(name, _before(bug.until))
    assert name not in _met(name, bug.until)
    assert name not in _met(name, None), "what nobody states is the newest"
    if bug.since is not None:
        assert name in _met(name, bug.since) and name not in _met(name, _before(bug.since))


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("bnb-save", {"saves": False}),
        ("bnb-save", {"quantization": "nf4"}),
        ("resume-on-gpu", {"resumes": False}),
        ("resume-on-gpu", {"gpus": 2}),
        ("resume-copies", {"gpus": 1}),
        ("square-mask", {"attention": "flash_attention_2"}),
        ("square-mask", {"model": "Qwen/Qwen1.5-7B"}),
        ("fsdp2-frozen-fp32", {"fsdp": {"version": 1}}),
        ("fsdp2-frozen-fp32", {"mixed_precision": "no"}),
        ("fsdp2-frozen-fp32", {"method": "full"}),
        ("masters-on-gpu", {"zero_stage": 3}),
        ("zero3-left-gathered", {"method": "full"}),
        ("trl-offload-leak", {"activation_offload": False}),
    ],
)
def test_only_where_a_run_meets_it(name: str, more: dict[str, Any]) -> None:
    assert name not in _met(name, _before(ROWS[name].until), **more)


def test_what_they_cost() -> None:
    mask = _met("square-mask", "4.38.2")["square-mask"].bytes
    assert mask == 16384**2 * (1 + 2 * 2), "a Boolean mask, and two samples in bf16"
    frozen = _met("fsdp2-frozen-fp32", "1.10.1")["fsdp2-frozen-fp32"].bytes
    assert frozen == pytest.approx(2 * LLAMA_70B / 8, rel=0.01)


@pytest.mark.parametrize("steps", [1, 4])
def test_gradients_of_what_is_frozen_are_sharded_as_all_are(steps: int) -> None:
    """Each of 64 ranks has its 64th of the layers', or all where it accumulates, however large the adapters are."""
    large = {"lora_rank": 256, "lora_targets": "all-linear", "gpus": 64, "gradient_accumulation_steps": steps}
    base = 2 * (6_738_415_616 - 2 * 32_000 * 4096)
    found = _met("fsdp1-frozen-gradients", "0.4.0", **large)["fsdp1-frozen-gradients"].bytes
    assert found == pytest.approx(base if steps > 1 else base / 64, rel=0.01)


def test_what_is_not_counted_is_on_top_of_the_high_end() -> None:
    def run(version: str) -> Any:
        return estimate(spec_from_mapping({**RUNS["square-mask"], "versions": {"transformers": version}}))

    bugged, mended = run("4.38.2"), run("4.39.3")
    assert bugged.peak.high - mended.peak.high == 16384**2 * 5
    assert [line for line in bugged.assumptions if line.startswith("known bug: transformers 4.38.2 ")]
    assert not [line for line in mended.assumptions if line.startswith("known bug")]
