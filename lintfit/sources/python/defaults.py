"""The libraries' defaults for the walk through a script, from the catalogue."""

from __future__ import annotations

from collections.abc import Mapping

from lintfit.sources.python.state import Defaults
from lintfit.sources.python.values import Library


class CatalogDefaults(Defaults):
    """Defaults by library version; the newest known where no version is."""

    def __init__(self, versions: Mapping[str, str]) -> None:
        self._versions = versions

    def get(self, cls: str, name: str) -> tuple[object, Library] | None:
        return None
