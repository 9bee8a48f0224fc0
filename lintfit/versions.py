"""Versions of libraries, as packaging reads and compares them; loaded where there is a version to read."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from packaging.version import Version

Release = tuple[int, int, int]

_LONGEST = 200
"""Characters of a version that is still read."""


@lru_cache(maxsize=256)
def release(text: str | None) -> Release | None:
    """The first three numbers of a version: ``4.48`` and ``4.48.0.dev0`` are (4, 48, 0).

    None where it is absent or begins with no version (``main``). A development version counts as the release that it
    leads to, as transformers' own ``is_..._available`` have it.
    """
    version = parsed(text)
    if version is None:
        return None
    major, minor, patch = (*version.release, 0, 0)[:3]
    return major, minor, patch


def parsed(text: str | None) -> Version | None:
    """The version that a text begins with: of ``4.48.*`` and ``4.48-custom`` it is 4.48; None where there is none."""
    if not text or len(text) > _LONGEST or not text[0].isalnum():
        return None
    from packaging.version import Version

    found = _pattern().match(text)
    return Version(found[0]) if found is not None else None


def before(version: str | None, bound: str) -> bool | None:
    """Whether a version is older than a bound; None where the version is not known.

    A version written ``<5`` (an upper bound in the requirements) is older than 5; of one written ``<6`` that is not
    known.
    """
    if version is None:
        return None
    have, want = release(version.removeprefix("<")), release(bound)
    if have is None or want is None:
        return None
    if version.startswith("<"):
        return True if have <= want else None
    return have < want


def concrete(version: str) -> str:
    """A version that an upper bound admits: ``<5`` gives 4.99, ``<4.50`` gives 4.49.99; others stay as they are."""
    bound = parsed(version[1:]) if version.startswith("<") else None
    if bound is None:
        return version
    parts = list(bound.release[:3])
    while len(parts) > 1 and parts[-1] == 0:
        parts.pop()
    return ".".join(map(str, [*parts[:-1], max(0, parts[-1] - 1), 99]))


@lru_cache(maxsize=1)
def _pattern() -> re.Pattern[str]:
    from packaging.version import VERSION_PATTERN

    return re.compile(VERSION_PATTERN, re.VERBOSE | re.IGNORECASE | re.ASCII)
