"""Which versions of the libraries a project asks for, in its requirements, pyproject or lock file."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase, translate
from functools import cache, lru_cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from lintfit.documents import door
from lintfit.documents.door import MAX_REQUIREMENTS
from lintfit.documents.paths import resolved
from lintfit.documents.patterns import lazy_pattern
from lintfit.versions import COMMIT, FLOOR, FORK, library_of, parsed, release

if TYPE_CHECKING:
    from packaging.specifiers import Specifier

    from lintfit.documents.workspace import Workspace
    from lintfit.run.front_end_pins import FrontEndPins

LIBRARIES = (
    "torch", "transformers", "trl", "peft", "deepspeed", "accelerate", "bitsandbytes", "liger-kernel",
    "auto-gptq", "auto_gptq", "gptqmodel", "ms-swift", "axolotl", "llamafactory", "litgpt", "torchtune", "unsloth",
    "huggingface-hub", "huggingface_hub",
)  # fmt: skip

_CONDA = ("env*.yml", "env*.yaml", "conda*.yml", "conda*.yaml")
_FILES = (
    "requirement*.txt",
    "constraints*.txt",
    "pyproject.toml",
    "setup.py",
    "setup.cfg",
    "Pipfile",
    *_CONDA,
    "*install*.sh",
    "setup*.sh",
    "Dockerfile*",
    "requirements/*.txt",
    "README.md",
    *(
        f"{folder}/{name}"
        for folder in ("env*", "conda*", "deps", "dependencies", "requirement*[-_]*", "setup*")
        for name in ("requirement*.txt", "constraints*.txt", "*.yml", "*.yaml", "*install*.sh", "setup*.sh")
    ),
)
"""Where requirements stand, as patterns; the first that names a library counts. Of scripts, Dockerfiles and a README it
is what they install with pip, of a README its lines and points that are nothing but a library and its version as well,
and the files of a folder come late: many of them are extras, of which no installation
has all, and those of environments say what was installed on one machine.
"""
_IMAGES = tuple(
    f"{folder}/{below}{name}"
    for folder in ("docker", "dockerfiles", ".docker", ".devcontainer")
    for below in ("", "*/")
    for name in ("requirement*.txt", *_CONDA, "Dockerfile*")
)
"""Where the images of a project ask for libraries, in folders of their own: what no file beside them states."""
_CALLED_OTHERWISE = (
    "*[-_]requirement*.txt",
    "*reqs*.txt",
    "deps*.txt",
    "dependencies*.txt",
    "*[-_]env*.yml",
    "*[-_]env*.yaml",
)
"""Requirements by other names (``deepspeed_reqs.txt``, ``train_environment.yml``), which many a project has for a part
of it: of what none of the files above states."""
_INSTALLS = lazy_pattern(r"\b(?:pip3?[ \t]+install|(?:uv|poetry)[ \t]+add)(?![\w-])(?:\\\n|[^\n;&|])*")
"""A ``pip install`` with its arguments; ``uv add`` and ``poetry add`` install, too."""
_MOST = 30
"""Files of one pattern that are read."""
_LEVELS = 7

_ALSO: Mapping[str, str] = {"liger_kernel": "liger-kernel"}
"""Other names that a library is asked for by."""

_NAMES = "|".join((*LIBRARIES, *_ALSO))
_REQUIREMENT = lazy_pattern(
    rf"""(?<![\w.-])(?P<name>{_NAMES})(?:\[[^\]]{{0,200}}\])?["']?\s*+(?:=\s*+(?:{{\s*+version\s*+=\s*+)?["'])?[( ]*+"""
    r"""(?P<asked>(?:(?:===?|~=|[<>!]=?|\^)\s*[\w.*+!-]+[^\S\n]*,?[^\S\n]*)+)\)?"""
    r"""(?=(?P<rest>;.{0,400}|["']\s*+,[^}\n]{0,200}\bmarkers\s*=.{0,400})?)""",
    re.ASCII,
)
"""A library and what is asked of its version, as requirements, Pipfile and Poetry write it; its marker."""
_VALUE = r"""(?:[a-z_.]++|'[^'\n]*+'|"[^"\n]*+")"""
_CONDITION = rf"(?:\s*+\(){{0,9}}\s*+{_VALUE}\s*+(?:[<>=!~]=?=?|in\b|not\s++in\b)\s*+{_VALUE}(?:\s*+\)){{0,9}}"
_MARKER = lazy_pattern(
    rf"""(?:;|\bmarkers\s*+=\s*+")(?P<marker>{_CONDITION}(?:\s*+(?:and|or)\b{_CONDITION}){{0,20}})"""
)
"""What stands behind a requirement as far as it is a marker: nothing but its own form says where that ends. No group is
repeated possessively, which Python 3.11.2 gets wrong."""
_TRAINS_ON = {
    "sys_platform": "linux",
    "platform_system": "Linux",
    "os_name": "posix",
    "platform_machine": "x86_64",
    "extra": "",
}
"""The machine that requirements are read for; its Python is the one that runs lintfit."""
_MOST_ASKED = 1000
"""Requirements of one file that are read: lock files of large projects have some hundred."""
_LONGEST_ASKED = 200
"""Characters of what is asked of one library."""
_POINT = lazy_pattern(r"^[ \t]*+(?:[-*+][ \t]++)?(?P<said>\S(?:[^\n]{0,198}\S)??)[ \t]*+(?:,[ \t]*+)?$", re.MULTILINE)
"""A line of a page, or a point of a list there."""
_SPOKEN = lazy_pattern(
    rf"""(?P<name>{_NAMES}|pytorch)[ \t]*(?:=|:|[ \t]v?|[ \t]version)[ \t]*(?P<version>\d+(?:\.\d+)+)""",
    re.ASCII | re.IGNORECASE,
)
"""What such a point says: ``trl=0.11.0``, ``transformers: 4.35.2``, ``PyTorch 2.1.0``."""
_CONDA_PIN = lazy_pattern(
    rf"""^[^\S\n]*+-\s*["']?(?:[\w./-]+::)?(?P<name>{_NAMES}|pytorch)=v?(?P<version>\d+(?:\.\d+)*)""",
    re.ASCII | re.MULTILINE,
)
"""Conda's ``- transformers=4.48.0=build``; its ``pytorch`` is torch."""
_POETRY = lazy_pattern(
    rf"""^(?P<name>{_NAMES}|pytorch)\s*=\s*(?:\{{\s*version\s*=\s*)?["'](?P<version>\d+(?:\.\d+)*)["']""",
    re.ASCII | re.MULTILINE,
)
"""Poetry's ``transformers = "4.36.0"``, which takes no other version."""
_POETRY_SECTION = lazy_pattern(
    r"^\[tool\.poetry\.(?:\S+\.)?(?:dev-)?dependencies\]$(?P<lines>(?:\n(?!\[).*)*)", re.MULTILINE
)
_BESIDE_TRAINING = lazy_pattern(
    r"^(?:bench\w*|tests?|testing|docs?|lint|quality|style|ci)[ \t]*=[ \t]*\[[^\[\]]*(?:\[[^\[\]]*\][^\[\]]*)*\]",
    re.MULTILINE,
)
"""Extras and groups that nobody installs to train: what tests and benchmarks ask for holds for them alone."""
_PIPENV = lazy_pattern(rf'"(?P<name>{_NAMES})": \{{[^{{}}]*"version": "==(?P<version>[^"]+)"')
_ADDRESS = r"git\+(?:(?!git\+)\S)*?"
"""The beginning of a repository's address, up to where the next one begins: a word may have thousands of them, each of
which would else be read to the word's end."""
_REPOSITORY = lazy_pattern(rf"{_ADDRESS}/(?P<name>{_NAMES})(?:\.git)?@v?(?P<at>[\w.]+)", re.ASCII | re.IGNORECASE)
_LOCKED = lazy_pattern(rf'name = "(?P<name>{_NAMES})"\s+version = "(?P<version>[^"]+)"')
_CONDA_LOCKED = lazy_pattern(
    rf"""^- name: (?P<name>{_NAMES})\n  version: ["']?(?P<version>[\w.+!-]+)""", re.ASCII | re.MULTILINE
)
_PROJECT = lazy_pattern(
    rf"""^\[project\]$(?:\n(?!\[).*)*?\nname\s*=\s*["'](?P<name>{_NAMES})["'](?:\n(?!\[).*)*""", re.MULTILINE
)
_OWN_VERSION = lazy_pattern(r"""^(?:__)?version(?:__)?\s*=\s*["'](?P<version>\d+(?:\.\d+)+)""", re.MULTILINE)
_OF_LLAMA_FACTORY = ("src/llamafactory/extras/env.py", "src/llmtuner/__init__.py")
"""Where LLaMA-Factory's package says its version, from 0.8.0 on and before."""
_OWN_RELEASE = lazy_pattern(r"""^(?:VERSION|__version__)\s*=\s*["'](?P<version>\d+(?:\.\d+)+)""", re.MULTILINE)
_VERSION_FILE = lazy_pattern(r"^\s*(?P<version>\d+(?:\.\d+)+)")
_LOCKS = {
    "uv.lock": _LOCKED,
    "poetry.lock": _LOCKED,
    "pdm.lock": _LOCKED,
    "Pipfile.lock": _PIPENV,
    "conda-lock.yml": _CONDA_LOCKED,
}
"""Lock files, and how a library and its version stand in them."""
_LOCKED_REQUIREMENTS = "requirements*.lock"
"""Lock files in the form of requirements, which rye, pip-compile and uv write."""


