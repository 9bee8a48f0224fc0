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

SHARED = Path(__file__).parents[2].parent / "shared" / "data"

LLAMA: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 11008,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "vocab_size": 32000,
}

# Counts that the models' own pages, papers or safetensors indices state.
PUBLISHED = {
    "lightonai/LightOnOCR-1B-1025": 1_005_647_872,
    "tencent/Hunyuan-0.5B-Pretrain": 539_010_048,
    "Qwen/Qwen3.5-0.8B": 873_438_784 - 20_452_864,  # less the layer for multi-token prediction, as in all of Qwen 3.5
    "Qwen/Qwen3.5-2B": 2_274_069_824 - 60_828_160,
    "Qwen/Qwen3.5-4B": 4_659_865_088 - 120_599_552,
    "Qwen/Qwen3.5-9B": 9_653_104_368 - 243_290_624,
    "Qwen/Qwen3.6-27B": 27_781_427_952 - 424_699_392,
    "Qwen/Qwen3.6-35B-A3B": 35_951_822_704 - 844_640_768,
    "meta-llama/Llama-2-7b-hf": 6_738_415_616,
    "meta-llama/Llama-2-70b-hf": 68_976_648_192,
    "meta-llama/Meta-Llama-3-8B": 8_030_261_248,
    "meta-llama/Llama-3.1-405B": 405_853_388_800,
    "meta-llama/Llama-3.2-1B": 1_235_814_400,
    "mistralai/Mistral-7B-v0.1": 7_241_732_096,
    "mistralai/Mixtral-8x7B-v0.1": 46_702_792_704,
    "mistralai/Mixtral-8x22B-v0.1": 140_620_634_112,
    "mistralai/Mistral-Nemo-Base-2407": 12_247_782_400,
    "Qwen/Qwen-7B": 7_721_324_544,
    "Qwen/Qwen1.5-MoE-A2.7B": 14_315_784_192,
    "Qwen/Qwen2.5-7B-Instruct": 7_615_616_512,
    "Qwen/Qwen2.5-VL-7B-Instruct": 8_292_166_656,
    "Qwen/Qwen2-VL-2B-Instruct": 2_208_985_600,
    "Qwen/Qwen3-8B": 8_190_735_360,
    "Qwen/Qwen3-30B-A3B": 30_532_122_624,
    "google/gemma-7b": 8_537_680_896,
    "google/gemma-2-9b": 9_241_705_984,
    "google/gemma-3-1b-it": 999_885_952,
    "google/gemma-3-4b-it": 4_300_079_472,
    "microsoft/phi-2": 2_779_683_840,
    "microsoft/Phi-3-mini-4k-instruct": 3_821_079_552,
    "microsoft/Phi-3.5-MoE-instruct": 41_873_153_344,
    "microsoft/phi-4": 14_659_507_200,
    "tiiuae/falcon-rw-1b": 1_311_625_216,
    "mosaicml/mpt-7b": 6_649_286_656,
    "EleutherAI/pythia-6.9b": 6_857_302_016,
    "EleutherAI/gpt-neox-20b": 20_554_567_680,
    "EleutherAI/gpt-j-6b": 6_050_882_784,
    "openai-community/gpt2": 124_439_808,
    "openai-community/gpt2-xl": 1_557_611_200,
    "facebook/opt-6.7b": 6_658_473_984,
    "facebook/opt-350m": 331_196_416,
    "bigscience/bloom": 176_247_271_424,
    "bigcode/starcoder": 15_517_456_384,
    "bigcode/starcoder2-7b": 7_173_923_840,
    "deepseek-ai/DeepSeek-V2-Lite": 15_706_484_224,
    "deepseek-ai/DeepSeek-V3": 671_026_419_200 - 58 * 256,  # the page counts the routers' correction buffers
    "THUDM/chatglm-6b": 6_173_286_400,
    "THUDM/chatglm3-6b": 6_243_584_000,
    "THUDM/glm-4-9b-chat": 9_399_951_360,
    "baichuan-inc/Baichuan-7B": 7_000_559_616,
    "baichuan-inc/Baichuan2-13B-Chat": 13_896_668_160,
    "internlm/internlm2-7b": 7_737_708_544,
    "openbmb/MiniCPM-2B-sft-bf16": 2_724_880_896,
    "openbmb/MiniCPM-Llama3-V-2_5": 8_537_092_336,
    "openbmb/MiniCPM-V-2_6": 8_099_175_152,
    "llava-hf/llava-1.5-7b-hf": 7_063_427_072,
    "google-t5/t5-large": 737_668_096,
    "CohereForAI/c4ai-command-r-v01": 34_980_831_232,
    "allenai/OLMo-1B-hf": 1_176_764_416,
    "allenai/OLMoE-1B-7B-0924": 6_919_161_856,
    "openai/gpt-oss-20b": 20_914_757_184,
    "HuggingFaceTB/SmolLM3-3B": 3_075_098_624,
    "01-ai/Yi-6B": 6_061_035_520,
    "01-ai/Yi-9B": 8_829_407_232,
    "deepseek-ai/deepseek-llm-7b-base": 6_910_365_696,
    "deepseek-ai/deepseek-coder-1.3b-base": 1_346_471_936,
    "deepseek-ai/deepseek-coder-6.7b-base": 6_740_512_768,
    "deepseek-ai/deepseek-coder-33b-base": 33_342_991_360,
    "upstage/SOLAR-10.7B-v1.0": 10_731_524_096,
    "mistralai/Ministral-8B-Instruct-2410": 8_019_808_256,
    "mistralai/Mistral-Small-24B-Base-2501": 23_572_403_200,
    "mistralai/Codestral-22B-v0.1": 22_247_282_688,
    "mistralai/Mistral-Small-3.1-24B-Instruct-2503": 24_011_361_280,
    "Qwen/Qwen1.5-14B": 14_167_290_880,
    "Qwen/Qwen1.5-32B": 32_512_218_112,
    "Qwen/CodeQwen1.5-7B": 7_250_284_544,
    "Qwen/Qwen2-57B-A14B": 57_408_658_944,
    "Qwen/Qwen2-VL-7B-Instruct": 8_291_375_616,
    "Qwen/Qwen2-VL-72B-Instruct": 73_405_560_320,
    "Qwen/Qwen2.5-VL-3B-Instruct": 3_754_622_976,
    "Qwen/Qwen2.5-VL-32B-Instruct": 33_452_718_336,
    "Qwen/Qwen3-VL-8B-Instruct": 8_767_123_696,
    "Qwen/Qwen3-VL-32B-Instruct": 33_357_390_064,
    "Qwen/Qwen3-VL-30B-A3B-Instruct": 31_070_754_032,
    "google/gemma-3-270m": 268_098_176,
    "microsoft/Phi-3-medium-4k-instruct": 13_960_238_080,
    "microsoft/Phi-4-mini-instruct": 3_836_021_760,
    "facebook/opt-2.7b": 2_651_596_800,
    "bigscience/bloom-1b1": 1_065_314_304,
    "bigscience/bloom-1b7": 1_722_408_960,
    "bigscience/bloom-3b": 3_002_557_440,
    "THUDM/GLM-4-9B-0414": 9_400_279_040,
    "internlm/internlm2_5-1_8b-chat": 1_889_110_016,
    "internlm/internlm2_5-20b-chat": 19_861_149_696,
    "openbmb/MiniCPM4-8B": 8_185_253_888,
    "openbmb/MiniCPM5-1B": 1_080_632_832,
    "allenai/OLMo-2-0425-1B": 1_484_916_736,
    "allenai/OLMo-2-1124-13B": 13_716_198_400,
    "ibm-granite/granite-3.1-2b-instruct": 2_533_531_648,
    "ibm-granite/granite-3.3-2b-instruct": 2_533_539_840,
    "ibm-granite/granite-3.3-8b-instruct": 8_170_864_640,
    "CohereForAI/aya-expanse-8b": 8_028_033_024,
    "stabilityai/stablelm-2-1_6b": 1_644_515_328,
    "OpenGVLab/InternVL2_5-1B": 938_193_024,
    "OpenGVLab/InternVL2_5-2B": 2_205_754_368,
    "OpenGVLab/InternVL2_5-4B": 3_712_637_952,
    "OpenGVLab/InternVL2_5-8B": 8_075_365_376,
    "OpenGVLab/InternVL2_5-26B": 25_514_186_112,
    "OpenGVLab/InternVL2_5-38B": 38_388_164_992,
    "OpenGVLab/InternVL2_5-78B": 78_408_318_336,
    "HuggingFaceTB/SmolVLM-256M-Instruct": 256_484_928,
    "meta-llama/Llama-3.2-11B-Vision-Instruct": 10_670_220_835,
    "ByteDance-Seed/Seed-OSS-36B-Instruct": 36_151_104_512,
    "openai/gpt-oss-120b": 116_829_156_672,
}


