"""Where TRL's trainers of preferences cut a pair that nobody gives a length to."""

from __future__ import annotations

from lintfit.sources.preference_fallback import CONFIGS_SINCE, where_none
from lintfit.sources.script.reading.collector import Reading, something

_OF_CONFIGS = 1024
"""``max_length`` of the configs since TRL 0.14; None before."""
_UNKNOWN_DEFAULTS = frozenset({"BCOTrainer", "CPOTrainer", "ORPOTrainer"})
"""Trainers whose configs are not among those whose defaults are known by version."""
_TRAINERS = _UNKNOWN_DEFAULTS | {"DPOTrainer", "KTOTrainer"}


def read(reading: Reading) -> bool:
    """Note the length that the trainer falls back to; False where something else says whether there is one."""
    trainer, made = reading.found.trainer, reading.found.arguments
    if trainer is None or made is None or made.open or not trainer.function.startswith("trl."):
        return False
    kind = reading.settings.get("trainer")
    if kind is not None and not kind.known:
        return False  # its batches are no pairs
    if trainer.spreads and any(argument.star == "**" for argument in trainer.node.args):
        return False
    # A flag or a key of a config whose fields are not known may have gone to an object beside it.
    beside = (each.attributes.get("max_length") for each in (made, *(reading.walk.parsed if made.parsed else ())))
    if trainer.name not in _TRAINERS or any(something(value) for value in beside):
        return False
    version = reading.versions.get("trl")
    if "max_length" not in made.attributes and reading.at_least("trl", *CONFIGS_SINCE):
        if trainer.name not in _UNKNOWN_DEFAULTS:
            return False
        reading.default("seq_len", _OF_CONFIGS, f"TRL {version or '0.14'} default")
        return True
    cut = where_none(trainer.name, reading.versions)
    if cut is None:
        return trainer.name == "DPOTrainer" and "max_length" not in made.attributes
    reading.default("seq_len", cut, f"what {trainer.name} falls back to where max_length is None")
    return True