Asked = tuple[str, str]
"""What is asked of a library, and the file that asks it, as it is called from the working directory."""


def asked_near(path: Path, root: Path, pins: FrontEndPins | None = None) -> Mapping[str, Asked]:
    """Library → version and file, from the project files beside and above a file, the nearest first; of those alone
    that ``pins`` lets speak, where it is given.

    ``==`` gives the version itself, ``<=`` the bound; ``<`` the bound marked with a leading ``<``, and so do ``~=``,
    ``==4.*`` and Poetry's ``^``, which have one.
    A library without an upper bound is absent. What ``>=`` asks for stands under the library's name with ``>=`` behind
    it (``transformers>=``), a commit of its repository with ``@`` (``transformers@``), that it comes from a fork with
    ``!`` (``transformers!``), unless a nearer folder asks for the library otherwise.
    """
    found: dict[str, Asked] = {}
    for folder in folders_above(path, root):
        nearer = {library_of(name) for name in found}
        for file, asked in _read_folder(folder):
            if asked and (pins is None or pins.of_file(folder, file, asked)):
                for name, version in asked.items():
                    if not (name.endswith(FORK) and library_of(name) in nearer):
                        found.setdefault(name, (version, os.path.relpath(file)))
    return found


_SAY_OF_A_TREE = (
    "requirements.txt", "pyproject.toml", "setup.py", "environment.yml", "environment.yaml", "README.md",
)  # fmt: skip
"""Names that say of a folder that it is worth a look for what its files ask of libraries."""


