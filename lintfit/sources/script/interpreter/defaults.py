"""The libraries' defaults for the walk through a script, from the catalogue."""

from __future__ import annotations

from collections.abc import Mapping

from lintfit.sources.script.interpreter.origins import Library
from lintfit.sources.script.interpreter.state import Defaults
from lintfit.sources.training_defaults import default_of, fields_of


class CatalogDefaults(Defaults):
    """Defaults by library version; those of the newest studied one where no version is known."""

    def __init__(self, versions: Mapping[str, str]) -> None:
        self._versions = versions

    def get(self, cls: str, name: str) -> tuple[object, Library] | None:
        found = default_of(cls, name, self._versions)
        return (found[0], Library(found[1])) if found is not None else None

    def names(self, cls: str) -> frozenset[str]:
        return fields_of(cls)
