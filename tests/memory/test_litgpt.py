"""LitGPT's runs against what LitGPT published: ``config_hub/finetune/README.md`` and ``tutorials/resource-tables.md``.

Both print ``torch.cuda.max_memory_allocated() / 1e9``; the first on an A10G with Alpaca2k cut to 512 tokens and
bitsandbytes 0.42.0, the second on an A100 with Alpaca's longest sample and bitsandbytes 0.41.1.
"""

from __future__ import annotations

import pytest

from lintfit.memory import estimate
from lintfit.memory.litgpt import Switches, as_built, switches
from lintfit.memory.reading.parse import spec_from_mapping

ATTENTION = ["q_proj", "v_proj"]
EVERY = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj", "lm_head"]

PUBLISHED = [
    ("tiiuae/falcon-7b", 1, 512, 32, ATTENTION, "nf4", 9.44),
    ("google/gemma-2b", 2, 512, 8, EVERY, None, 12.62),
    ("google/gemma-7b", 1, 512, 16, EVERY, "nf4", 17.18),
    ("google/gemma-2-9b", 1, 512, 16, EVERY, "nf4", 20.92),
    ("meta-llama/Llama-2-7b-hf", 2, 512, 32, ATTENTION, None, 19.77),
    ("meta-llama/Llama-2-7b-hf", 2, 512, 32, ATTENTION, "nf4", 13.68),
    ("meta-llama/Meta-Llama-3.1-8B", 2, 512, 32, ATTENTION, "nf4", 17.41),
    ("meta-llama/Llama-3.2-1B", 1, 512, 32, ATTENTION, None, 4.49),
    ("meta-llama/Llama-3.2-3B", 2, 512, 32, ATTENTION, "nf4", 10.30),
    ("mistralai/Mistral-7B-v0.1", 2, 512, 32, ATTENTION, "nf4", 14.29),
    ("microsoft/phi-2", 4, 512, 8, EVERY, None, 13.98),
    ("microsoft/phi-2", 4, 512, 8, EVERY, "nf4", 14.27),
    ("microsoft/Phi-3-mini-4k-instruct", 4, 512, 8, EVERY, None, 19.75),
    ("microsoft/Phi-3-mini-4k-instruct", 4, 512, 8, EVERY, "nf4", 19.13),
    ("TinyLlama/TinyLlama-1.1B", 8, 512, 32, EVERY, "nf4", 16.24),
    ("meta-llama/Llama-2-7b-hf", 1, 1304, 8, ATTENTION, None, 21.30),
    ("meta-llama/Llama-2-7b-hf", 2, 1304, 8, ATTENTION, None, 29.07),
    ("stabilityai/stablelm-base-alpha-3b", 4, 1034, 8, ATTENTION, None, 16.92),
]


def spec(
    model: str, batch: int, seq: int, rank: int, targets: list[str], quantization: str | None
) -> dict[str, object]:
    return {
        "model": model,
        "gpu": "A10G-24GB",
        "front_end": "litgpt",
        "method": "lora",
        "lora_rank": rank,
        "lora_targets": targets,
        "quantization": quantization,
        "micro_batch_size": batch,
        "seq_len": seq,
        "weights_dtype": "bf16",
        "optimizer": "adamw_torch" if quantization is None else "paged_adamw_32bit",
        "loss": "full",
        "versions": {"bitsandbytes": "0.42.0"},
    }


@pytest.mark.parametrize("run", PUBLISHED, ids=lambda run: f"{run[0].rpartition('/')[2]}-{run[5]}-{run[1]}x{run[2]}")
def test_published_peak(run: tuple[str, int, int, int, list[str], str | None, float]) -> None:
    *what, gigabytes = run
    guess = estimate(spec_from_mapping(spec(*what))).allocated_bytes  # type: ignore[arg-type]
    assert abs(guess / (gigabytes * 1e9) - 1) <= 0.015