def asked_anywhere(workspace: Workspace) -> Iterator[tuple[Path, Mapping[str, str]]]:
    """The files of a whole tree that ask for libraries, with what they ask, whatever part of the tree they are for."""
    paths = (path for name in _SAY_OF_A_TREE for path in workspace.named(name))
    for folder in dict.fromkeys(workspace.root / path.parent for path in paths):
        yield from _read_folder(folder.absolute())


def asked_in(text: str) -> Mapping[str, str]:
    """What requirements, one a line, ask of each library: as in :func:`asked_near`, without the file."""
    return _first(_asked_in(text))


def folders_above(path: Path, root: Path) -> Iterator[Path]:
    """The folders of a project that may speak of a file, the nearest first."""
    folder = path.absolute().parent
    stop = root.absolute()
    for _ in range(_LEVELS):
        yield folder
        if folder in (stop, folder.parent) or door.exists(folder / ".git"):
            return
        folder = folder.parent


_OF_LISTS = (_LOCKED_REQUIREMENTS, *_LOCKS, *_FILES, *_CALLED_OTHERWISE, *_IMAGES)


def speaks_for(file: Path, path: Path, root: Path) -> bool:
    """Whether a file (absolute, its folder resolved) is one that :func:`asked_near` reads for this path, or was one."""
    above = (folder for folder in islice(file.parents, 3) if folder in _folders_above(path, root))
    return any(_fits(file.relative_to(folder).as_posix(), _OF_LISTS) for folder in above)


