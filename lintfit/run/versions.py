"""Which versions of the libraries a project asks for, from its requirements, pyproject or lock file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from lintfit.documents import door
from lintfit.documents.door import MAX_REQUIREMENTS
from lintfit.memory.versions import TOO_OLD, before_transformers_5
from lintfit.numerals import natural

BEFORE_5 = "<5"

LIBRARIES = (
    "torch", "transformers", "trl", "peft", "deepspeed", "accelerate", "bitsandbytes", "liger-kernel",
    "auto-gptq", "auto_gptq", "gptqmodel",
)  # fmt: skip

FLOOR = ">="
"""Ends the key under which the oldest version that a project takes stands."""

_CONDA = ("environment*.yml", "environment*.yaml", "conda*.yml", "conda*.yaml")
COMMIT = "@"
"""Ends the key under which the commit stands that a project takes a library from."""

_FILES = (
    "requirements*.txt",
    "requirements/*.txt",
    "constraints*.txt",
    "pyproject.toml",
    "setup.py",
    "setup.cfg",
    "Pipfile",
    *_CONDA,
)
"""Where requirements stand, as patterns; the first that names a library counts."""
_LOCKS = ("uv.lock", "poetry.lock", "pdm.lock")
_LEVELS = 7

_NAMES = "|".join(LIBRARIES)
_PIN = re.compile(
    rf"""(?<![\w.-])(?P<name>{_NAMES})(?:\[[^\]]*\])?["']?\s*(?:=\s*["'])?"""
    r"""(?:(?:>=?|!=)\s*v?\d+(?:\.\d+)*\S*?\s*,\s*)*"""
    r"""(?P<op>===|==|~=|<=|<|\^)\s*v?(?P<version>\d+(?:\.\d+)*)""",
    re.ASCII,
)
_FLOOR = re.compile(
    rf"""(?<![\w.-])(?P<name>{_NAMES})(?:\[[^\]]*\])?["']?\s*(?:=\s*["'])?>=\s*v?(?P<version>\d+(?:\.\d+)*)""", re.ASCII
)
_ELSEWHERE = re.compile(
    r"""^(?!.*\bor\b).*\b(?:sys_platform|platform_system)\s*==\s*["'](?:darwin|win32|Darwin|Windows)["']"""
)
"""A requirement that only holds on other systems than those that train."""
_CONDA_PIN = re.compile(
    rf"""^\s*-\s*["']?(?:[\w./-]+::)?(?P<name>{_NAMES}|pytorch)=v?(?P<version>\d+(?:\.\d+)*)""", re.ASCII | re.MULTILINE
)
"""Conda's ``- transformers=4.48.0=build``; its ``pytorch`` is torch."""
_POETRY = re.compile(
    rf"""^(?P<name>{_NAMES}|pytorch)\s*=\s*(?:\{{\s*version\s*=\s*)?["'](?P<version>\d+(?:\.\d+)*)["']""",
    re.ASCII | re.MULTILINE,
)
"""Poetry's ``transformers = "4.36.0"``, which takes no other version."""
_POETRY_SECTION = re.compile(
    r"^\[tool\.poetry\.(?:\S+\.)?(?:dev-)?dependencies\]$(?P<lines>(?:\n(?!\[).*)*)", re.MULTILINE
)
_PIPENV = re.compile(rf'"(?P<name>{_NAMES})": \{{[^{{}}]*"version": "==(?P<version>[^"]+)"')
_REPOSITORY = re.compile(rf"git\+\S*?/(?P<name>{_NAMES})(?:\.git)?@v?(?P<at>[\w.]+)", re.ASCII | re.IGNORECASE)
_LOCKED = re.compile(rf'name = "(?P<name>{_NAMES})"\s+version = "(?P<version>[^"]+)"')


def versions_near(path: Path, root: Path) -> Mapping[str, str]:
    """Library → version, from the project files beside and above a file, the nearest first.

    ``==`` and ``~=`` give the version itself, ``<=`` the bound; ``<`` and ``^`` the bound marked with a leading ``<``.
    A library without an upper bound is absent: the newest is assumed. What ``>=`` asks for stands under the library's
    name with ``>=`` behind it (``transformers>=``), a commit of its repository with ``@`` (``transformers@``).
    """
    found: dict[str, str] = {}
    for folder in _folders(path, root):
        for name, version in _read_folder(folder).items():
            found.setdefault(name, version)
    return found