@pytest.mark.parametrize(("model", "parameters"), PUBLISHED.items())
def test_parameter_counts_are_the_published_ones(model: str, parameters: int) -> None:
    facts = lookup(model)
    assert facts is not None
    assert facts.parameters == parameters
    assert facts.exact


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


def test_facts_from_a_config() -> None:
    facts = from_config({**LLAMA, "num_key_value_heads": 8, "torch_dtype": "bfloat16"}, "mine")
    assert (facts.name, facts.layers, facts.kv_heads, facts.head_dim) == ("mine", 32, 8, 128)
    assert facts.checkpoint_dtype == "bf16"
    assert facts.config["max_position_embeddings"] == 2048
    assert facts.rotary_dim == 128


def test_an_unknown_architecture_with_llamas_keys_is_taken_as_a_llama() -> None:
    facts = from_config({**LLAMA, "model_type": "brand_new"})
    assert not facts.exact
    assert facts.parameters == 6_738_415_616
    assert "'brand_new'" in facts.notes[-1]


def test_an_unknown_multimodal_model_gives_its_language_model() -> None:
    facts = from_config({"model_type": "brand_new_vl", "vision_config": {}, "text_config": LLAMA})
    assert not facts.exact
    assert facts.parameters == 6_738_415_616
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
        ({"num_hidden_layers": "32"}, "c: num_hidden_layers is '32', must be a whole number from 1 to 10000"),
        ({"num_hidden_layers": True}, "c: num_hidden_layers is True, must be a whole number from 1 to 10000"),
        ({"num_hidden_layers": 1.5}, "c: num_hidden_layers is 1.5, must be a whole number from 1 to 10000"),
        ({"num_hidden_layers": float("nan")}, "c: num_hidden_layers is nan, must be a whole number from 1 to 10000"),
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
    assert models.find(str(tmp_path / "my-model")).parameters == 6_738_415_616  # type: ignore[union-attr]


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