@lru_cache(maxsize=1024)
def _folders_above(path: Path, root: Path) -> frozenset[Path]:
    return frozenset(resolved(folder) for folder in folders_above(path, root))


@lru_cache(maxsize=4)
def lists_among(files: frozenset[Path]) -> tuple[Path, ...]:
    """Those of some files whose names are of such that :func:`asked_near` reads, for whatever path: few of many."""
    return tuple(file for file in files if _is_named_as_one(file))


def _is_named_as_one(file: Path) -> bool:
    tails = ("/".join(file.parts[-count:]) for count in (1, 2, 3))
    return any(_fits(tail, _OF_LISTS) for tail in tails)


@cache
def _read_folder(folder: Path) -> tuple[tuple[Path, Mapping[str, str]], ...]:
    """The files of a folder, those that count more first, with what each asks of libraries."""
    if not any(map(_may_ask().fullmatch, door.names_in(folder))):
        return ()  # as in most folders, which are looked through for each of the patterns else
    stated = [(path, _first(_stated(path))) for path in dict.fromkeys(_matching(folder, _FILES))]
    read = {path for path, _ in stated}
    stated = [*_beside_the_main(folder, stated)]
    others = [path for path in dict.fromkeys(_matching(folder, _CALLED_OTHERWISE)) if path not in read]
    otherwise = [*_beside_the_main(folder, [(path, _first(_stated(path))) for path in others])]
    images = [(path, _first(_stated(path))) for path in _matching(folder, _IMAGES)]
    first = tuple((path, _first(asked)) for path, asked in (*_own(folder), *_locked(folder)))
    return (*first, *_agreed(stated), *_agreed(otherwise), *_agreed(images))


@cache
def _may_ask() -> re.Pattern[str]:
    """What is in a folder that may ask for libraries, or that says whose checkout it is."""
    first = dict.fromkeys(pattern.partition("/")[0] for pattern in (*_OF_LISTS, *_OF_LLAMA_FACTORY))
    return re.compile("|".join(map(translate, first)))


_MAIN = "requirements.txt"
_NAMED = lazy_pattern(rf"^[ \t]*+(?P<name>{_NAMES})(?![\w.-])", re.ASCII | re.MULTILINE)
"""A library that a line of requirements is about, whatever it asks of it."""
_SECONDARY = lazy_pattern(r"require|reqs|deps|dependencies")
_FOR_TRAINING = lazy_pattern(r"train|tun(?:e|ing)|sft|exact|freeze|frozen|lock|pinned", re.IGNORECASE)
"""Names of lists that training takes, or that say what was installed by the main one."""


