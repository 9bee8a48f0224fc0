"""Single versions, as packaging reads them."""

from __future__ import annotations

import pytest

from lintfit.versions import Release, before, concrete, release


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("4.48.1", (4, 48, 1)),
        ("4.48", (4, 48, 0)),
        ("v4.48", (4, 48, 0)),
        ("4.48.0.dev0", (4, 48, 0)),
        ("5.0.0rc1", (5, 0, 0)),
        ("2.4.1+cu121", (2, 4, 1)),
        ("4.48.*", (4, 48, 0)),
        ("4.x", (4, 0, 0)),
        ("1.2.3.4", (1, 2, 3)),
        ("main", None),
        ("", None),
        (None, None),
        (">=4", None),
        ("²", None),
        ("9" * 5000, None),
    ],
)
def test_release(text: str | None, expected: Release | None) -> None:
    assert release(text) == expected


@pytest.mark.parametrize(
    ("bound", "version"), [("<5", "4.99"), ("<4.50", "4.49.99"), ("<5.0.0", "4.99"), ("4.48.1", "4.48.1"), ("<x", "<x")]
)
def test_a_version_below_a_bound(bound: str, version: str) -> None:
    assert concrete(bound) == version


def test_nothing_is_older_or_newer_than_an_unknown_version() -> None:
    assert before("main", "5") is None
    assert before("<main", "5") is None
