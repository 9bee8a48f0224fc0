"""Names of models that nobody published, read as the family, version and size that they say."""

from __future__ import annotations

from pathlib import Path

import pytest

from lintfit.catalog.families import ROOM, Named, named
from lintfit.catalog.models import lookup
from lintfit.memory import estimate
from lintfit.memory.reading.parse import spec_from_mapping
from tests.support import lintfit


@pytest.mark.parametrize(
    ("name", "like"),
    [
        ("output/my-llama-2-7b-sft", "meta-llama/Llama-2-7b-hf"),
        ("your_llama2-70b", "meta-llama/Llama-2-70b-hf"),
        ("your_llama_13b/13b2", "huggyllama/llama-13b"),
        ("/data/models/Qwen2_5-7B-math", "Qwen/Qwen2.5-7B"),
        ("/cache/LLM-Research/Llama-3___2-3B-Instruct", "meta-llama/Llama-3.2-3B-Instruct"),
        ("../Llama-3-8b-mine/checkpoint-100", "meta-llama/Meta-Llama-3-8B"),
        ("vicuna-7b-mine-v1.3", "lmsys/vicuna-7b-v1.3"),
        ("./checkpoints/vicuna-v1-3-7b", "lmsys/vicuna-7b-v1.3"),
        ("llama-7b-alpaca", "huggyllama/llama-7b"),
        ("output/PiSSA-Llama-2-7b-r128", "meta-llama/Llama-2-7b-hf"),
        ("my-qwen3-4b", "Qwen/Qwen3-4B"),
        ("out/my-qwen2.5-3b_simpo_lr_1e-5_epoch_3", "Qwen/Qwen2.5-3B"),
        ("./checkpoints/llama-vicuna-7b", "lmsys/vicuna-7b-v1.5"),
        ("out/Qwen3-30B-A3B-Instruct-2507/v0-20250101-120000/checkpoint-100", "Qwen/Qwen3-30B-A3B-Instruct-2507"),
        ("path-to-Llama-2-13b-hf", "meta-llama/Llama-2-13b-hf"),
        ("/share/Llama-2-7b-32k-bf16/2023-11-02", "meta-llama/Llama-2-7b-hf"),
    ],
)
def test_the_shape_is_the_one_that_the_owner_published(name: str, like: str) -> None:
    found, published = lookup(name), lookup(like)
    assert found is not None and published is not None
    assert (found.hidden, found.layers, found.vocab) == (published.hidden, published.layers, published.vocab)
    assert any("by the name" in note for note in found.notes)


@pytest.mark.parametrize(
    "name",
    [
        "qwen-2b-run",  # no Qwen without a version has this size
        "gemma-2b-run",  # the first and the second Gemma of this size differ
        "llama-2-7b-lora",  # adapters alone
        "llava-llama-2-7b",
        "llama-2-7b-pruned",
        "foo/llama-2-7b-64experts",
        "foo/llama-3-8b-upscaled",
        "foo/Llama-8B-chat-zh",  # nobody published a Llama of that size without a version
        "foo/llama-3-8b-bf16-vision",
        "foo/Llama-3.2-Mamba-3B",
        "foo/mplug-owl2-llama2-7b",  # sees
        "my-llama-4-17b",  # of 16 experts or of 128
        "my-gemma-3-2b",  # Gemma 3n says so of its own
        "llama-2-7b-qwen-7b",
        "/opt/models/13b",
        "llama-2-7b-to-13b",
        "my-llama",
    ],
)
def test_what_may_have_another_shape_is_unknown(name: str) -> None:
    assert lookup(name) is None


@pytest.mark.parametrize(
    ("name", "like", "most"),
    [
        ("foo/tamil-llama-7b-v0.1", "huggyllama/llama-7b", 32_000 + ROOM),
        ("foo/llama-2-7b-hindi-tokenizer", "meta-llama/Llama-2-7b-hf", 32_000 + ROOM),
        ("foo/Llama-3.1-Owlet-8B-v0.2", "meta-llama/Llama-3.1-8B", 128_256 + ROOM),
        ("foo/zephyr-gemma-2-9b-sft", "google/gemma-2-9b", 256_000 + ROOM),
        ("out/cautious-llama3-8b-sft-cutoff-2", "meta-llama/Meta-Llama-3-8B", 128_256 + ROOM),
        ("mistral-7b-mine", "mistralai/Mistral-7B-v0.1", 32_768),  # 32,000 words, or 32,768 as its third version has
    ],
)
def test_words_that_nobody_knows_leave_the_vocabulary_open(name: str, like: str, most: int) -> None:
    found, published = lookup(name), lookup(like)
    assert found is not None and published is not None and found.larger is not None
    assert (found.parameters, found.larger.vocab) == (published.parameters, most)
    assert found.larger.layers == found.layers and found.larger.parameters > found.parameters


def test_an_open_vocabulary_widens_the_range() -> None:
    settings = {"gpu": "a100-80gb", "method": "lora", "seq_len": 2048, "gradient_checkpointing": True}
    known = estimate(spec_from_mapping({**settings, "model": "meta-llama/Meta-Llama-3-8B"})).peak
    result = estimate(spec_from_mapping({**settings, "model": "foo/llama-3-owlet-8b"}))
    assert (result.peak.low, result.peak.likely) == (known.low, known.likely)
    assert result.peak.high > known.high + 2 * 4096 * ROOM
    assert any("vocabulary of 128256" in line and "193792" in line for line in result.assumptions)


def test_a_version_stands_behind_the_family() -> None:
    assert named("llama-7b-run-2") == Named("llama", "", "7b")
    assert named("qwen2p5-7b") == Named("qwen", "2.5", "7b")
    assert named("mixtral-8x7b-v0.1-mine") == Named("mixtral", "0.1", "8x7b")


def test_the_dtype_of_a_checkpoint_that_nobody_knows_is_assumed(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "from transformers import AutoModelForCausalLM, Trainer, TrainingArguments\n"
        'model = AutoModelForCausalLM.from_pretrained("foo/llama-3-owlet-8b", torch_dtype="auto")\n'
        'Trainer(model=model, args=TrainingArguments("out"), train_dataset=data).train()\n'
    )
    (tmp_path / "run.sh").write_text("torchrun --nproc_per_node 8 train.py\n")
    found = lintfit("check", "run.sh", "--output-format", "json", cwd=tmp_path).json["runs"][0]
    dtype = found["settings"]["weights_dtype"]
    assert (dtype["value"], dtype["from"]["kind"]) == ("bf16", "assumed")