def _beside_the_main(
    folder: Path, stated: Sequence[tuple[Path, Mapping[str, str]]]
) -> Iterator[tuple[Path, Mapping[str, str]]]:
    """The same without the versions that only a second list states (``requirements2.txt``, ``requirements-falcon.txt``)
    of a library that the ``requirements.txt`` beside it leaves open: an installation by that one takes the newest.

    A list that the main one, a page, a script or a Dockerfile beside it names is installed as well.
    """
    main = folder / _MAIN
    text = _without_comments(_text(main))
    fixed = {name for name, version in _first(_stated(main)).items() if not version.startswith("<")} if text else set()
    left_open = {_ALSO.get(match["name"], match["name"]) for match in _NAMED.finditer(text)} - fixed
    for path, asked in stated:
        silent = left_open if left_open and _is_secondary(path, folder) else set()
        told = (name for name in asked if name.endswith(FLOOR) or library_of(name) not in silent)
        yield path, {name: asked[name] for name in told}


def _is_secondary(path: Path, folder: Path) -> bool:
    """Whether a file is a list of requirements beside the main one that nothing beside it installs."""
    name = path.name
    if path.parent != folder or path.suffix != ".txt" or name == _MAIN or not _SECONDARY.search(name):
        return False
    if _FOR_TRAINING.search(name):
        return False
    tellers = (_MAIN, "README.md", "*install*.sh", "setup*.sh", "Dockerfile*")
    return not any(name in _text(teller) for pattern in tellers for teller in _in_order(folder, pattern))


def _agreed(stated: Sequence[tuple[Path, Mapping[str, str]]]) -> Iterator[tuple[Path, Mapping[str, str]]]:
    """What several files of requirements ask for, without the libraries that they pin to different versions: which of
    them somebody installs is not known (``requirements.txt`` beside ``requirements-qwen3.txt``)."""
    pinned: dict[str, set[str]] = {}
    for _, asked in stated:
        for name, version in asked.items():
            if not name.endswith(FLOOR):
                pinned.setdefault(name, set()).add(version)
    for path, asked in stated:
        yield path, {name: version for name, version in asked.items() if _agree(pinned.get(name, set()))}


def _agree(asked: set[str]) -> bool:
    """Whether an installation can have all that is asked of one library: one version, or a bound, or both."""
    pins = {version for version in asked if not version.startswith("<")}
    bounds = asked - pins
    return len(pins) < 2 and len(bounds) < 2 and all(_order(pin) < _order(bound) for pin in pins for bound in bounds)


def _first(asked: Iterable[tuple[str, str]]) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for name, version in asked:
        library, floor = name.removesuffix(FLOOR), FLOOR if name.endswith(FLOOR) else ""
        found.setdefault(f"{_ALSO.get(library, library)}{floor}", version)
    return found


def _own(folder: Path) -> Iterator[tuple[Path, list[tuple[str, str]]]]:
    """The version of a library whose own checkout a folder is (``name = "trl"`` in its pyproject.toml, LLaMA-Factory's
    package, which a project may have a copy of and change)."""
    for below in _OF_LLAMA_FACTORY:
        stated = _OWN_RELEASE.search(_text(folder / below))
        if stated is not None:
            yield folder / below, [("llamafactory", stated["version"]), ("llamafactory" + FORK, "fork")]
            return
    project = folder / "pyproject.toml"
    text = _text(project)
    named = _PROJECT.search(text)
    if named is None:
        return
    name = named["name"].replace("_", "-") if named["name"] not in LIBRARIES else named["name"]
    package = name.replace("-", "_")
    places = (project, folder / "VERSION", *(folder / below / "__init__.py" for below in (package, f"src/{package}")))
    for path in places:
        pattern = _VERSION_FILE if path.name == "VERSION" else _OWN_VERSION
        found = pattern.search(named.group() if path == project else _text(path))
        if found is not None:
            yield path, [(name, found["version"])]
            return


def _locked(folder: Path) -> Iterator[tuple[Path, Iterator[tuple[str, str]]]]:
    """The lock files of a folder with the versions that they pin."""
    for name, pattern in _LOCKS.items():
        path = folder / name
        yield path, ((match["name"], match["version"]) for match in pattern.finditer(_text(path)))
    for path in _in_order(folder, _LOCKED_REQUIREMENTS):
        yield path, _stated(path)


