"""The catalogue against facts of public models that others have collected: each difference is known, with a reason."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lintfit.catalog.facts import ModelFacts
from lintfit.catalog.models import lookup

SHARED = Path(__file__).parents[2].parent / "shared" / "data"

LEFT_OUT: dict[str, str] = {
    "XiaomiMiMo/MiMo-7B-Base": "code of its own, with a layer for multi-token prediction",
    "bert-large": "no id: bert-large-uncased or -cased",
    "bigscience/bloom-petals": "one layer a branch, for a class of Petals",
    "bloom-175b": "no id: a size of a paper",
    "facebook/opt-175b": "never published as a checkpoint of transformers",
    "facebook/tart-full-flan-t5-xl": "a class of its own, T5's encoder with a head",
    "inclusionAI/Ling-1T": "code of its own",
    "megatron-lm-175b": "no id: a size of a paper",
    "megatron-lm-530b": "no id: a size of a paper",
    "mt-nlg-530b": "no id: a size of a paper",
}
"""Ids without a config that is known for certain."""

PADDED = "262,208 rows in the config of what sees, 262,144 in the text-only one's"
FOUR_TIMES = "four times the width is supposed where the size is not stated"
EXPERTS = "an expert's width, where the dense layers' is stated beside it in config.json"
TIED = "supposed by family; GPTBigCodeConfig ties and nothing published says otherwise"
REMEMBERED = "from memory; the published config of a base has 49,152 tokens, an instructed model's 49,155"
AQUILA = "what was published first, or by its training code; config.json has 143,973 tokens and 8 heads of 34B's keys"
THEIRS: dict[tuple[str, str], str] = {
    ("BAAI/Aquila2-34B", "kv_heads"): AQUILA,
    ("BAAI/Aquila2-34B", "vocab"): AQUILA,
    ("BAAI/Aquila2-7B", "vocab"): AQUILA,
    ("Qwen/Qwen-14B-Chat", "intermediate"): "Qwen 1's config states twice the width of a half",
    ("Qwen/Qwen1.5-1.8B-Chat", "tied"): "1,836,828,672 parameters are published, with a head",
    ("Qwen/Qwen3-Coder-480B-A35B-Instruct", "intermediate"): EXPERTS,
    ("Qwen/Qwen3-Next-80B-A3B-Instruct", "intermediate"): EXPERTS,
    ("Qwen/Qwen3-Next-80B-A3B-Thinking", "intermediate"): EXPERTS,
    ("Qwen/Qwen3-VL-30B-A3B-Instruct", "intermediate"): EXPERTS,
    ("WizardLM/WizardCoder-15B-V1.0", "tied"): TIED,
    ("WizardLM/WizardCoder-1B-V1.0", "tied"): TIED,
    ("WizardLM/WizardCoder-3B-V1.0", "tied"): TIED,
    ("codellama/CodeLlama-34b-hf", "vocab"): "without the four tokens for infilling: 32,000 in two of three sources",
    ("decapoda-research/llama-13b-hf", "intermediate"): FOUR_TIMES,
    ("decapoda-research/llama-30b-hf", "intermediate"): FOUR_TIMES,
    ("decapoda-research/llama-65b-hf", "intermediate"): FOUR_TIMES,
    ("decapoda-research/llama-7b-hf", "intermediate"): FOUR_TIMES,
    ("garage-bAInd/Platypus2-70B", "kv_heads"): "merged into Llama 2 70B, which has 8",
    ("google/gemma-3-12b-it", "vocab"): PADDED,
    ("google/gemma-3-12b-pt", "vocab"): PADDED,
    ("google/gemma-3-27b-it", "vocab"): PADDED,
    ("google/gemma-3-27b-pt", "vocab"): PADDED,
    ("google/gemma-3-4b-it", "vocab"): PADDED,
    ("google/gemma-3-4b-pt", "vocab"): PADDED,
    ("ibm-granite/granite-3.1-2b-base", "vocab"): REMEMBERED,
    ("ibm-granite/granite-3.1-8b-base", "vocab"): REMEMBERED,
    ("meta-llama/Llama-4-Scout-17B-16E", "intermediate"): EXPERTS,
    ("microsoft/Phi-4-mini-reasoning", "tied"): "Phi 4 mini is tied; the other source has no such key",
    ("mistralai/Mixtral-8x22B-v0.1", "vocab"): "140,620,634,112 parameters are published: 32,000 tokens, padded there",
}
"""Fields in which the collected facts are wrong, or say something else by the same name."""

NAMES = ("layers", "hidden", "heads", "kv_heads", "intermediate", "vocab", "tied")


def collected() -> list[dict[str, Any]]:
    paths = [SHARED / "models.jsonl", SHARED / "models_unverified.jsonl"]
    if not all(path.is_file() for path in paths):
        pytest.skip("the facts are not beside this checkout")
    return [json.loads(line) for path in paths for line in path.read_text(encoding="utf-8").splitlines()]


def differences(row: dict[str, Any], facts: ModelFacts) -> Iterator[str]:
    """The fields that both state, and not alike. An encoder's and a decoder's layers are stated for one half."""
    for name in NAMES:
        ours = facts.config["num_layers"] if name == "layers" and "num_decoder_layers" in facts.config else None
        if row.get(name) is not None and row[name] != (getattr(facts, name) if ours is None else ours):
            yield name
    experts, ours_too = row.get("moe") or {}, facts.moe
    if ours_too is not None:
        for name, own in (("experts", ours_too.experts), ("topk", ours_too.top_k)):
            if experts.get(name) not in (None, own):
                yield name


def test_every_collected_model_is_known_or_left_out_for_a_reason() -> None:
    unknown = {row["id"] for row in collected() if lookup(row["id"]) is None}
    assert unknown == LEFT_OUT.keys()


def test_fields_differ_from_the_collected_ones_only_where_those_are_wrong() -> None:
    found = set()
    for row in collected():
        facts = lookup(row["id"])
        if facts is not None:
            found |= {(row["id"], name) for name in differences(row, facts)}
    assert found == THEIRS.keys()
