"""A run of which a part is open fits where one that takes no less fits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support import lintfit

RECIPE = """\
base_model: Qwen/Qwen2.5-0.5B
datasets: [{path: tatsu-lab/alpaca, type: alpaca}]
sequence_len: 1024
micro_batch_size: 1
optimizer: adamw_torch
bf16: true
gradient_checkpointing: true
"""


def judged(folder: Path, recipe: str, gpu: str) -> dict[str, Any]:
    (folder / "recipe.yml").write_text(recipe)
    command = ("check", "recipe.yml", "--gpu", gpu, "--gpus", "1", "--output-format", "json")
    found: dict[str, Any] = lintfit(*command, cwd=folder).json["runs"][0]
    return found


@pytest.mark.parametrize(
    ("added", "said"),
    [
        ("attn_implementation: xformers\n", "writes its scores out"),
        ("adapter: lora\nlora_r: 8\nlora_target_linear: true\ngptq: true\n", "weights of eight bits"),
    ],
    ids=["attention", "quantization"],
)
def test_what_is_open_does_not_hide_that_a_run_fits(tmp_path: Path, added: str, said: str) -> None:
    found = judged(tmp_path, RECIPE + added, "a100-80gb")
    assert found["verdict"] == "fits"
    assert any(said in line for line in found["estimate"]["assumptions"])


def test_what_may_not_fit_stays_unknown(tmp_path: Path) -> None:
    """The scores of 8192 tokens take more than the GPU has; another kernel makes none."""
    large = RECIPE.replace("sequence_len: 1024", "sequence_len: 8192")
    found = judged(tmp_path, large + "attn_implementation: xformers\npad_to_sequence_len: true\n", "rtx3090")
    assert found["verdict"] == "unknown"
