"""How many images a sample has is said by a flag or the config, where a model sees any."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support import lintfit

TRL = """\
model_name_or_path: {model}
dataset_name: trl-lib/Capybara
output_dir: out
learning_rate: 1.0e-5
per_device_train_batch_size: 1
max_length: 2048
"""
GPU = ("--gpu", "h100-80gb", "--gpus", "8", "--output-format", "json")


def _estimate(folder: Path, *words: str) -> Any:
    (run,) = lintfit("check", "sft.yaml", *GPU, *words, cwd=folder).json["runs"]
    return run["estimate"]


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    (tmp_path / "sft.yaml").write_text(TRL.format(model="Qwen/Qwen2-VL-2B-Instruct"))
    return tmp_path


def test_by_a_flag_and_by_the_config(recipe: Path) -> None:
    none, four = (_estimate(recipe, "--images", count)["peak_bytes"]["likely"] for count in ("0", "4"))
    assert none < four
    (recipe / "lintfit.toml").write_text("images = 4\n")
    assert _estimate(recipe)["peak_bytes"]["likely"] == four
    assert _estimate(recipe, "--images", "0")["peak_bytes"]["likely"] == none


def test_of_a_model_that_sees_none_nothing_changes(tmp_path: Path) -> None:
    (tmp_path / "sft.yaml").write_text(TRL.format(model="Qwen/Qwen2.5-0.5B"))
    assert _estimate(tmp_path, "--images", "4") == _estimate(tmp_path)


def test_a_number_of_images_that_is_none(recipe: Path) -> None:
    done = lintfit("check", "sft.yaml", "--images", "-1", cwd=recipe)
    assert done.status == 2 and "a whole number of 0 or more" in done.err
