"""A Trainer that has DDP look for unused parameters of adapters, beside reentrant checkpointing: backward stops.

The Trainer of transformers 4 and 5 looks for them unless the model is a ``PreTrainedModel``, which a ``PeftModel`` is
not, or ``ddp_find_unused_parameters`` says no (``trainer.py``). DDP then marks the parameters of a layer that is
recomputed reentrantly as ready twice (peft#313, trl#921).
"""

from __future__ import annotations

from lintfit.run.engine_location import has_trainer
from lintfit.run.model import Run

ARGUMENT = "ddp_find_unused_parameters"
"""A field of ``TrainingArguments`` since transformers 4.3."""

_NOT_REENTRANT = 5
"""The first transformers that checkpoints without reentering where nothing is said."""


def searches_beside_reentrant(run: Run) -> bool:
    """Whether a run may stop so, with any of the versions that it allows."""
    script = run.script
    if script is None or not has_trainer(run) or run.value("gradient_checkpointing") is not True:
        return False
    if run.value("engine") != "ddp" or (run.value("gpus") or 0) < 2 or run.mentions(ARGUMENT):
        return False
    stated = run.settings.get("use_reentrant")
    if stated is not None and stated.value is False and stated.provenance.kind == "file":
        return False
    known = (script.reading.version(name) for name in ("transformers", "transformers>="))
    if any(version is not None and version >= (_NOT_REENTRANT,) for version in known):
        return False
    return any(record.name == "get_peft_model" and record.taken is True for record in script.reading.records)
