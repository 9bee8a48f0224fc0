"""Whether a script certainly goes on from a checkpoint: by its trainer or by Accelerate."""

from __future__ import annotations

from lintfit.settings.model import UNKNOWN
from lintfit.sources.script.interpreter.values import plain
from lintfit.sources.script.reading.collector import Reading
from lintfit.sources.script.reading.facts import is_of


def read(reading: Reading) -> None:
    """Note a run that resumes, optimizer and all; where an unknown condition decides, it counts as a fresh start."""
    for record in reading.records:
        if record.taken is not True or record.guarded or record.spreads:
            continue
        if record.name == "train" and is_of(record, reading.found.trainer):
            asked = record.value(0, "resume_from_checkpoint")
            known = plain(asked) if asked is not None else None
            if asked is not None and known is not UNKNOWN and known:
                reading.put("resumes", asked, record, to=True)
                return
        elif record.name == "load_state" and is_of(record, reading.found.accelerator):
            reading.state("resumes", True, record.node, "Accelerate's load_state reads the optimizer's states, too")
            return
