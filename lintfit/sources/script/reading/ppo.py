"""What TRL's PPOTrainer makes of a script: its models beside the policy, and arguments that it does not heed."""

from __future__ import annotations

from lintfit.settings.model import UNKNOWN
from lintfit.sources.script.interpreter import models
from lintfit.sources.script.interpreter.values import Record, Value, plain
from lintfit.sources.script.reading.collector import Reading
from lintfit.versions import before

BESIDE = ("reward_model", "value_model")


def read(reading: Reading) -> None:
    """Note reward and value model, and set right what the arguments say but ``PPOTrainer`` does not do.

    The trainer runs ``Trainer.__init__`` not at all: nothing turns checkpointing on, and its Accelerator is one of its
    own, which hears of the arguments' precision only by the environment that transformers 4 set. The trainers up to
    TRL 0.11, which the script steps, take no reward model.
    """
    record, trainer = reading.found.trainer, reading.settings.get("trainer")
    if record is None or trainer is None or trainer.value != "ppo":
        return
    if _is_first(reading):
        return  # what a class of the script's own takes beside is for its own steps
    for name in BESIDE:
        value = record.keyword(name)
        if value is not None:
            _model(reading, name, value, record)
    if "reward_model" not in reading.settings:
        return
    made = reading.found.arguments
    why = "TRL's PPOTrainer does not turn it on; the policy's own gradient_checkpointing_enable() would"
    reading.derive("gradient_checkpointing", False, why)
    if made is not None and "deepspeed" not in made.attributes and reading.at_least("transformers", 5):
        _without_precision(reading)


def _is_first(reading: Reading) -> bool:
    """Whether it is the PPOTrainer of TRL up to 0.11, by its config's fields or by the version."""
    if reading.found.first_ppo is not None:
        return True
    return "PPOv2" not in reading.calls.script.text and before(reading.versions.get("trl"), "0.12") is True


def _model(reading: Reading, name: str, value: Value, record: Record) -> None:
    for load in models.loads_of(value):
        loaded = load.value(0, *models.CONFIG_NAMES)
        if loaded is not None:
            reading.put(name, loaded, load, to=plain(loaded) if isinstance(plain(loaded), str) else UNKNOWN)
            return
    reading.put(name, value, record, to=UNKNOWN)


def _without_precision(reading: Reading) -> None:
    """PPOTrainer's own Accelerator does not hear of the arguments (transformers 5 sets no environment for them), only
    of the launcher."""
    for name in ("bf16", "fp16"):
        reading.settings.pop(name, None)
