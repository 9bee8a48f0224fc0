"""A Trainer that has DDP look for unused parameters of adapters, beside reentrant checkpointing: backward stops.

The Trainer of transformers 4 and 5 looks for them unless the model is a ``PreTrainedModel``, which a ``PeftModel`` is
not, or ``ddp_find_unused_parameters`` says no (``trainer.py``). DDP then marks the parameters of a layer that is
recomputed reentrantly as ready twice (peft#313, trl#921).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lintfit.run.engine_location import has_trainer
from lintfit.run.model import Run

if TYPE_CHECKING:
    from lintfit.sources.script.source import ScriptSource

ARGUMENT = "ddp_find_unused_parameters"
"""A field of ``TrainingArguments`` since transformers 4.3."""

_KEYWORDS, _SINCE = "gradient_checkpointing_kwargs", (4, 35)
"""A field since that release, which the Trainer hands to torch's checkpoint."""

_NOT_REENTRANT = 5
"""The first transformers that checkpoints without reentering where nothing is said."""

_TRL_NOT_REENTRANT = (0, 27)
"""The first TRL whose configs say ``use_reentrant`` False where a script says nothing (``sft_config.py``)."""


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
    if run.launch is None and run.settings["gpus"].provenance.kind == "option":
        return False  # that the machine has several GPUs does not say that the script is started on each of them
    known = (script.reading.version(name) for name in ("transformers", "transformers>="))
    if any(version is not None and version >= (_NOT_REENTRANT,) for version in known):
        return False
    if _said_by_trl(run) or run.value("method") != "lora":
        return False
    wraps = any(record.name == "get_peft_model" and record.taken is True for record in script.reading.records)
    return wraps or _is_handed_adapters(script)


def _is_handed_adapters(script: ScriptSource) -> bool:
    """Whether one of TRL's trainers makes the ``PeftModel`` itself, of the config that it is handed (TRL 0.9
    ``dpo_trainer.py``, ``sft_trainer.py``)."""
    from lintfit.sources.script.reading.collector import sure_none

    trainer = script.reading.found.trainer
    return trainer is not None and script.uses_trl and not sure_none(trainer.keyword("peft_config"))


def _said_by_trl(run: Run) -> bool:
    """Whether TRL's arguments say that nothing reenters where a script does not."""
    script = run.script
    version = script.reading.version("trl") if script is not None and script.uses_trl else None
    return version is not None and version >= _TRL_NOT_REENTRANT


def without_reentering(run: Run) -> tuple[tuple[str, Any], ...]:
    """The change that ends it and leaves nothing else to do; none where the script's call cannot say it: a release
    before the field, or arguments that come from flags or have keywords for torch's checkpoint."""
    script = run.script
    made = script.reading.found.arguments if script is not None else None
    if script is None or made is None or made.parsed or made.call is None or _KEYWORDS in made.attributes:
        return ()
    version = script.reading.version("transformers")
    return () if version is not None and version < _SINCE else ((_KEYWORDS, {"use_reentrant": False}),)
