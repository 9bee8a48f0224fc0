"""What transformers, TRL and PEFT fill in for fields of their arguments that nobody states, and which they accept."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from lintfit.catalog import defaults
from lintfit.versions import Versions

_OF_TRL = "KTOConfig"
"""Stands in for TRL's configs that were not studied, in the fields that all of TRL's configs change."""
_HANDBOOKS = "alignment.ModelArguments"
"""alignment-handbook's arguments of a model, which has TRL's defaults (``src/alignment/configs.py``, 2023 to 2024)."""
_CHANGED_BY_TRL = frozenset({"bf16", "gradient_checkpointing", "logging_steps"})

_OLDER: Mapping[str, frozenset[str]] = {
    "trl.SFTConfig": frozenset({"use_liger"}),
    "trl.GRPOConfig": frozenset({"vllm_device", "vllm_max_model_len"}),
}
"""Fields of releases before those whose defaults were studied (``SFTConfig.use_liger`` of TRL 0.11 to 0.17,
``GRPOConfig.vllm_device`` and ``vllm_max_model_len`` of 0.14 to 0.17)."""


def default_of(cls: str, field: str, versions: Mapping[str, str]) -> tuple[object, str] | None:
    """The default of a class's field (``trl.SFTConfig``), and whose it is; None where neither is known.

    Of the newest studied version that has the field, where a library's is not known.
    """
    for library, known in _classes(cls):
        if known == _OF_TRL and not cls.endswith(_OF_TRL) and field not in _CHANGED_BY_TRL:
            continue
        found, version = _at(library, known, field, versions.get(library))
        if found is None or found.required or (library == "trl" and not found.since.startswith("trl")):
            continue
        if isinstance(versions, Versions):
            for bound in defaults.changes(library, known, field):
                versions.ask(library, bound)
        return found.value, f"{library} {version} default"
    return None


def _at(library: str, cls: str, field: str, version: str | None) -> tuple[defaults.Default | None, str]:
    """A default, and the version that has it: the newest studied one with the field, where none is known."""
    found = defaults.default(library, cls, field, version)
    if version is not None or found is not None:
        return found, version or (defaults.versions(library, cls) or ("",))[-1]
    last = defaults.last_version(library, cls, field)
    return (defaults.default(library, cls, field, last) if last else None), last


@lru_cache(maxsize=256)
def fields_of(cls: str) -> frozenset[str]:
    """The fields that a class accepts in any version; empty for a class that is not known."""
    found = _OLDER.get(cls, frozenset())
    for library, known in _classes(cls):
        if library == "trl" and cls.endswith(f".{known}"):
            found |= _OLDER.get(f"trl.{known}", frozenset())  # one of the project's by the same name has TRL's below it
        if cls.endswith(("TrainingArguments", known)) or known == "TrainingArguments":
            found |= defaults.ever_accepted(library, known)
    return found


def _classes(cls: str) -> list[tuple[str, str]]:
    """The studied classes that stand for one, by library: itself first, then what it inherits from."""
    name = cls.rpartition(".")[2] if cls != _HANDBOOKS else "ModelConfig"
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
