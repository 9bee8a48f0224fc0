"""Processes that a notebook starts itself: Accelerate's ``notebook_launcher`` (``accelerate/launchers.py``, 1.15)."""

from __future__ import annotations

from lintfit.settings.model import UNKNOWN
from lintfit.sources.script.reading.collector import Reading, something
from lintfit.sources.script.reading.facts import certain


def read(reading: Reading) -> None:
    """``notebook_launcher(function, args, num_processes, mixed_precision)``; the precision is ``"no"`` by default."""
    record = certain(reading.called("notebook_launcher"))
    if record is None:
        return
    count = record.value(2, "num_processes")
    if something(count):
        reading.put("gpus", count, record)
    else:
        reading.state("gpus", UNKNOWN, record.node, "notebook_launcher is not told how many processes to start")
    mixed = record.value(3, "mixed_precision")
    if something(mixed) and "mixed_precision" not in reading.settings:
        reading.put("mixed_precision", mixed, record)
