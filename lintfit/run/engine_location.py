"""Where a run says which engine trains it: in the launcher's file, or in the trainer's own arguments."""

from __future__ import annotations

from lintfit.run.model import Run
from lintfit.settings.registry import ZERO


def has_trainer(run: Run) -> bool:
    """Whether a Trainer runs the loop, of a script or of a front end: its arguments, not Accelerate's YAML, then say
    precision and DeepSpeed file."""
    return run.training is not None and run.training.uses_trainer


def in_launcher_file(run: Run, engine: str) -> bool:
    """Whether Accelerate's file is where this engine would be asked for.

    It is for a loop of the script's own, and for a Trainer where the file, not the trainer's arguments, says that FSDP
    runs or could as well.
    """
    if run.accelerate is None or in_launch_line(run, engine):
        return False
    stated = run.accelerate.settings.get("engine")
    if not has_trainer(run):
        return True
    return stated is not None and (stated.value == "fsdp" or (engine == "fsdp" and stated.value == "ddp"))


def in_launch_line(run: Run, engine: str) -> bool:
    """Whether ``accelerate launch`` itself is where this engine would be asked for, where there is no file, or options
    count before it: for a loop of the script's own, and for a Trainer whose arguments stand in the script, for every
    launch of it alike (``TrainingArguments`` takes DeepSpeed from ``ACCELERATE_USE_DEEPSPEED``, transformers 4.30)."""
    launch = run.launch
    if launch is None or launch.launcher != "accelerate" or engine == "fsdp":
        return False
    if has_trainer(run) and not _in_code(run):
        return False
    return run.accelerate is None or "engine" in launch.settings


def _in_code(run: Run) -> bool:
    """Whether a Trainer's arguments are made in the script, by no flags, and say nothing of an engine."""
    made = run.script.reading.found.arguments if run.script is not None else None
    if made is None or made.parsed or run.deepspeed is not None:
        return False
    return made.attributes.keys().isdisjoint({"deepspeed", "fsdp", "accelerator_config"})


def by_launcher(run: Run, engine: str) -> bool:
    """Whether Accelerate's launcher, by its file or its own options, is where this engine would be asked for."""
    return in_launcher_file(run, engine) or in_launch_line(run, engine)


def zero_in_launcher_file(run: Run) -> bool:
    """Whether Accelerate's file alone says how ZeRO shards, or would if the run had DeepSpeed.

    What it has no key for (buckets, a folder on NVMe) then needs a DeepSpeed JSON in the place of its own keys.
    """
    if run.accelerate is None or run.deepspeed is not None or not _LAUNCHED.isdisjoint(_said(run)):
        return False
    return run.accelerate.engine == "deepspeed" or in_launcher_file(run, "deepspeed")


_LAUNCHED = frozenset({"deepspeed", "deepspeed_config_file", *ZERO})
"""What a launch line or a script says of ZeRO in the file's place."""


def _said(run: Run) -> set[str]:
    """What launch line, script and file state; defaults of a library are nobody's statement."""
    sources = (run.launch, run.script)
    said = {n for s in sources if s is not None for n, v in s.settings.items() if v.provenance.kind == "file"}
    file = {"deepspeed_config_file"} & (run.accelerate.settings.keys() if run.accelerate is not None else set())
    return said | file
