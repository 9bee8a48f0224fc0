"""``lintfit estimate``: specs, flags and files in; estimates out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support import lintfit

CONFIG = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "vocab_size": 1000,
    "tie_word_embeddings": False,
}
SPEC: dict[str, Any] = {"model_config": CONFIG, "gpu_memory_gib": 16, "seq_len": 128, "micro_batch_size": 2}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text(json.dumps(CONFIG))
    (tmp_path / "spec.json").write_text(json.dumps(SPEC))
    return tmp_path


def test_a_spec_gives_an_estimate(folder: Path) -> None:
    outcome = lintfit("estimate", "--spec", "spec.json", cwd=folder)
    assert (outcome.status, outcome.err) == (0, "")
    estimate = outcome.json
    assert list(estimate) == [
        *("peak_bytes", "peak_phase", "capacity_bytes", "host_bytes", "nvme_bytes", "components", "phases"),
        *("allocated_bytes", "verdict", "assumptions"),
    ]
    assert estimate["capacity_bytes"] == 16 * 2**30
    assert sum(estimate["components"].values()) == estimate["peak_bytes"]["likely"]


def test_an_array_gives_an_array_with_errors_in_place(folder: Path) -> None:
    specs = [SPEC, {**SPEC, "zero_stagee": 2}, 3, {**SPEC, "seq_len": 256}]
    outcome = lintfit("estimate", "--spec", "-", cwd=folder, stdin=json.dumps(specs).encode())
    first, second, third, fourth = outcome.json
    assert outcome.status == 2
    assert list(second) == ["error"] and "zero_stagee" in second["error"]
    assert third == {"error": "a spec is a JSON object"}
    assert fourth["components"]["activations"] > first["components"]["activations"]
    assert [line.split(":")[1] for line in outcome.err.splitlines()] == [" spec 2", " spec 3"]


def test_an_empty_array(folder: Path) -> None:
    outcome = lintfit("estimate", "--spec", "-", cwd=folder, stdin=b"[]")
    assert (outcome.status, outcome.json) == (0, [])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "standard input:1:1: not JSON"),
        (b"{", "standard input:1:2: not JSON"),
        (b'"text"', "standard input: a spec is a JSON object, or an array of them"),
        (b"\xff\xfe\x00", "standard input: not UTF-8"),
        (b"[" * 100_000, "standard input: not JSON that can be read"),
    ],
)
def test_what_is_no_spec(folder: Path, content: bytes, message: str) -> None:
    outcome = lintfit("estimate", "--spec", "-", cwd=folder, stdin=content)
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err.startswith(f"lintfit: {message}")
    assert outcome.err.count("\n") == 1


def test_flags_say_the_same_as_a_spec(folder: Path) -> None:
    flags = ("--model", "model", "--gpu-memory", "16GiB", "--seq-len", "128", "--micro-batch-size", "2")
    by_flags = lintfit("estimate", *flags, "--output-format", "json", cwd=folder)
    assert by_flags.status == 0
    assert by_flags.json == lintfit("estimate", "--spec", "spec.json", cwd=folder).json


def test_text(folder: Path) -> None:
    text = lintfit("estimate", "--spec", "spec.json", "--output-format", "text", cwd=folder).out
    assert "memory of one GPU: " in text
    assert "torch sees (allocated)" in text
    assert "the optimizer step" in text


def test_a_wrong_flag(folder: Path) -> None:
    outcome = lintfit("estimate", "--model", "model", "--zero-stage", "7", cwd=folder)
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err.startswith("lintfit: zero_stage: 7")


def test_a_model_config_that_is_none(folder: Path) -> None:
    (folder / "list.json").write_text("[]")
    outcome = lintfit("estimate", "--model-config", "list.json", cwd=folder)
    assert outcome.err == "lintfit: list.json: expected a JSON object, as a model's config.json is\n"


def test_a_folder_without_runs(tmp_path: Path) -> None:
    outcome = lintfit("estimate", cwd=tmp_path)
    assert (outcome.status, outcome.out) == (0, "No runs found.\n")
