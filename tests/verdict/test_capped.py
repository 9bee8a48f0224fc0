"""A length that is only a cap says of no run that it does not fit, as long as short samples would."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from tests.support import lintfit

RECIPE = """\
base_model: Qwen/Qwen2.5-7B
datasets: [{path: tatsu-lab/alpaca, type: alpaca}]
sequence_len: 16384
micro_batch_size: 1
adapter: lora
lora_r: 8
lora_target_linear: true
optimizer: adamw_torch
bf16: true
gradient_checkpointing: true
"""


def judged(folder: Path, recipe: str, *flags: str) -> dict[str, Any]:
    (folder / "recipe.yml").write_text(recipe)
    command = ("check", "recipe.yml", "--gpu", "rtx3090", "--gpus", "1", *flags, "--output-format", "json")
    found: dict[str, Any] = lintfit(*command, cwd=folder).json["runs"][0]
    return found


def test_a_cap_is_no_length(tmp_path: Path) -> None:
    found = judged(tmp_path, RECIPE)
    assert found["verdict"] == "tight"
    said = re.search(
        r"samples of no more than (\d+) tokens \(16384 are a cap", "|".join(found["estimate"]["assumptions"])
    )
    assert said is not None
    longest = int(said[1])
    assert judged(tmp_path, RECIPE, "--seq-len", str(longest))["verdict"] != "does-not-fit"
    assert judged(tmp_path, RECIPE, "--seq-len", str(longest + 256))["verdict"] == "does-not-fit"


def test_short_samples_may_be_too_much(tmp_path: Path) -> None:
    assert judged(tmp_path, RECIPE.replace("micro_batch_size: 1", "micro_batch_size: 32"))["verdict"] == "does-not-fit"


def test_what_is_filled_up_has_its_length(tmp_path: Path) -> None:
    for filled in ("sample_packing: true\nflash_attention: true\n", "pad_to_sequence_len: true\n"):
        assert judged(tmp_path, RECIPE + filled)["verdict"] == "does-not-fit"


def test_weights_alone_may_be_too_much(tmp_path: Path) -> None:
    assert judged(tmp_path, RECIPE.replace("2.5-7B", "2.5-32B"))["verdict"] == "does-not-fit"
