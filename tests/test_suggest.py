"""Suggestions for misspelt words."""

from __future__ import annotations

import pytest

from lintfit.schema.sections import load, section_at
from lintfit.suggest import LONGEST, did_you_mean, distance, is_typo, most_alike, nearest

KEYS = ["gpu", "gpus", "gpu-memory", "host-memory", "overlap_comm", "gradient_clipping", "stage"]


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("gpsu", "gpus"),
        ("GPU_memory", "gpu-memory"),
        ("overlap_com", "overlap_comm"),
        ("gradient_clipp1ng", "gradient_clipping"),
        ("satge", "stage"),
        ("Stage", "stage"),
        ("zebra", None),
        ("", None),
        ("x" * 10_000, None),
    ],
)
def test_nearest(word: str, meant: str | None) -> None:
    assert nearest(word, KEYS) == meant


def test_the_sentence() -> None:
    assert did_you_mean("stge", KEYS) == '; did you mean "stage"?'
    assert did_you_mean("offload", KEYS) == ""


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ("", "", 0),
        ("", "abc", 3),
        ("stage", "stage", 0),
        ("stgae", "stage", 1),
        ("overlap_com", "overlap_comm", 1),
        ("kitten", "sitting", 3),
        ("zero_optimisation", "zero_optimization", 1),
    ],
)
def test_distance(left: str, right: str, expected: int) -> None:
    assert distance(left, right) == distance(right, left) == expected
    assert distance(left, right, 1) == expected or distance(left, right, 1) > 1


def test_short_words_are_not_taken_for_each_other() -> None:
    assert nearest("fp8", ["aio"]) is None
    assert nearest("tp", ["dp"]) == "dp"
    assert nearest("bf-16", ["bf16", "fp16"]) == "bf16"
    # One letter is all that sets them apart, and both exist.
    assert not is_typo("fp16", "bf16")


@pytest.mark.parametrize("word", ["monitor_config", "logging", "overwrite", "num_machines", "x"])
def test_no_guesses(word: str) -> None:
    assert nearest(word, load("deepspeed")["properties"]) is None


@pytest.mark.parametrize("path", [(), ("zero_optimization",), ("fp16",), ("zero_optimization", "offload_optimizer")])
def test_every_slip_in_a_key_is_understood(path: tuple[str, ...]) -> None:
    known = list(section_at(load("deepspeed"), *path)["properties"])
    for key in known:
        assert nearest(key, known) == key
        middle = len(key) // 2
        if len(key) >= 8:
            for slip in (key[:middle] + key[middle + 1 :], key[:middle] + "q" + key[middle:], key + "s", key[:-2]):
                meant = nearest(slip, known)
                assert meant is not None
                assert meant == key or distance(slip, meant) <= distance(slip, key), slip


def test_a_word_longer_than_any_key_is_not_compared() -> None:
    assert nearest("a" * LONGEST, ["a" * (LONGEST - 1)]) and most_alike("a" * LONGEST, ["a" * LONGEST], 0.7)
    assert nearest("a" * (LONGEST + 1), ["a" * LONGEST]) is None
    assert most_alike("a" * (LONGEST + 1), ["a" * LONGEST], 0.7) is None
