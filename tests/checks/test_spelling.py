from __future__ import annotations

import pytest

from lintfit.catalog.deepspeed_keys import SECTIONS, TOP_LEVEL
from lintfit.checks.spelling import distance, is_typo, nearest


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [("", "", 0), ("", "abc", 3), ("stage", "stage", 0), ("overlap_com", "overlap_comm", 1), ("kitten", "sitting", 3)],
)
def test_distance(left: str, right: str, expected: int) -> None:
    assert distance(left, right) == distance(right, left) == expected


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("zero_optimisation", "zero_optimization"),
        ("zero-optimization", "zero_optimization"),
        ("Gradient_Clipping", "gradient_clipping"),
        ("train_micro_batch_size_per_gpus", "train_micro_batch_size_per_gpu"),
    ],
)
def test_nearest_finds_what_was_meant(word: str, meant: str) -> None:
    assert nearest(word, TOP_LEVEL) == meant
    assert is_typo(word, meant)


@pytest.mark.parametrize("word", ["monitor_config", "logging", "fp8", "overwrite", "num_machines", "x"])
def test_nearest_does_not_guess(word: str) -> None:
    assert nearest(word, TOP_LEVEL) is None


def test_short_words_are_not_corrected() -> None:
    # One letter is all that sets them apart, and both exist.
    assert nearest("fp16", {"bf16"}) == "bf16"
    assert not is_typo("fp16", "bf16")


def test_known_words_are_their_own_neighbours() -> None:
    for known in (TOP_LEVEL, *SECTIONS.values()):
        assert all(nearest(word, known) == word for word in known)
