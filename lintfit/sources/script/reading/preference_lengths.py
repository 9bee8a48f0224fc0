"""Where TRL's trainers of preferences cut a pair that nobody gives a length to."""

from __future__ import annotations

from lintfit.sources.script.reading.collector import Reading, something

_FALLS_BACK = 512
"""``max_length`` where it is None: of DPO's trainer up to 0.11, of KTO's up to 0.24, of CPO's, ORPO's and BCO's to
this day (TRL 0.8.6, 0.11.4, 0.24 and 1.9, ``trl/trainer`` and ``trl/experimental``)."""
_OF_CONFIGS = 1024
"""``max_length`` of the configs since TRL 0.14; None before."""
_LEAVES_WHOLE = frozenset({"DPOTrainer"})
"""Trainers that cut nothing where the length is None (``dpo_trainer.py`` since TRL 0.12)."""
_UNKNOWN_DEFAULTS = frozenset({"BCOTrainer", "CPOTrainer", "ORPOTrainer"})
"""Trainers whose configs are not among those whose defaults are known by version."""
_TRAINERS = _UNKNOWN_DEFAULTS | {"DPOTrainer", "KTOTrainer"}


def read(reading: Reading) -> bool:
    """Note the length that the trainer falls back to; False where something else says whether there is one."""
    trainer, made = reading.found.trainer, reading.found.arguments
    if trainer is None or made is None or made.open or not trainer.function.startswith("trl."):
        return False
    if trainer.spreads and any(argument.star == "**" for argument in trainer.node.args):
        return False
    # A flag or a key of a config whose fields are not known may have gone to an object beside it.
    beside = (each.attributes.get("max_length") for each in (made, *(reading.walk.parsed if made.parsed else ())))
    if trainer.name not in _TRAINERS or any(something(value) for value in beside):
        return False
    version = reading.versions.get("trl")
    if "max_length" not in made.attributes and reading.at_least("trl", 0, 14):
        if trainer.name not in _UNKNOWN_DEFAULTS:
            return False
        reading.default("seq_len", _OF_CONFIGS, f"TRL {version or '0.14'} default")
        return True
    if trainer.name in _LEAVES_WHOLE and reading.at_least("trl", 0, 12):
        return "max_length" not in made.attributes
    if trainer.name == "KTOTrainer" and reading.at_least("trl", 0, 25):
        return False
    reading.default("seq_len", _FALLS_BACK, f"what {trainer.name} falls back to where max_length is None")
    return True