_FRONT_ENDS: Mapping[str, str] = {
    "axolotl": "axolotl", "llama-factory": "llamafactory", "ms-swift": "ms-swift", "torchtune": "torchtune",
}  # fmt: skip
"""Front ends that people run from a checkout, by their repository's name."""
_CLONE = lazy_pattern(r"\bgit[ \t]+clone\b(?:\\\n|[^\n;&|])*")
_CLONED = lazy_pattern(rf"[/:](?P<name>{'|'.join(_FRONT_ENDS)})(?:\.git)?(?=[\s\"'`]|$)", re.IGNORECASE)
_BRANCH = lazy_pattern(r"[ \t](?:-b|--branch)[ \t=]+[\"']?v?(?P<at>\d+(?:\.\d+)+)(?=[\s\"']|$)")
_CHECKOUT = lazy_pattern(r"\bgit[ \t]+checkout[ \t]+(?:tags/)?[\"']?v?(?P<at>\d+(?:\.\d+)+)(?=[\s\"'`;&]|$)")


def _stated(path: Path) -> Iterator[tuple[str, str]]:
    """What a file of requirements asks, of each library the strictest form first."""
    text = _without_comments(_text(path))
    if path.suffix in (".sh", ".md") or path.name.startswith("Dockerfile"):
        required = (match for command in _INSTALLS.finditer(text) for match in _REQUIREMENT.finditer(command.group()))
        yield from _once(asked for match in islice(required, _MOST_ASKED) for asked in _asked(match))
        yield from _once(_checked_out(text))
        upstream = _cloned_upstream(text)
        yield from _once(fork for command in _INSTALLS.finditer(text) for fork in _forks(command.group(), upstream))
        if path.suffix == ".md":
            points = (line["said"].replace("`", "") for line in _POINT.finditer(text))
            yield from _once(islice((pin for point in points for pin in _said_by(point)), _MOST_ASKED))
        return
    if path.suffix in (".yml", ".yaml"):
        for match in _CONDA_PIN.finditer(text):
            yield "torch" if match["name"] == "pytorch" else match["name"], match["version"]
    if path.name == "pyproject.toml":
        text = _BESIDE_TRAINING.sub("", text)
    for section in _POETRY_SECTION.finditer(text) if path.name == "pyproject.toml" else ():
        for match in _POETRY.finditer(section["lines"]):
            yield "torch" if match["name"] == "pytorch" else match["name"], match["version"]
    yield from _asked_in(text)


def _asked_in(text: str) -> Iterator[tuple[str, str]]:
    for match in islice(_REQUIREMENT.finditer(text), _MOST_ASKED):
        yield from _asked(match)
    for match in _REPOSITORY.finditer(text):
        tagged = re.fullmatch(r"\d+(\.\d+)+", match["at"]) is not None
        yield match["name"].lower() + ("" if tagged else COMMIT), match["at"]
    yield from _forks(text, _cloned_upstream(text))


_OWNERS: Mapping[str, tuple[str, frozenset[str]]] = {
    "transformers": ("transformers", frozenset({"huggingface"})),
    "trl": ("trl", frozenset({"huggingface", "lvwerra"})),
    "peft": ("peft", frozenset({"huggingface"})),
    "accelerate": ("accelerate", frozenset({"huggingface"})),
    "deepspeed": ("deepspeed", frozenset({"microsoft", "deepspeedai"})),
    "ms-swift": ("ms-swift", frozenset({"modelscope"})),
    "llama-factory": ("llamafactory", frozenset({"hiyouga"})),
    "axolotl": ("axolotl", frozenset({"axolotl-ai-cloud", "openaccess-ai-collective"})),
}
"""Libraries by the names of their repositories, and whose those are."""
_REPOSITORIES = "|".join(_OWNERS)
_OF_A_REPOSITORY = lazy_pattern(
    rf"{_ADDRESS}[/:](?P<owner>[\w.-]+)/(?P<name>{_REPOSITORIES})(?:\.git)?(?![\w.-])", re.ASCII | re.IGNORECASE
)
_OF_A_FOLDER = lazy_pattern(
    rf"""(?:(?<!\S)(?:-e|--editable)[ \t=]+["']?|(?<!\S)["']?(?=\.{{1,2}}/))(?:[\w.-]+/){{0,9}}"""
    rf"""(?P<name>{_REPOSITORIES})/?(?:\[[^\]\n]{{0,200}}\])?["']?(?!\S)""",
    re.ASCII | re.IGNORECASE,
)
"""``-e ./transformers`` and ``./transformers``: a copy that the project keeps."""
_CLONED_FROM = lazy_pattern(rf"[/:](?P<owner>[\w.-]+)/(?P<name>{_REPOSITORIES})(?:\.git)?(?![\w.-])", re.IGNORECASE)