def test_newer_bitsandbytes_frees_the_inputs_of_frozen_layers() -> None:
    old = spec("mistralai/Mistral-7B-v0.1", 2, 512, 32, ATTENTION, "nf4")
    new = {**old, "versions": {"bitsandbytes": "0.43.2"}}
    tokens, h, i, layers = 1024, 4096, 14336, 32
    # The last iteration's inputs of every product (the norms' results, the heads', the MLP's) are no longer there.
    once = tokens * 2 * (h + h + h + i) * layers
    freed = estimate(spec_from_mapping(old)).allocated_bytes - estimate(spec_from_mapping(new)).allocated_bytes
    assert once < freed < 2 * once


def test_the_head_is_a_weight_of_its_own() -> None:
    facts = spec_from_mapping({"model": "meta-llama/Llama-3.2-1B"}).facts
    built = as_built(facts)
    assert facts.tied and not built.tied
    assert built.parameters == facts.parameters + facts.vocab * facts.hidden
    assert as_built(facts) is built and as_built(built) is built


def test_switches_from_module_names() -> None:
    assert switches(None) == Switches(True, False, True, False, False, False)
    assert switches(("query_key_value", "dense")) == Switches(True, True, True, True, False, False)
    assert switches(tuple(EVERY)) == Switches(True, True, True, True, True, True)
    assert switches("all-linear").head is False


@pytest.mark.parametrize(
    ("change", "front_end"),
    [
        ({}, "litgpt"),
        ({"mixed_precision": "bf16"}, "transformers"),
        ({"gradient_checkpointing": True}, "transformers"),
        ({"versions": {"trl": "1.16.0"}}, "transformers"),
        ({"weights_dtype": "fp32"}, "transformers"),
        ({"loss": "liger"}, "transformers"),
        ({"versions": {"transformers": "5.0.0"}}, "transformers"),
        ({"engine": "deepspeed"}, "transformers"),
        ({"zero_stage": 2}, "transformers"),
        ({"deepspeed_config": {"zero_optimization": {"stage": 3}}}, "transformers"),
        ({"trainer": "dpo"}, "transformers"),
        ({"front_end": "transformers"}, "transformers"),
    ],
)
def test_whose_chunked_loss_it_is_where_nobody_says(change: dict[str, object], front_end: str) -> None:
    """Gemma 2B of LitGPT's table, 12.62 GB: within 1 % where it is taken for LitGPT's, and said to be."""
    stated = spec("google/gemma-2b", 2, 512, 8, EVERY, None)
    del stated["front_end"], stated["versions"]
    stated |= {"loss": "chunked", "mixed_precision": "no", "gradient_checkpointing": False}
    run = spec_from_mapping(stated | change)
    assert run.front_end == front_end
    if not change:
        found = estimate(run)
        assert found.allocated_bytes == pytest.approx(12.62e9, rel=0.01)
        assert any("LitGPT" in line for line in found.assumptions)
        other = estimate(spec_from_mapping(stated | {"front_end": "transformers"}))
        assert found.peak.low <= other.allocated_bytes


def test_a_guessed_litgpt_has_the_bitsandbytes_that_it_pins() -> None:
    """Phi-2 in nf4 of LitGPT's config hub: its frozen layers keep their inputs, which later versions do not."""
    stated = spec("microsoft/phi-2", 4, 512, 8, EVERY, None)
    del stated["front_end"], stated["versions"]
    stated |= {"loss": "chunked", "mixed_precision": "no", "gradient_checkpointing": False, "quantization": "nf4"}
    guessed = estimate(spec_from_mapping(stated))
    pinned = estimate(spec_from_mapping(stated | {"front_end": "litgpt", "versions": {"bitsandbytes": "0.42.0"}}))
    newer = estimate(spec_from_mapping(stated | {"versions": {"bitsandbytes": "0.45.2"}}))
    by_release = estimate(spec_from_mapping(stated | {"versions": {"litgpt": "0.5.12"}}))
    assert guessed.allocated_bytes == pinned.allocated_bytes > newer.allocated_bytes == by_release.allocated_bytes
    assert guessed.peak.low == newer.peak.low
    assert any("pins 0.42" in line for line in guessed.assumptions)
