"""What a layer saves per token, against closed forms and against counts of real transformers layers.

The closed forms and figures are facts about transformers 5.23 with torch 2.13 (fake CUDA tensors, every storage
counted); the formulas are in ``docs/memory.md``.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lintfit.catalog import models
from lintfit.catalog.facts import ModelFacts
from lintfit.memory.activations.profile import Profile, profile
from lintfit.memory.activations.recipe import Lora, Recipe

DATA = Path(__file__).parents[4] / "shared/data"

BF16 = Recipe(weights=2, autocast=False)
AMP = Recipe(weights=4, autocast=True)
FP32 = Recipe(weights=4, autocast=False)
ATTENTION = ("q_proj", "k_proj", "v_proj", "o_proj", "qkv_proj", "query_key_value", "dense", "out_proj", "c_attn")

CONFIGS: dict[str, dict[str, Any]] = {
    "llama2-7b": {"model_type": "llama", "hidden_size": 4096, "intermediate_size": 11008, "num_attention_heads": 32},
    "llama3-8b": {
        "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_attention_heads": 32,
        "num_key_value_heads": 8,
    },
    "qwen3-8b": {
        "model_type": "qwen3", "hidden_size": 4096, "intermediate_size": 12288, "num_attention_heads": 32,
        "num_key_value_heads": 8, "head_dim": 128,
    },
    "phi3-mini": {
        "model_type": "phi3", "hidden_size": 3072, "intermediate_size": 8192, "num_attention_heads": 32,
        "num_key_value_heads": 32,
    },
    "gemma-7b": {
        "model_type": "gemma", "hidden_size": 3072, "intermediate_size": 24576, "num_attention_heads": 16,
        "num_key_value_heads": 16, "head_dim": 256,
    },
    "pythia-6.9b": {
        "model_type": "gpt_neox", "hidden_size": 4096, "intermediate_size": 16384, "num_attention_heads": 32,
    },
    "gpt2": {"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12},
    "gpt2-xl": {"model_type": "gpt2", "n_embd": 1600, "n_layer": 48, "n_head": 25},
    "opt-6.7b": {
        "model_type": "opt", "hidden_size": 4096, "ffn_dim": 16384, "num_attention_heads": 32,
        "word_embed_proj_dim": 4096,
    },
    "mixtral-8x7b": {
        "model_type": "mixtral", "hidden_size": 4096, "intermediate_size": 14336, "num_attention_heads": 32,
        "num_key_value_heads": 8, "num_local_experts": 8, "num_experts_per_tok": 2,
    },
}  # fmt: skip


def facts(name: str) -> ModelFacts:
    config = {"vocab_size": 32000, "num_hidden_layers": 4, "max_position_embeddings": 8192, **CONFIGS[name]}
    return models.from_config(config, name)


def count(model: ModelFacts, recipe: Recipe, batch: int = 1, seq: int = 512, **how: Any) -> Profile:
    return profile(model, recipe, batch, seq, 0, stream=recipe.weights, **how)


def per_token(name: str, recipe: Recipe, batch: int = 1, seq: int = 512) -> float:
    return count(facts(name), recipe, batch, seq).saved.activations / (batch * seq)


def lora(recipe: Recipe, targets: tuple[str, ...] | None, item: int = 4, dropout: bool = False) -> Recipe:
    return replace(recipe, frozen=True, lora=Lora(8, targets, item, dropout))


@pytest.mark.parametrize("name", ["llama2-7b", "llama3-8b"])
def test_llama_by_its_closed_forms(name: str) -> None:
    model = facts(name)
    h, i, a, r = model.hidden, model.intermediate, model.heads, 8
    wide, narrow = a * model.head_dim, model.kv_heads * model.head_dim
    flash = 4 * wide + 4 * narrow + 4 * a
    assert per_token(name, BF16) == 16 * h + 8 + flash + 8 * i
    assert per_token(name, AMP) == 26 * h + 8 + flash + 8 * i
    frozen = 8 * h + 8 + flash + 6 * i
    mixed = Recipe(weights=2, autocast=True)
    attention = frozen + 6 * h + 2 * wide + 8 * r
    assert per_token(name, lora(mixed, ATTENTION)) == attention
    assert per_token(name, lora(mixed, None)) == attention + 4 * h + 2 * i + 6 * r
    assert per_token(name, lora(BF16, ATTENTION)) == frozen + 12 * h + 4 * wide + 16 * r
    assert per_token(name, lora(BF16, None)) == frozen + 20 * h + 4 * wide + 4 * i + 28 * r
    assert per_token(name, lora(BF16, None, item=2)) == frozen + 4 * h + 2 * i + 14 * r
    masks = 3 * h + wide + 2 * h + i
    assert per_token(name, lora(mixed, None, dropout=True)) == attention + 4 * h + 2 * i + 6 * r + masks


def test_fp32_with_grouped_heads_runs_the_quadratic_path() -> None:
    model, seq = facts("llama3-8b"), 512
    h, i, a = model.hidden, model.intermediate, model.heads
    assert per_token("llama3-8b", FP32, seq=seq) == 24 * h + 8 + 16 * h + 4 * a * seq + 16 * i
    alone = facts("llama2-7b")
    assert per_token("llama2-7b", FP32) == 24 * h + 8 + 16 * h + 4 * alone.heads + 16 * alone.intermediate


def test_eager_saves_six_bytes_per_pair_of_tokens() -> None:
    model, seq = facts("llama3-8b"), 512
    h, i, a = model.hidden, model.intermediate, model.heads
    eager = replace(BF16, attention="eager")
    assert per_token("llama3-8b", eager, seq=seq) == 16 * h + 8 + 8 * h + 6 * a * seq + 8 * i


def test_a_padded_batch_turns_flash_off() -> None:
    model, seq = facts("llama3-8b"), 512
    h, i, a = model.hidden, model.intermediate, model.heads
    padded = replace(BF16, padded=True)
    assert per_token("llama3-8b", padded, batch=4, seq=seq) == 16 * h + 8 + 8 * h + 4 * a + 2 * seq + 8 * i


def test_gpt2_by_korthikanti() -> None:
    """34h + 5as (arXiv 2205.05198) and the four fp32 statistics of two LayerNorms."""
    model = facts("gpt2-xl")
    h, a, seq = model.hidden, model.heads, 1024
    # The paper's GELU keeps its input; GPT-2's default, a formula of torch operations, keeps four more tensors.
    exact = replace(model, activation="gelu")
    eager = replace(BF16, attention="eager")
    saved = count(exact, eager, seq=seq).saved.activations / seq
    assert saved == 34 * h + 5 * a * seq + 16 == 182_416


@pytest.mark.parametrize(
    ("name", "recipe", "expected"),
    [
        ("qwen3-8b", BF16, 215336),
        ("qwen3-8b", AMP, 256296),
        ("phi3-mini", BF16, 157832),
        ("phi3-mini", AMP, 170120),
        ("phi3-mini", FP32, 278664),
        ("pythia-6.9b", BF16, 147600),
        ("pythia-6.9b", AMP, 155792),
        ("gpt2", BF16, 44608),
        ("gpt2", AMP, 66112),
        ("opt-6.7b", BF16, 106640),
        ("opt-6.7b", AMP, 139408),
        ("mixtral-8x7b", BF16, 348412),
    ],
)
def test_other_families_by_recorded_counts(name: str, recipe: Recipe, expected: int) -> None:
    assert per_token(name, recipe) == pytest.approx(expected, rel=1e-5)


def test_gemma_keeps_its_scales() -> None:
    """A token's tensors, and beside them two fp32 vectors ``1 + weight`` a layer."""
    model = facts("gemma-7b")
    h, i, a = model.hidden, model.intermediate, model.heads
    wide = a * model.head_dim
    norms = 2 * (4 * h + 4 + 4 * h + 2 * h)
    token = norms + 4 * wide + 4 * wide + 4 * a + 8 * i
    assert count(model, BF16).saved.activations == 512 * token + 2 * 4 * h


