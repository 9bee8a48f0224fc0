"""Which version of a library a formula goes by."""

from __future__ import annotations

import pytest

from lintfit.memory.reading.parse import spec_from_mapping
from lintfit.memory.versions import NEWEST_TRANSFORMERS, release, since, transformers_version


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
