"""Model facts: by id, from a config, from a directory, from the Hugging Face cache."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lintfit.catalog import models
from lintfit.catalog.models import CatalogError, from_config, from_directory, from_hf_cache, lookup, suggest
from tests.support import PUBLISHED, published

SHARED = Path(__file__).parents[2].parent / "shared" / "data"

LLAMA: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 11008,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "vocab_size": 32000,
}

LLAMAS = published("meta-llama/Llama-2-7b-hf")
"""Parameters of that config."""


@pytest.mark.parametrize("model", PUBLISHED["models"])
def test_parameter_counts_are_the_published_ones(model: str) -> None:
    facts = lookup(model)
    assert facts is not None
    assert facts.parameters == published(model)
    assert facts.exact


@pytest.mark.parametrize(("model", "stated"), PUBLISHED["without_head"].items(), ids=PUBLISHED["without_head"])
def test_encoders_have_the_published_parameters_beside_their_head(model: str, stated: dict[str, int]) -> None:
    facts = lookup(model)
    assert facts is not None and facts.exact
    beside = sum(tensor.total for tensor in facts.tensors if tensor.where != "head")
    assert 0 < beside == stated["parameters"] - stated.get("without", 0) < facts.parameters


def test_every_row_makes_facts_with_a_source() -> None:
    assert len(models.ids()) >= 250
    for model in models.ids():
        facts = lookup(model)
        assert facts is not None, model
        assert facts.parameters > (10**4 if re.search(r"tiny|-testing/|_L-2_", model) else 10**7), model
        assert facts.source, model
        assert facts.exact, model
        assert facts.checkpoint_dtype in ("bf16", "fp16", "fp32"), model
        assert all(tensor.copies > 0 and tensor.numel > 0 for tensor in facts.tensors), model


def test_every_row_is_a_line_of_the_file() -> None:
    rows = json.loads(models.DATA.read_text(encoding="utf-8"))["models"]
    lines = models.DATA.read_text(encoding="utf-8").splitlines()
    assert models.ids() == tuple(rows)
    for line, model in zip(lines[3:], rows, strict=False):
        own = json.loads("{" + line.strip().removesuffix(",") + "}")
        assert own == {model: rows[model]}


@pytest.mark.parametrize("name", ["oracle", "outcomes", "published"])
def test_every_model_of_the_measurements_is_known(name: str) -> None:
    path = SHARED / f"{name}.dev.jsonl"
    if not path.is_file():
        pytest.skip("the measurements are not beside this checkout")
    for line in path.read_text().splitlines():
        row = json.loads(line)
        model, config = row["spec"].get("model"), row["spec"].get("model_config")
        facts = lookup(model) if model else from_config(config, row["id"])
        assert facts is not None, model
        if "params_total" in row and row["spec"]["method"] == "full":
            assert facts.parameters == row["params_total"], row["id"]


@pytest.mark.parametrize(
    "spelling",
    [
        "Qwen/Qwen2.5-7B-Instruct",
        "qwen/qwen2.5-7b-instruct",
        "Qwen/Qwen2.5-7B-Instruct/",
        "  Qwen/Qwen2.5-7B-Instruct ",
    ],
)
def test_spelling_of_an_id_does_not_matter(spelling: str) -> None:
    facts = lookup(spelling)
    assert facts is not None
    assert facts.name == "Qwen/Qwen2.5-7B-Instruct"
    assert facts.notes == ()


@pytest.mark.parametrize(
    ("path", "known"),
    [
        ("/data/models/Qwen2.5-7B-Instruct", "Qwen/Qwen2.5-7B-Instruct"),
        ("./Llama-2-7b-hf/", "meta-llama/Llama-2-7b-hf"),
        ("C:\\models\\Llama-2-7b-hf", "meta-llama/Llama-2-7b-hf"),
        ("TheBloke/Mistral-7B-Instruct-v0.2-GPTQ", "mistralai/Mistral-7B-Instruct-v0.2"),
        ("unsloth/Qwen2.5-3B-bnb-4bit", "Qwen/Qwen2.5-3B"),
        ("somebody/Qwen3-30B-A3B-AWQ-4bit", "Qwen/Qwen3-30B-A3B"),
        ("RedHatAI/Qwen2.5-7B-Instruct-quantized.w8a8", "Qwen/Qwen2.5-7B-Instruct"),
        ("bartowski/Meta-Llama-3.1-8B-Instruct-GGUF", "meta-llama/Meta-Llama-3.1-8B-Instruct"),
        ("TheBloke/CodeLlama-7B-GPTQ", "codellama/CodeLlama-7b-hf"),
        ("hugging-quants/Meta-Llama-3.1-405B-BNB-NF4-BF16", "meta-llama/Meta-Llama-3.1-405B"),
        ("axolotl-ai-co/gpt-oss-120b-dequantized", "openai/gpt-oss-120b"),
    ],
)
def test_a_path_or_a_copy_is_taken_by_its_last_part_and_says_so(path: str, known: str) -> None:
    facts = lookup(path)
    assert facts is not None
    assert facts.name == known
    assert known in facts.notes[-1]
    assert "by the name" in facts.notes[-1]


def test_a_path_into_the_hugging_face_cache_names_its_model() -> None:
    facts = lookup("/root/.cache/huggingface/hub/models--Qwen--Qwen2.5-0.5B/snapshots/abc")
    assert facts is not None
    assert facts.name == "Qwen/Qwen2.5-0.5B"


@pytest.mark.parametrize(
    "model", ["", "/", "nobody/no-such-model", "/data/checkpoint-500", "models", "../../etc/passwd"]
)
def test_unknown_models_are_unknown(model: str) -> None:
    assert lookup(model) is None


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("meta-llama/Llama-2-7b-fh", "meta-llama/Llama-2-7b-hf"),
        ("mistralai/Mistral-7B-v01", "mistralai/Mistral-7B-v0.1"),
        ("Qwen2.5-7B-Instrct", "Qwen/Qwen2.5-7B-Instruct"),
        ("nothing-like-any-of-them", None),
    ],
)
def test_suggestions(typed: str, meant: str | None) -> None:
    assert suggest(typed) == meant


@pytest.mark.parametrize("other", ["Qwen/Qwen9.5-2B", "meta-llama/Llama-9-8B", "Qwen/Qwen2.5-8B"])
def test_another_version_or_size_is_no_slip(other: str) -> None:
    assert suggest(other) is None


@pytest.mark.parametrize(
    ("model", "last"),
    [
        ("google-bert/bert-large-uncased", 512), ("FacebookAI/roberta-base", 512), ("openai-community/gpt2", 1024),
        ("Qwen/Qwen2.5-0.5B", None), ("facebook/bart-base", None), ("Salesforce/blip2-opt-2.7b", None),
    ],
)  # fmt: skip
def test_learned_positions_end(model: str, last: int | None) -> None:
    facts = models.find(model)
    assert facts is not None and facts.last_position == last


def test_facts_from_a_config() -> None:
    facts = from_config({**LLAMA, "num_key_value_heads": 8, "torch_dtype": "bfloat16"}, "mine")
    assert (facts.name, facts.layers, facts.kv_heads, facts.head_dim) == ("mine", 32, 8, 128)
    assert facts.checkpoint_dtype == "bf16"
    assert facts.config["max_position_embeddings"] == 2048
    assert facts.rotary_dim == 128


@pytest.mark.parametrize(
    ("said", "dtype"),
    [
        ({"bf16": True, "fp16": False, "fp32": False}, "bf16"),
        ({"fp16": True, "torch_dtype": "bfloat16"}, "fp16"),
        ({"fp32": True, "torch_dtype": "bfloat16"}, "fp32"),
        ({"bf16": False}, "bf16"),
        ({}, "bf16"),
    ],
)
def test_qwen_1_casts_itself_to_the_dtype_that_its_config_flags(said: dict[str, Any], dtype: str) -> None:
    assert from_config({**LLAMA, "model_type": "qwen", **said}).checkpoint_dtype == dtype
    assert from_config({**LLAMA, **said}).checkpoint_dtype == ("bf16" if "torch_dtype" in said else None)


def test_an_unknown_architecture_with_llamas_keys_is_taken_as_a_llama() -> None:
    facts = from_config({**LLAMA, "model_type": "brand_new"})
    assert not facts.exact
    assert facts.parameters == LLAMAS
    assert "'brand_new'" in facts.notes[-1]


def test_an_unknown_multimodal_model_gives_its_language_model() -> None:
    facts = from_config({"model_type": "brand_new_vl", "vision_config": {}, "text_config": LLAMA})
    assert not facts.exact
    assert facts.parameters == LLAMAS
    assert "text_config" in facts.notes[-1]


@pytest.mark.parametrize("key", ["num_experts", "n_routed_experts", "num_local_experts", "moe_num_experts"])
def test_an_unknown_architecture_with_experts_is_refused(key: str) -> None:
    """Counted as a llama without its experts it would seem to fit anywhere."""
    with pytest.raises(CatalogError, match=f"'brand_new', which is not known, and its 64 experts .{key}."):
        from_config({**LLAMA, "model_type": "brand_new", key: 64})
    assert from_config({**LLAMA, "model_type": "brand_new", key: 0, "num_experts_per_tok": 8}).parameters


@pytest.mark.parametrize("value", [{}, [0.1], "0.1", True, -0.1, 2, float("nan")])
def test_a_dropout_that_is_no_share(value: object) -> None:
    with pytest.raises(CatalogError, match=r"attention_dropout is .*, must be a number from 0 to 1"):
        from_config({**LLAMA, "attention_dropout": value})
    with pytest.raises(CatalogError, match=r"text_config: attention_dropout is .*, must be a number from 0 to 1"):
        from_config({"model_type": "gemma3", "text_config": {"attention_dropout": value}, "vision_config": {}})


def test_a_token_cannot_visit_more_experts_than_there_are() -> None:
    with pytest.raises(CatalogError, match="num_experts_per_tok is 9, must be no more than the 8 experts"):
        from_config({**LLAMA, "model_type": "mixtral", "num_local_experts": 8, "num_experts_per_tok": 9})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hidden_size": -1}, "c: hidden_size is -1, must be a whole number from 1 to 1048576"),
        ({"hidden_size": 10**12}, "c: hidden_size is 1000000000000, must be a whole number from 1 to 1048576"),
        ({"hidden_size": 4095}, "c: hidden_size is 4095, must be a multiple of num_attention_heads (32)"),
        ({"hidden_size": None}, "c: hidden_size is missing; a llama config must state it"),
        ({"num_hidden_layers": "32"}, "c: num_hidden_layers is '32', must be a whole number from 1 to 1000"),
        ({"num_hidden_layers": True}, "c: num_hidden_layers is True, must be a whole number from 1 to 1000"),
        ({"num_hidden_layers": 1.5}, "c: num_hidden_layers is 1.5, must be a whole number from 1 to 1000"),
        ({"num_hidden_layers": float("nan")}, "c: num_hidden_layers is nan, must be a whole number from 1 to 1000"),
        ({"num_key_value_heads": 5}, "c: num_key_value_heads is 5, must divide num_attention_heads (32)"),
        ({"vocab_size": 0}, "c: vocab_size is 0, must be a whole number from 1 to 134217728"),
        ({"tie_word_embeddings": "yes"}, "c: tie_word_embeddings is 'yes', must be true or false"),
        ({"model_type": 7}, "c: model_type is 7, must be a string such as 'llama'"),
    ],
)
def test_bad_numbers_are_one_line_with_key_value_and_remedy(change: dict[str, Any], message: str) -> None:
    with pytest.raises(CatalogError) as caught:
        from_config({**LLAMA, **change}, "c")
    assert str(caught.value) == message


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"model_type": "brand_new"},
        {"model_type": "brand_new", "hidden_size": 4096},
        {"hidden_size": 4096},
        {"model_type": "../llama"},
        {"model_type": "_blocks"},
        {"model_type": ""},
        {"model_type": "llava", "text_config": {"model_type": "llava"}},
        {"model_type": "llava", "text_config": {"model_type": "brand_new"}},
        {"model_type": "llava", "text_config": 5},
        {"model_type": "gemma3", "text_config": {"hidden_size": 64}, "vision_config": {"hidden_size": -3}},
        {"model_type": "minicpmv", "query_num": 64},
        {"model_type": "qwen2_vl"},
        {"model_type": "deepseek_v3", "hidden_size": 64},
        {**LLAMA, "model_type": "mixtral", "num_local_experts": 0},
        {**LLAMA, "model_type": "lfm2", "num_hidden_layers": 10**12, "full_attn_idxs": [1]},
        {**LLAMA, "model_type": "lfm2", "intermediate_size": 1},
        {**LLAMA, "model_type": "qwen", "intermediate_size": 1},
        {**LLAMA, "model_type": "nemotron_h", "layer_types": ["mlp"], "mlp_hidden_act": 5},
        {"model_type": "llava_next", "text_config": LLAMA, "image_grid_pinpoints": [[336]]},
        {"model_type": "qwen2_5_vl", "text_config": LLAMA, "vision_config": {"window_size": 2}},
        {"model_type": "llama4", "text_config": LLAMA, "vision_config": {"pixel_shuffle_ratio": 1e300}},
        {"model_type": "mllama", "text_config": LLAMA, "vision_config": {"supported_aspect_ratios": 4}},
        {"model_type": "gemma4", "text_config": LLAMA, "audio_config": {"subsampling_conv_channels": [128]}},
        {**LLAMA, "model_type": "qwen2_moe", "num_experts": 4, "moe_intermediate_size": 4, "mlp_only_layers": "all"},
    ],
)
def test_configs_that_cannot_be_used_never_end_in_a_traceback(config: dict[str, Any]) -> None:
    with pytest.raises(CatalogError) as caught:
        from_config(config, "c")
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith("c")


def test_mllama_takes_its_own_layers_for_a_null() -> None:
    text = {**LLAMA, "num_hidden_layers": 40}
    stated, null = (
        from_config({"model_type": "mllama", "text_config": part, "vision_config": {}}, "c")
        for part in (text, {**text, "cross_attention_layers": None})
    )
    assert null.parameters == stated.parameters
    assert null.text_config["cross_attention_layers"][0] == 3


def test_what_is_not_an_object_is_refused() -> None:
    with pytest.raises(CatalogError):
        from_config([1, 2], "c")  # type: ignore[arg-type]


def test_facts_from_a_directory_and_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "my-model").mkdir()
    file = tmp_path / "my-model" / "config.json"
    file.write_text("\ufeff" + json.dumps(LLAMA), encoding="utf-8")
    assert from_directory(tmp_path / "my-model").name == "my-model"
    assert from_directory(file, "named").name == "named"
    assert models.find(str(tmp_path / "my-model")).parameters == LLAMAS  # type: ignore[union-attr]


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe\x00", b"[" * 100_000, b"null"])
def test_a_broken_config_file_is_one_line_that_names_it(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "config.json"
    file.write_bytes(content)
    with pytest.raises(CatalogError) as caught:
        from_directory(tmp_path)
    assert str(file) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_config_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(CatalogError, match="cannot be read"):
        from_directory(tmp_path / "nothing")


@pytest.mark.parametrize("variable", ["HF_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME"])
def test_downloads_are_found_where_the_environment_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    for name in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(variable, str(tmp_path))
    hub = {"HF_HUB_CACHE": "", "HF_HOME": "hub", "XDG_CACHE_HOME": "huggingface/hub"}[variable]
    folder = tmp_path / hub / "models--someone--their-model"
    for revision, layers in (("old", 16), ("new", 32)):
        (folder / "snapshots" / revision).mkdir(parents=True)
        (folder / "snapshots" / revision / "config.json").write_text(json.dumps({**LLAMA, "num_hidden_layers": layers}))
    (folder / "refs").mkdir()
    (folder / "refs" / "main").write_text("new")
    facts = from_hf_cache("someone/their-model")
    assert facts is not None
    assert (facts.name, facts.layers) == ("someone/their-model", 32)
    assert models.find("someone/their-model") is not None
    assert from_hf_cache("someone/else") is None
    assert from_hf_cache("../../etc") is None


def test_importing_the_catalogue_reads_no_data_and_no_heavy_package() -> None:
    code = (
        "import sys, lintfit.catalog, lintfit.catalog.models as m, lintfit.catalog.gpus, lintfit.catalog.defaults;"
        "assert m._lines.cache_info().currsize == 0;"
        "m.lookup('Qwen/Qwen2.5-7B');"
        "heavy = {'torch', 'numpy', 'libcst', 'rich', 'ruamel', 'jsonschema', 'huggingface_hub', 'difflib'};"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules);"
        "from lintfit.catalog import architectures;"
        "assert 'lintfit.catalog.architectures.falcon' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_config_file_is_read_once_while_it_stays_the_same(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    config, _ = models.config_of("gpt2")
    file.write_text(json.dumps(config))
    facts = from_directory(tmp_path)
    assert from_directory(file, tmp_path.name) is from_directory(tmp_path, tmp_path.name)
    assert from_directory(tmp_path) is facts
    file.write_text(json.dumps({**config, "n_layer": 2}))
    assert from_directory(tmp_path).layers == 2


def test_a_path_with_a_null_byte_is_one_line() -> None:
    with pytest.raises(CatalogError, match="cannot be read"):
        from_directory("a\0b")


@pytest.mark.parametrize(
    ("name", "billions"),
    [
        ("llava-hf/llava-v1.6-34b-hf", 34.75),  # 34.8 B on its page
        ("liuhaotian/llava-v1.6-34b", 34.75),
        ("./checkpoints/llava-v1.5-7b", 7.06),
        ("../models/chinese-alpaca-2-13b-hf", 13.25),
        ("/data/chatglm2-6b", 6.24),
    ],
)
def test_what_people_call_them(name: str, billions: float) -> None:
    found = models.find(name)
    assert found is not None
    assert found.parameters / 1e9 == pytest.approx(billions, abs=0.01)


@pytest.mark.parametrize(
    ("name", "like"),
    [
        ("/path/to/bloom/", None),
        ("/data/models/bloomz", None),
        ("bigscience/bloom", "bigscience/bloom"),
        ("models--bigscience--bloom", "bigscience/bloom"),
        ("/path/to/bloom-560m", "bigscience/bloom-560m"),
        ("/path/to/llama-2-7b-hf", "meta-llama/Llama-2-7b-hf"),
        ("/data/models/gpt2", "openai-community/gpt2"),
        ("/data/tinyllama", "unsloth/tinyllama"),  # all of that name have one size
    ],
)
def test_a_folder_called_after_a_family_of_several_sizes_says_none(name: str, like: str | None) -> None:
    found = models.lookup(name)
    assert (found.name if found is not None else None) == like
