"""LitGPT's runs against what LitGPT published: ``config_hub/finetune/README.md`` and ``tutorials/resource-tables.md``.

Both print ``torch.cuda.max_memory_allocated() / 1e9``; the first on an A10G with Alpaca2k cut to 512 tokens and
bitsandbytes 0.42.0, the second on an A100 with Alpaca's longest sample and bitsandbytes 0.41.1.
"""

from __future__ import annotations

import pytest

from lintfit.memory import estimate
from lintfit.memory.litgpt import Switches, as_built, possible, switches
from lintfit.memory.reading.parse import spec_from_mapping
from lintfit.memory.result import Verdict

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


def chunked(**change: object) -> dict[str, object]:
    """Gemma 2B of LitGPT's table, 12.62 GB, without a word of whose code trains."""
    stated = spec("google/gemma-2b", 2, 512, 8, EVERY, None)
    del stated["front_end"], stated["versions"]
    return {**stated, "loss": "chunked", "mixed_precision": "no", "gradient_checkpointing": False, **change}


def test_no_settings_make_a_run_litgpts() -> None:
    unsaid, said = (spec_from_mapping(chunked(**more)) for more in ({}, {"front_end": "transformers"}))
    assert unsaid.front_end == said.front_end == "transformers"
    assert estimate(unsaid).allocated_bytes == estimate(said).allocated_bytes


def test_whose_chunked_loss_it_is_widens_the_range_where_nobody_says() -> None:
    found = estimate(spec_from_mapping(chunked()))
    assert any("LitGPT" in line for line in found.assumptions)
    litgpts = estimate(spec_from_mapping(chunked(front_end="litgpt")))
    assert found.peak.low <= litgpts.peak.low < litgpts.peak.likely <= found.peak.high


@pytest.mark.parametrize(
    "change",
    [
        {"gradient_checkpointing": True},
        {"versions": {"trl": "1.16.0"}},
        {"versions": {"transformers": "5.0.0"}},
        {"loss": "liger"},
        {"zero_stage": 2},
        {"trainer": "dpo"},
        {"front_end": "transformers"},
    ],
)
def test_litgpt_runs_none_of_these(change: dict[str, object]) -> None:
    assert not possible(spec_from_mapping(chunked(**change)))


def test_modules_of_other_names_are_adapted_by_litgpt_alone() -> None:
    """StableLM alpha has one projection for query, key and value: PEFT finds none of these, LitGPT takes 16.92 GB."""
    stated = spec("stabilityai/stablelm-base-alpha-3b", 4, 1034, 8, ATTENTION, None)
    del stated["front_end"]
    stated |= {"loss": "chunked", "mixed_precision": "no", "gradient_checkpointing": False}
    found = estimate(spec_from_mapping(stated))
    assert found.verdict is Verdict.UNKNOWN and found.peak.high > 16.92e9
