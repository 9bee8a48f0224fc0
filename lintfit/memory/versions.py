"""The versions of libraries that formulas go by: what a spec states, else the newest that has been read."""

from __future__ import annotations

from collections.abc import Mapping

from lintfit.frozen import replace
from lintfit.memory.spec import Spec
from lintfit.versions import Release as Release
from lintfit.versions import release as release

NEWEST_TRANSFORMERS = (5, 23)
LAST_TRANSFORMERS_4 = (4, 57)

GROUPED_EXPERTS = (5, 0)
"""The first transformers version that holds all experts as one parameter and runs them as one grouped product."""

TOO_OLD: Mapping[str, tuple[int, ...]] = {
    "torch": (2, 4),
    "trl": (0, 26),
    "huggingface-hub": (1, 0),
    "huggingface_hub": (1, 0),
}
"""Libraries whose versions below these go with no transformers 5: it disables PyTorch before 2.4
(``utils/import_utils.py``), TRL 0.25 and before came out ahead of it, and it asks for a huggingface-hub of 1.3 or later
where 4.57 asks for one before 1.0 (``METADATA`` of transformers 4.57.1 and 5.0.0)."""


def before_transformers_5(versions: Mapping[str, str]) -> bool:
    """Whether it is an older transformers: as stated, else where a library is too old for 5."""
    return _transformers(versions) < (5, 0)


def _transformers(versions: Mapping[str, str]) -> tuple[int, int]:
    """Transformers' major and minor version: as stated, else the newest that goes with the other libraries."""
    if not versions:
        return NEWEST_TRANSFORMERS
    stated = release(versions.get("transformers"))
    if stated is not None:
        return stated[:2]
    others = [(release(versions.get(library)), first) for library, first in TOO_OLD.items()]
    old = any(found is not None and found < first for found, first in others)
    return LAST_TRANSFORMERS_4 if old else NEWEST_TRANSFORMERS


def running(spec: Spec, library: str, version: str) -> Spec:
    """The run with a library of this version."""
    return replace(spec, versions={**spec.versions, library: version})


def since(spec: Spec, library: str, first: tuple[int, ...]) -> bool:
    """Whether a library is of this version or later; it is the newest where the spec states none."""
    stated = release(spec.versions.get(library))
    return stated is None or stated >= first


def transformers_versions(spec: Spec, earliest: tuple[int, int]) -> tuple[tuple[int, int], ...]:
    """The version that is stated, else the ends of the span that it may be of."""
    newest = transformers_version(spec)
    return (newest,) if release(spec.versions.get("transformers")) else (earliest, newest)


def transformers_version(spec: Spec) -> tuple[int, int]:
    """Transformers' major and minor version; the newest that goes with the run's other libraries where it is not
    stated."""
    return _transformers(spec.versions)
