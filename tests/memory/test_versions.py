"""Which version of a library a formula goes by."""

from __future__ import annotations

import pytest

from lintfit.memory.reading.parse import spec_from_mapping
from lintfit.memory.versions import (
    NEWEST_TRANSFORMERS,
    before_transformers_5,
    release,
    since,
    transformers_version,
)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("4.48.1", (4, 48, 1)),
        ("v5.0", (5, 0, 0)),
        ("5", (5, 0, 0)),
        ("0.19.2+cu124", (0, 19, 2)),
        ("4.49.0.dev0", (4, 49, 0)),
        ("5.0rc1", (5, 0, 0)),
        ("main", None),
        ("", None),
        (None, None),
    ],
)
def test_a_version_is_its_first_three_numbers(text: str | None, numbers: tuple[int, int, int] | None) -> None:
    assert release(text) == numbers


def test_what_is_not_stated_is_the_newest() -> None:
    spec = spec_from_mapping({"model": "gpt2", "versions": {"bitsandbytes": "0.43.1"}})
    assert since(spec, "deepspeed", (99, 0)) and transformers_version(spec) == NEWEST_TRANSFORMERS
    assert since(spec, "bitsandbytes", (0, 43, 1)) and not since(spec, "bitsandbytes", (0, 43, 2))


@pytest.mark.parametrize(
    ("versions", "version"),
    [({"trl": "0.17.0"}, (4, 57)), ({"torch": "2.0.1"}, (4, 57)), ({"trl": "0.17.0", "transformers": "5.1.0"}, (5, 1))],
)
def test_a_library_too_old_for_transformers_5_stands_beside_4(
    versions: dict[str, str], version: tuple[int, int]
) -> None:
    """In everything that goes by transformers' version, not only in its defaults."""
    spec = spec_from_mapping({"model": "gpt2", "versions": versions})
    assert transformers_version(spec) == version
    assert before_transformers_5(versions) is (version < (5, 0))
