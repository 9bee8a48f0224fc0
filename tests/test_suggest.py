"""Suggestions for misspelt words."""

from __future__ import annotations

import pytest

from lintfit.suggest import did_you_mean, nearest

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
