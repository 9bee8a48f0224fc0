"""What every architecture module must have, and the rules that modules share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path

import pytest

from lintfit.catalog import architectures
from lintfit.catalog.architectures._multimodal import Multimodal
from lintfit.catalog.architectures._plain import Plain
from lintfit.catalog.architectures._table import ROWS
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Code
from lintfit.catalog.models import code_of, from_config, ids, lookup
from lintfit.catalog.text_only import text_only
from tests.support import published

NAMES = architectures.names()
FAMILY_ROWS: Mapping[str, Mapping[str, Multimodal]] = {
    family: import_module(f"{architectures.__name__}.{family}").ROWS for family in architectures.FAMILIES
}
SEEING_ROWS = {name: row for rows in FAMILY_ROWS.values() for name, row in rows.items()}


@pytest.mark.parametrize("name", NAMES)
def test_every_architecture_keeps_the_contract(name: str) -> None:
    found = architectures.find(name)
    assert found is not None and found.name == name
    assert isinstance(found.required, tuple) and all(isinstance(key, str) for key in found.required)
    assert isinstance(found.defaults, Mapping)
    for function in (found.shape, found.tensors):
        assert isinstance(function, Callable)  # type: ignore[arg-type]


def test_an_architecture_stands_in_one_place() -> None:
    modules = {path.stem for path in Path(architectures.__file__).parent.glob("[a-z]*.py")}
    rows = [*ROWS, *(name for types in architectures.FAMILIES.values() for name in types)]
    assert not modules & set(rows) and len(rows) == len(set(rows))
    assert modules | set(rows) == set(NAMES)


@pytest.mark.parametrize("family", architectures.FAMILIES)
def test_a_family_has_the_rows_that_the_package_seeks_there(family: str) -> None:
    assert tuple(sorted(FAMILY_ROWS[family])) == tuple(sorted(architectures.FAMILIES[family]))


@pytest.mark.parametrize("name", [*ROWS, *SEEING_ROWS])
def test_every_row_says_what_it_is_of(name: str) -> None:
    assert (ROWS[name] if name in ROWS else SEEING_ROWS[name]).about


def test_a_row_without_a_word_is_a_llama() -> None:
    numbers = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4}
    row = Plain("").architecture("llama")
    found = row.tensors(Config({**numbers, "vocab_size": 80, "num_key_value_heads": 2}, row.defaults, "config.json"))
    assert {tensor.name.removeprefix("model.layers.{}."): tensor.shape for tensor in found} == {
        "model.embed_tokens.weight": (80, 64),
        "self_attn.q_proj.weight": (64, 64),
        "self_attn.k_proj.weight": (32, 64),
        "self_attn.v_proj.weight": (32, 64),
        "self_attn.o_proj.weight": (64, 64),
        "mlp.gate_proj.weight": (96, 64),
        "mlp.up_proj.weight": (96, 64),
        "mlp.down_proj.weight": (64, 96),
        "input_layernorm.weight": (64,),
        "post_attention_layernorm.weight": (64,),
        "model.norm.weight": (64,),
        "lm_head.weight": (80, 64),
    }


def test_every_key_that_a_row_names_is_one_that_its_class_has() -> None:
    for name, row in ROWS.items():
        if isinstance(row, Plain):
            keys = {*row.own, *defaults(row.like or name), "attention_bias", "mlp_bias"}
            named = (row.qkv_bias, row.out_bias, row.mlp_bias, row.head_bias, row.activation, row.full_every)
            assert {key for key in named if isinstance(key, str) and key} <= keys, name


TEXT_PARTS = {
    "gemma3n_text",
    "gemma4_text",
    "llama4_text",
    "minimax_m3_vl_text",
    "ministral3",
    "mistral4",
    "qwen3_5_text",
    "qwen3_5_moe_text",
}
"""Language models whose checkpoints are published inside of multimodal ones only."""


NOT_CONFIRMED = {"granitemoeshared", "hunyuan_v1_moe"}
"""Architectures whose one published model has a config that nobody could be asked for."""


UNPUBLISHED = {"gemma4_unified", "glm46v", "kimi_k25"}
"""Architectures of transformers whose published configs nobody could be asked for, or do not name them."""


def test_every_architecture_has_a_model_in_the_catalogue() -> None:
    used = set()
    for model in ids():
        facts = lookup(model)
        assert facts is not None
        used.add(architectures.known(facts.model_type).name)
    assert used == set(NAMES) - TEXT_PARTS - NOT_CONFIRMED - UNPUBLISHED


def test_the_whole_of_qwen_2_5_omni_is_its_thinker() -> None:
    whole = lookup("Qwen/Qwen2.5-Omni-7B")
    assert whole is not None
    thinker = from_config(whole.config)
    assert whole.model_type == "qwen2_5_omni" and thinker.model_type == "qwen2_5_omni_thinker"
    assert whole.parameters == thinker.parameters and any("talker" in note for note in whole.notes)


@pytest.mark.parametrize("name", ["_blocks", "_decoder", "", "llama.evil", "../llama", "os", "LLAMA ", "no_such_type"])
def test_what_is_no_architecture_is_not_found(name: str) -> None:
    assert architectures.find(name) is None


def test_aliases_lead_to_architectures_and_have_code_of_their_own() -> None:
    for alias, name in architectures.ALIASES.items():
        found = architectures.known(alias)
        assert (found.name, found.shape, found.tensors) == (name, *_functions(name))
    assert architectures.known("ministral").code.liger and not architectures.known("kimi_k2").code.liger
    assert architectures.CODE_OF_ALIASES.keys() <= architectures.ALIASES.keys()


def _functions(name: str) -> tuple[object, object]:
    return architectures.known(name).shape, architectures.known(name).tensors


def test_the_language_model_of_one_that_sees_has_code_of_its_own() -> None:
    whole = lookup("google/gemma-3-4b-it")
    assert whole is not None and whole.code.layer == "" and whole.code.eager_advised
    assert text_only(whole).code == whole.text_code == code_of("gemma3_text")
    assert whole.text_code.layer == "Gemma3DecoderLayer"


def test_what_is_taken_for_a_llama_has_no_code_of_llamas() -> None:
    numbers = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4}
    assert from_config({**numbers, "vocab_size": 80, "model_type": "of_tomorrow"}).code == Code()
    assert from_config({**numbers, "vocab_size": 80, "model_type": "llama"}).code.liger


@pytest.mark.parametrize(
    ("model", "window", "layers"),
    [
        ("mistralai/Mistral-7B-v0.1", 4096, 32),
        ("mistralai/Mistral-7B-v0.3", None, 0),
        ("google/gemma-2-9b", 4096, 21),
        ("google/gemma-3-1b-it", 512, 22),
        ("Qwen/Qwen2.5-7B", None, 0),
        ("openai/gpt-oss-20b", 128, 12),
    ],
)
def test_sliding_windows(model: str, window: int | None, layers: int) -> None:
    facts = lookup(model)
    assert facts is not None
    assert (facts.sliding_window, facts.sliding_layers) == (window, layers)


@pytest.mark.parametrize(
    ("model", "rotary"),
    [
        ("EleutherAI/pythia-6.9b", 32),
        ("togethercomputer/RedPajama-INCITE-7B-Base", 128),
        ("microsoft/phi-2", 32),
        ("openai-community/gpt2", 0),
        ("tiiuae/falcon-7b", 64),
        ("EleutherAI/gpt-j-6b", 64),
        ("baichuan-inc/Baichuan2-13B-Chat", 0),
        ("deepseek-ai/DeepSeek-V3", 64),
    ],
)
def test_the_part_of_a_head_that_is_rotated(model: str, rotary: int) -> None:
    facts = lookup(model)
    assert facts is not None
    assert facts.rotary_dim == rotary
    if "partial_rotary_factor" in facts.config:
        assert facts.config["partial_rotary_factor"] * facts.head_dim == rotary


@pytest.mark.parametrize(
    ("model", "experts", "top_k", "layers", "shared"),
    [
        ("mistralai/Mixtral-8x7B-v0.1", 8, 2, 32, 0),
        ("Qwen/Qwen1.5-MoE-A2.7B", 60, 4, 24, 5632),
        ("deepseek-ai/DeepSeek-V3", 256, 8, 58, 2048),
        ("deepseek-ai/deepseek-moe-16b-base", 64, 6, 27, 2816),
    ],
)
def test_experts(model: str, experts: int, top_k: int, layers: int, shared: int) -> None:
    facts = lookup(model)
    assert facts is not None
    assert facts.moe is not None
    assert (facts.moe.experts, facts.moe.top_k, facts.moe.layers) == (experts, top_k, layers)
    assert facts.moe.shared_intermediate == shared
    routed = sum(tensor.total for tensor in facts.tensors if ".experts." in tensor.name)
    assert routed == 3 * facts.hidden * facts.moe.intermediate * experts * layers


def test_vision_towers() -> None:
    gemma, llava, qwen = (
        lookup(name) for name in ("google/gemma-3-4b-it", "llava-hf/llava-1.5-7b-hf", "Qwen/Qwen2-VL-7B-Instruct")
    )
    assert gemma and gemma.vision and (gemma.vision.hidden, gemma.vision.layers, gemma.vision.tokens) == (1152, 27, 256)
    assert llava and llava.vision and llava.vision.tokens == 576
    assert qwen and qwen.vision and (qwen.vision.hidden, qwen.vision.layers) == (1280, 32)
    vision = sum(tensor.total for tensor in llava.tensors if tensor.where == "vision")
    assert vision == llava.parameters - (published("meta-llama/Llama-2-7b-hf") + 2 * 64 * 4096)  # its 64 added tokens


def test_roles_partition_a_model() -> None:
    facts = lookup("meta-llama/Meta-Llama-3-8B")
    assert facts is not None
    by_role = {role: sum(t.total for t in facts.tensors if t.role == role) for role in {t.role for t in facts.tensors}}
    assert by_role["embedding"] == by_role["lm_head"] == 128256 * 4096
    assert by_role["norm"] == 65 * 4096
    assert by_role["linear"] == facts.parameters - 2 * 128256 * 4096 - 65 * 4096


def test_old_spellings_of_falcon_and_bloom() -> None:
    falcon = from_config({"model_type": "RefinedWeb", "hidden_size": 8192, "n_layer": 60, "n_head": 128,
                          "n_head_kv": 8, "vocab_size": 65024})  # fmt: skip
    assert falcon.parameters == lookup("tiiuae/falcon-40b").parameters  # type: ignore[union-attr]
    bloom = from_config({"model_type": "bloom", "n_embed": 4096, "n_layer": 30, "num_attention_heads": 32,
                         "vocab_size": 250880})  # fmt: skip
    assert bloom.parameters == published("bigscience/bloom-7b1")