def with_transformers(versions: Mapping[str, str]) -> Mapping[str, str]:
    """The same, with a transformers before 5 where nothing says which and another library is too old for 5."""
    if "transformers" in versions or not _too_old_for_5(versions):
        return versions
    return {**versions, "transformers": BEFORE_5}


def installed(versions: Mapping[str, str]) -> dict[str, str]:
    """What the memory model is told: versions that files state. What follows from them it finds itself."""
    found = {library: concrete(version) for library, version in versions.items() if library in LIBRARIES}
    if versions.get("transformers") == BEFORE_5 and _too_old_for_5(versions):
        del found["transformers"]
    return found


def _too_old_for_5(versions: Mapping[str, str]) -> bool:
    others = {library: concrete(versions[library]) for library in TOO_OLD if library in versions}
    return bool(others) and before_transformers_5(others)


def _folders(path: Path, root: Path) -> Iterator[Path]:
    folder = path.absolute().parent
    stop = root.absolute()
    for _ in range(_LEVELS):
        yield folder
        if folder in (stop, folder.parent) or door.exists(folder / ".git"):
            return
        folder = folder.parent


@cache
def _read_folder(folder: Path) -> Mapping[str, str]:
    found: dict[str, str] = {}
    locked = [match for name in _LOCKS for match in _LOCKED.finditer(_text(folder / name))]
    for match in (*locked, *_PIPENV.finditer(_text(folder / "Pipfile.lock"))):
        found.setdefault(match["name"], match["version"])
    for path in _matching(folder):
        text = _without_comments(_text(path))
        if path.suffix in (".yml", ".yaml"):
            for match in _CONDA_PIN.finditer(text):
                name = "torch" if match["name"] == "pytorch" else match["name"]
                found.setdefault(name, match["version"])
        for section in _POETRY_SECTION.finditer(text) if path.name == "pyproject.toml" else ():
            for match in _POETRY.finditer(section["lines"]):
                found.setdefault("torch" if match["name"] == "pytorch" else match["name"], match["version"])
        for match in _PIN.finditer(text):
            found.setdefault(match["name"], _bound(match["op"], match["version"]))
        for match in _REPOSITORY.finditer(text):
            tagged = re.fullmatch(r"\d+(\.\d+)+", match["at"]) is not None
            found.setdefault(match["name"].lower() + ("" if tagged else COMMIT), match["at"])
        for match in _FLOOR.finditer(text):
            found.setdefault(match["name"] + FLOOR, match["version"])
    return found


def _matching(folder: Path) -> Iterator[Path]:
    for pattern in _FILES:
        yield from sorted(door.matching(folder, pattern), key=lambda path: (len(path.name), path.name))


def _bound(operator: str, version: str) -> str:
    """Poetry's ``^4.40`` takes anything before 5."""
    if operator == "^":
        major = natural(version.partition(".")[0])
        return f"<{major + 1}" if major is not None else version
    return f"<{version}" if operator == "<" else version


def _without_comments(text: str) -> str:
    return "\n".join(line.split("#", 1)[0] for line in text.splitlines() if not _ELSEWHERE.search(line))


def _text(path: Path) -> str:
    try:
        return door.read_regular(path, MAX_REQUIREMENTS).decode("utf-8", errors="replace")
    except OSError:
        return ""


def before(version: str | None, bound: str) -> bool | None:
    """Whether a version is older than a bound; None where the version is not known.

    A version written ``<5`` (an upper bound in the requirements) is older than 5; of one written ``<6`` that is not
    known.
    """
    if version is None:
        return None
    exclusive = version.startswith("<")
    have, want = _parts(version.removeprefix("<")), _parts(bound)
    if exclusive:
        return True if have <= want else None
    return have < want


def concrete(version: str) -> str:
    """A version that an upper bound admits: ``<5`` gives 4.99, ``<4.50`` gives 4.49.99; others stay as they are."""
    if not version.startswith("<"):
        return version
    parts = [int(part) for part in re.findall(r"\d{1,9}", version)[:3]]
    while len(parts) > 1 and parts[-1] == 0:
        parts.pop()
    return ".".join(map(str, [*parts[:-1], max(0, parts[-1] - 1), 99]))


def _parts(version: str) -> tuple[int, ...]:
    parts = [int(part) for part in re.findall(r"\d{1,9}", version)[:3]]
    return tuple(parts + [0] * (3 - len(parts)))