def _cloned_upstream(text: str) -> frozenset[str]:
    """The repositories that a text clones from the library's own owner."""
    cloned = (each for clone in _CLONE.finditer(text) for each in _CLONED_FROM.finditer(clone.group()))
    return frozenset(each["name"].lower() for each in cloned if _is_the_librarys(each))


def _forks(asked: str, upstream: Collection[str]) -> Iterator[tuple[str, str]]:
    """The libraries that are taken from a repository of another owner than their own, or from a folder, unless the same
    text clones that from their own (``upstream``): what such a copy takes and refuses nobody knows."""
    for match in _OF_A_REPOSITORY.finditer(asked):
        if not _is_the_librarys(match):
            yield _OWNERS[match["name"].lower()][0] + FORK, "fork"
    for match in _OF_A_FOLDER.finditer(asked):
        if match["name"].lower() not in upstream:
            yield _OWNERS[match["name"].lower()][0] + FORK, "fork"


def _is_the_librarys(match: re.Match[str]) -> bool:
    return match["owner"].lower() in _OWNERS[match["name"].lower()][1]


def _said_by(point: str) -> Iterator[tuple[str, str]]:
    """What a line of a page that speaks of nothing else says of a library."""
    spoken = _SPOKEN.fullmatch(point)
    if spoken is not None:
        name = spoken["name"].lower()
        yield "torch" if name == "pytorch" else name, spoken["version"]
    elif (match := _REQUIREMENT.fullmatch(point)) is not None:
        yield from _asked(match)


def _checked_out(text: str) -> Iterator[tuple[str, str]]:
    """The releases of front ends that a text clones, by ``--branch`` or by a ``git checkout`` before the next clone."""
    clones = [*islice(_CLONE.finditer(text), _MOST)]
    for at, clone in enumerate(clones):
        end = clones[at + 1].start() if at + 1 < len(clones) else len(text)
        named = _CLONED.search(clone.group())
        tag = _BRANCH.search(clone.group()) or _CHECKOUT.search(text, clone.end(), end)
        if named is not None and tag is not None:
            yield _FRONT_ENDS[named["name"].lower()], tag["at"]


