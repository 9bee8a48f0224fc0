"""The libraries' defaults for the walk through a script, from the catalogue."""

from __future__ import annotations

from collections.abc import Mapping

from lintfit.catalog import defaults
from lintfit.sources.script.interpreter.origins import Library
from lintfit.sources.script.interpreter.state import Defaults

_OF_TRL = "KTOConfig"
"""Stands in for TRL's configs that were not studied, in the fields that all of TRL's configs change."""
_CHANGED_BY_TRL = frozenset({"bf16", "gradient_checkpointing", "logging_steps"})


class CatalogDefaults(Defaults):
    """Defaults by library version; those of the newest studied one where no version is known."""

    def __init__(self, versions: Mapping[str, str]) -> None:
        self._versions = versions

    def get(self, cls: str, name: str) -> tuple[object, Library] | None:
        for library, known in self._classes(cls):
            if known == _OF_TRL and not cls.endswith(_OF_TRL) and name not in _CHANGED_BY_TRL:
                continue
            found = defaults.default(library, known, name, self._versions.get(library))
            if found is None or found.required or (library == "trl" and not found.since.startswith("trl")):
                continue
            return found.value, Library(f"{library} {self._version(library, known)} default")
        return None

    def names(self, cls: str) -> frozenset[str]:
        found: frozenset[str] = frozenset()
        for library, known in self._classes(cls):
            if cls.endswith(("TrainingArguments", known)) or known == "TrainingArguments":
                found |= defaults.ever_accepted(library, known)
        return found

    def _version(self, library: str, cls: str) -> str:
        return self._versions.get(library) or (defaults.versions(library, cls) or ("",))[-1]

    @staticmethod
    def _classes(cls: str) -> list[tuple[str, str]]:
        """The studied classes that stand for one, by library: itself first, then what it inherits from."""
        name = cls.rpartition(".")[2]
        if name.endswith("TrainingArguments"):
            return [("transformers", "TrainingArguments")]
        if defaults.versions("transformers", name):
            return [("transformers", name)]
        if defaults.versions("trl", name):
            inherits = [] if name == "ModelConfig" else [("transformers", "TrainingArguments")]
            return [("trl", name), *inherits]
        if cls.startswith("trl.") and name.endswith("Config"):
            return [("trl", _OF_TRL), ("transformers", "TrainingArguments")]
        if defaults.versions("peft", name):
            return [("peft", name)]
        return []
