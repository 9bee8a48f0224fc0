"""The versions of the libraries that a run goes by: who states them, in the order in which they are believed.

What the user says, else what the project's files pin, else what is installed in an environment beside the files or in
the one that is active. Upper bounds and floors of the project bound what is left open.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from lintfit.memory.versions import TOO_OLD, before_transformers_5
from lintfit.options.model import Options
from lintfit.run import environment
from lintfit.run.requirements import LIBRARIES, Asked, asked_near, folders_above
from lintfit.versions import FLOOR, Versions, before, concrete, library_of, release

if TYPE_CHECKING:
    from lintfit.run.front_end_pins import FrontEndPins
    from lintfit.run.model import Run

BEFORE_5 = "<5"
_BY_OTHERS = "by "
"""Begins what is said of a version that follows from other libraries."""


def versions_of(
    path: Path,
    root: Path,
    options: Options,
    own: Mapping[str, Asked] | None = None,
    pins: FrontEndPins | None = None,
) -> Versions:
    """What is known of the versions that the run of a file goes by, and who says so.

    ``own`` is what the file itself installs: of its libraries the project's files say nothing. ``pins`` says what dates
    a front end's recipe.
    """
    own = own or {}
    near = asked_near(path, root, pins)
    asked = {name: found for name, found in near.items() if library_of(name) not in _libraries(own)} | dict(own)
    known = {name: version for name, (version, _) in asked.items()}
    sources = {name: source for name, (_, source) in asked.items()}
    for found, source in (environment.beside(folders_above(path, root)), environment.active()):
        for name, version in found.items() if pins is None or pins.of_environment(found) else ():
            if _admits(known, name, version):
                known[name], sources[name] = version, source
    for name, version in options.versions.items():
        known[name], sources[name] = version, options.origins["versions"]
        known.pop(name + FLOOR, None)
    _pinned_by_axolotl(known, sources)
    return with_peers(Versions(known, sources))


def project_files(run: Run) -> list[Path]:
    """The files whose project says what a run's libraries are where that of its origin is silent: its script, then the
    configs that it names, which may lie with the requirements of the training (``train/``) and not of the rest."""
    sources = (run.script, run.deepspeed, run.accelerate)
    return [source.document.path for source in sources if source is not None]


def with_project_of(path: Path, root: Path, versions: Versions) -> Versions:
    """The same, with what the files around a script, or a config, say of libraries that nothing near its launch speaks
    of."""
    stated = (name for name in versions if not versions.sources.get(name, "").startswith(_BY_OTHERS))
    known, told = dict(versions), _libraries(dict.fromkeys(stated, ("", "")))
    more = {name: asked for name, asked in asked_near(path, root).items() if library_of(name) not in told}
    if not more:
        return versions
    sources = {**versions.sources, **{name: source for name, (_, source) in more.items()}}
    known |= {name: version for name, (version, _) in more.items()}
    return with_peers(Versions(known, sources))


def _libraries(asked: Mapping[str, Asked]) -> set[str]:
    return {library_of(name) for name in asked}


def _pinned_by_axolotl(known: dict[str, str], sources: dict[str, str]) -> None:
    """Add what the release of axolotl that is known pins, where nothing states it."""
    stated = known.get("axolotl")
    if stated is None or stated.startswith("<"):
        return
    from lintfit.catalog import axolotl

    for name, version in axolotl.pins(stated).items():
        if name not in known and name + FLOOR not in known:
            known[name], sources[name] = version, f"pinned by axolotl {stated}"


def _admits(known: Mapping[str, str], name: str, version: str) -> bool:
    """Whether what is installed may be what the project runs with: it pins no other, and no bound excludes it."""
    stated, floor = known.get(name), known.get(name + FLOOR)
    if stated is not None and (not stated.startswith("<") or before(version, stated[1:]) is not True):
        return False
    return floor is None or before(version, floor) is not True


def with_peers(versions: Versions) -> Versions:
    """The same, with what the libraries that are known say of others: of TRL, which goes with no older transformers
    than it asks for; of transformers, where another library is too old for 5."""
    return _with_transformers(_with_trl(versions))


def _with_trl(versions: Versions) -> Versions:
    """A bound for TRL where nothing pins it. A floor above the bound says that it is not what is installed."""
    stated, floor, transformers = versions.get("trl"), versions.get("trl" + FLOOR), versions.get("transformers")
    if transformers is None or (stated is not None and not stated.startswith("<")):
        return versions
    from lintfit.catalog.peers import first_trl_beyond

    beyond = first_trl_beyond(transformers)
    if beyond is None or before(stated, beyond) is True or (floor is not None and before(floor, beyond) is not True):
        return versions
    return versions.with_bound("trl", beyond, f"{_BY_OTHERS}transformers {range_of(versions, 'transformers')}")


def _with_transformers(versions: Versions) -> Versions:
    stated, floor = versions.get("transformers"), versions.get("transformers" + FLOOR)
    if stated is not None and (not stated.startswith("<") or before(stated, "5") is True):
        return versions
    if not _too_old_for_5(versions) or before(floor, "5") is False:
        return versions
    return versions.with_bound("transformers", "5", f"{_BY_OTHERS}the other libraries")


def installed(versions: Mapping[str, str]) -> dict[str, str]:
    """What the memory model is told: versions that files state. What follows from them it finds itself."""
    found = {library: concrete(version) for library, version in versions.items() if library in LIBRARIES}
    if versions.get("transformers") == BEFORE_5 and _too_old_for_5(versions):
        del found["transformers"]
    return {library: version for library, version in found.items() if release(version) is not None}


def _too_old_for_5(versions: Mapping[str, str]) -> bool:
    others = {library: concrete(versions[library]) for library in TOO_OLD if library in versions}
    return bool(others) and before_transformers_5(others)


def in_words(versions: Mapping[str, str]) -> str:
    """The versions that are known, each with who says so: ``transformers 4.48.1 (uv.lock)``; empty where none is."""
    if not isinstance(versions, Versions):
        return ""
    told = ((library, range_of(versions, library), _source(versions, library)) for library in LIBRARIES)
    return ", ".join(f"{library} {version} ({source})" for library, version, source in told if version)


def range_of(versions: Mapping[str, str], library: str) -> str:
    """What is known of a library's version: ``4.48.1``, ``before 5``, ``5.0 or later``, ``5.0 or later, before 5.18``;
    empty where nothing is."""
    exact, floor = versions.get(library), versions.get(library + FLOOR)
    if exact is not None and not exact.startswith("<"):
        return exact
    bounds = [f"{floor} or later"] if floor is not None else []
    bounds += [f"before {exact[1:]}"] if exact is not None else []
    return ", ".join(bounds)


def _source(versions: Versions, library: str) -> str:
    return versions.sources.get(library) or versions.sources.get(library + FLOOR, "")