def _once(pins: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """What is asked of libraries; nothing of one that is asked for in several versions."""
    asked: dict[str, set[str]] = {}
    for name, version in pins:
        asked.setdefault(name, set()).add(version)
    yield from ((name, version) for name, (version, *others) in asked.items() if not others)


def _fits(path: str, patterns: Iterable[str]) -> bool:
    """Whether one of these patterns fits a path, name by name."""
    names = path.split("/")
    return any(
        len(parts) == len(names) and all(map(fnmatchcase, names, parts))
        for parts in (pattern.split("/") for pattern in patterns)
    )


def _matching(folder: Path, patterns: Iterable[str]) -> Iterator[Path]:
    """The files of some patterns. Folders that many of them begin with are looked for once: few projects have any."""
    there: dict[str, bool] = {}
    for pattern in patterns:
        first, below, _ = pattern.partition("/")
        if below and first not in there:
            there[first] = any(True for _ in door.matching(folder, f"{first}/"))
        if not below or there[first]:
            yield from _in_order(folder, pattern)


def _in_order(folder: Path, pattern: str) -> list[Path]:
    """The files of a pattern, those with the shortest names first."""
    return sorted(door.matching(folder, pattern), key=lambda path: (len(path.name), path.name))[:_MOST]


def _asked(match: re.Match[str]) -> Iterator[tuple[str, str]]:
    """What a requirement says of a library: its version or upper bound, and the oldest that it takes."""
    from packaging.specifiers import SpecifierSet

    if len(match["asked"]) > _LONGEST_ASKED or not _holds(match["rest"]):
        return
    try:
        asked = SpecifierSet(_without_carets(match["asked"]).strip(" \t,"))
    except ValueError:
        return
    name, bounds = match["name"], [text for one in asked if (text := _bound(one)) is not None]
    pins = [text for text in bounds if not text.startswith("<")]
    if bounds:
        yield name, min(pins or bounds, key=_order)
    floors = [one.version.removesuffix(".*") for one in asked if one.operator in (">=", "~=") or _any_of(one)]
    if floors:
        yield name + FLOOR, _plain(max(floors, key=_order))


def _order(version: str) -> tuple[int, ...]:
    return release(version.removeprefix("<")) or ()


def _bound(one: Specifier) -> str | None:
    """A version that is asked for, or the first that no longer will do, marked with ``<``."""
    version = one.version.removesuffix(".*")
    if one.operator == "~=":
        return "<" + _next(version, -2)
    if _any_of(one):
        return "<" + _next(version, -1)
    if one.operator in ("==", "===", "<="):
        return _plain(version)
    return "<" + _plain(version) if one.operator == "<" else None


def _any_of(one: Specifier) -> bool:
    return one.operator == "==" and one.version.endswith(".*")


def _next(version: str, place: int) -> str:
    """The version after all those that begin alike up to a place: of 4.40 the one after the last but one is 5."""
    found = parsed(version)
    numbers = list(found.release) if found is not None else []
    kept = numbers[: len(numbers) + place + 1] or numbers[:1]
    return ".".join(map(str, [*kept[:-1], kept[-1] + 1]))


def _plain(version: str) -> str:
    """Without what marks a build: ``2.1.0+cu118`` is 2.1.0."""
    found = parsed(version)
    return found.base_version if found is not None else version


def _without_carets(asked: str) -> str:
    """Poetry's ``^4.40`` takes anything before 5, ``^0.15`` anything before 0.16."""

    def written_out(match: re.Match[str]) -> str:
        numbers = match["version"].split(".")
        place = next((i for i, number in enumerate(numbers) if number != "0"), len(numbers) - 1)
        return f">={match['version']},<{_next(match['version'], place - len(numbers))}"

    return re.sub(r"\^\s*v?(?P<version>\d{1,9}(?:\.\d{1,9})*)", written_out, asked)


@lru_cache(maxsize=256)
def _holds(rest: str | None) -> bool:
    """Whether a requirement holds on the machines that train, by the marker behind it; what is none does not count."""
    found = _MARKER.search(rest or "")
    if found is None:
        return True
    from packaging.markers import InvalidMarker, Marker, UndefinedComparison, UndefinedEnvironmentName

    text = found["marker"].strip()
    loose = text.count(")") - text.count("(")  # of what the requirement stands in
    with suppress(InvalidMarker):
        marker = Marker(text[: len(text) - max(0, loose)])
        with suppress(UndefinedComparison, UndefinedEnvironmentName):
            return marker.evaluate(_TRAINS_ON)
    return True


def _without_comments(text: str) -> str:
    return "\n".join(line.split("#", 1)[0] for line in text.splitlines())


def _text(path: Path) -> str:
    try:
        return door.read_regular(path, MAX_REQUIREMENTS).decode("utf-8", errors="replace")
    except OSError:
        return ""