def test_checkpointing_keeps_the_input() -> None:
    model = facts("llama3-8b")
    for recipe, item in ((BF16, 2), (AMP, 4)):
        assert count(model, recipe, checkpointed=True).input == 512 * model.hidden * item


def test_reentrant_holds_the_recomputed_output_and_its_gradient() -> None:
    """At eager attention's peak the residual's gradient is a sum of its own, beside the one that came in."""
    model, tensor = facts("llama3-8b"), 512 * 4096 * 2
    for recipe, held in ((BF16, 1), (replace(BF16, attention="eager"), 2)):
        early = count(model, recipe, checkpointed=True, reentrant=False, seq=4096).peak.total
        late = count(model, recipe, checkpointed=True, reentrant=True, seq=4096).peak.total
        assert late - early == held * 8 * tensor


RECIPES = {
    "fp32": FP32,
    "amp_bf16": AMP,
    "bf16": BF16,
    "bf16_amp lora attn r8": lora(Recipe(weights=2, autocast=True), ATTENTION),
    "bf16_amp lora all r8": lora(Recipe(weights=2, autocast=True), None),
}


@pytest.mark.skipif(not (DATA / "activations_per_layer.json").exists(), reason="the recorded layers are not here")
def test_every_recorded_layer() -> None:
    recorded = json.loads((DATA / "activations_per_layer.json").read_text())
    configs = {}
    for line in (DATA / "oracle.dev.jsonl").read_text().splitlines():
        row = json.loads(line)
        configs[row["id"].split("|")[0]] = row["spec"]["model_config"]
    checked = 0
    for name, layers in recorded.items():
        if name not in configs:
            continue
        model = models.from_config(configs[name], name)
        for key, fit in layers.items():
            attention, _, recipe_name = key.partition(" ")
            skipped = name.startswith("mixtral") and "all" in key
            if recipe_name not in RECIPES or skipped:
                continue
            recipe = replace(RECIPES[recipe_name], attention=attention)
            for seq in (256, 512):
                saved = count(model, recipe, seq=seq).saved
                expected = fit["alpha"] + fit["beta"] * seq
                assert saved.activations / seq == pytest.approx(expected, rel=5e-4), (name, key, seq)
            assert saved.casts == pytest.approx(fit["weight_casts"], rel=1e-3), (name, key)
            checked += 1
    assert checked > 100


@pytest.mark.parametrize(
    ("weights", "dropout", "expected"),
    [(4, False, 397_824), (4, True, 397_824), (2, False, 299_520), (2, True, 791_040)],
)
def test_dora_by_recorded_counts(weights: int, dropout: bool, expected: int) -> None:
    """What DoRA on q and v of a small Llama saves beside LoRA (peft 0.21 on the CPU, 128 tokens, fp32 adapters).

    The products' factors; with dropout over a bf16 base also the base's weights in the adapters' fp32. The adapter's
    own product, which autograd notes as well, is gone before the function returns and left out of the count.
    """
    config = {
        "model_type": "llama", "hidden_size": 256, "intermediate_size": 512, "num_attention_heads": 8,
        "num_key_value_heads": 4, "num_hidden_layers": 2, "vocab_size": 512,
    }  # fmt: skip
    facts = models.from_config(config, "small")
    saved = []
    for dora in (False, True):
        lora = Lora(8, ("q_proj", "v_proj"), 4, dropout, dora)
        recipe = Recipe(weights=weights, autocast=False, attention="eager", frozen=True, lora=lora)
        found = profile(facts, recipe, 2, 64, 1, stream=weights)
        saved.append(found.saved.total)
    assert saved[1] - saved[0] == expected
