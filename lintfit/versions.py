"""Versions of libraries, as packaging reads and compares them; loaded where there is a version to read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from packaging.version import Version

Release = tuple[int, int, int]

FLOOR = ">="
"""Ends the key under which the oldest version that a project takes stands."""

COMMIT = "@"
"""Ends the key under which the commit stands that a project takes a library from."""

FORK = "!"
"""Ends the key that says that a project takes a library from somebody's own repository, or from a folder of its own."""


def library_of(key: str) -> str:
    """The library that a key of the versions is of: of ``transformers>=`` and ``transformers@`` it is transformers."""
    return key.removesuffix(FLOOR).removesuffix(COMMIT).removesuffix(FORK)


RECENT: Mapping[str, str] = {
    "transformers": "4.46.3",
    "trl": "0.12",
    "peft": "0.13",
    "accelerate": "1.1.1",
    "deepspeed": "0.15.4",
    "torch": "2.5",
    "bitsandbytes": "0.44",
    "axolotl": "0.5",
}
"""The releases that were current in November 2024, 24 months before the newest that lintfit has studied: what may run
where nothing dates a project (release dates of PyPI; trl 0.12.1 is of 14 November 2024, accelerate 1.1.1 of the 6th,
peft 0.13.2 of 11 October, transformers 4.46.3 of 18 November, deepspeed 0.15.4 of the 8th, torch 2.5.1 of 29 October,
bitsandbytes 0.44.1 of 30 September, axolotl 0.5.2 of 19 November)."""

_LONGEST = 200
"""Characters of a version that is still read."""


_BARE = re.compile(r"[0-9]+(?:\.[0-9]+)*")


@lru_cache(maxsize=256)
def release(text: str | None) -> Release | None:
    """The first three numbers of a version: ``4.48`` and ``4.48.0.dev0`` are (4, 48, 0).

    None where it is absent or begins with no version (``main``). A development version counts as the release that it
    leads to, as transformers' own ``is_..._available`` have it.
    """
    found = numbers(text)
    if found is None:
        return None
    major, minor, patch = (*found, 0, 0)[:3]
    return major, minor, patch


def numbers(text: str | None) -> tuple[int, ...] | None:
    """The numbers of a version as many as are written: ``4.48.dev0`` has (4, 48); None where there is none."""
    if text and len(text) <= _LONGEST and _BARE.fullmatch(text):
        # A bare release needs no packaging, which takes a tenth of the time of an estimate to import.
        return tuple(map(int, text.split(".")))
    version = parsed(text)
    return version.release if version is not None else None


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
    bound = numbers(version[1:]) if version.startswith("<") else None
    if bound is None:
        return version
    parts = list(bound[:3])
    while len(parts) > 1 and parts[-1] == 0:
        parts.pop()
    return ".".join(map(str, [*parts[:-1], max(0, parts[-1] - 1), 99]))


class Versions(Mapping[str, str]):
    """What is known of the libraries' versions, and at which of them what is read with it comes out otherwise.

    A library that is missing is of the newest version. ``<`` before a version makes it an upper bound; a floor stands
    under the library's name with ``>=`` behind it, a commit with ``@``, that it is a fork with ``!``. ``sources`` says
    by library who states it.
    """

    def __init__(
        self, known: Mapping[str, str], sources: Mapping[str, str], asked: Iterable[tuple[str, Release]] = ()
    ) -> None:
        self._known = known
        self.sources = sources
        self._asked = set(asked)

    def __getitem__(self, library: str) -> str:
        return self._known[library]

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)

    def ask(self, library: str, bound: tuple[int, ...]) -> None:
        """Note that what is read hangs on whether a library is older than a version."""
        major, minor, patch = (*bound, 0, 0)[:3]
        self._asked.add((library, (major, minor, patch)))

    @property
    def asked(self) -> frozenset[tuple[str, Release]]:
        """What was asked so far."""
        return frozenset(self._asked)

    @property
    def open_questions(self) -> tuple[tuple[str, str], ...]:
        """Libraries with the versions that what was read hangs on, and that their range goes across."""
        asked = sorted(self._asked)
        return tuple((library, written(bound)) for library, bound in asked if self.crosses(library, written(bound)))

    def crosses(self, library: str, bound: str) -> bool:
        """Whether the range of a library holds versions before a bound and versions from there on."""
        known = self._known.get(library)
        if known is not None and (not known.startswith("<") or before(known, bound)):
            return False
        oldest = self._known.get(library + FLOOR) or RECENT.get(library)
        return oldest is not None and before(oldest, bound) is True

    def with_bound(self, library: str, bound: str, source: str) -> Versions:
        """The same with a library that is older than a version."""
        return Versions({**self._known, library: f"<{bound}"}, {**self.sources, library: source}, self._asked)

    def without(self, library: str) -> Versions:
        """The same without a library's version, bound or floor."""
        known = {name: version for name, version in self._known.items() if name not in (library, library + FLOOR)}
        sources = {name: source for name, source in self.sources.items() if name not in (library, library + FLOOR)}
        return Versions(known, sources, self._asked)

    def with_floor(self, library: str, bound: str, source: str) -> Versions:
        """The same with a library that is no older than a version."""
        key = library + FLOOR
        return Versions({**self._known, key: bound}, {**self.sources, key: source}, self._asked)


def written(bound: Release) -> str:
    """A version as people write it: (5, 0, 0) is 5, (0, 29, 0) is 0.29."""
    numbers = list(bound)
    while len(numbers) > 1 and numbers[-1] == 0:
        numbers.pop()
    return ".".join(map(str, numbers))


@lru_cache(maxsize=1)
def _pattern() -> re.Pattern[str]:
    from packaging.version import VERSION_PATTERN

    return re.compile(VERSION_PATTERN, re.VERBOSE | re.IGNORECASE | re.ASCII)
