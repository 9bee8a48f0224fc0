"""The GPUs that one plain process sees: over several of them a Trainer makes an ``nn.DataParallel``."""

from __future__ import annotations

import re

from lintfit.documents.model import Span
from lintfit.run.engine_location import has_trainer
from lintfit.run.model import Run
from lintfit.settings.model import Place
from lintfit.sources.launchers.launch import Launch


def sees_all(run: Run, launch: Launch) -> bool:
    """Whether the launch starts one process for a Trainer that sees several GPUs."""
    if launch.launcher != "python" or run.value("engine") != "single" or run.script is None or not has_trainer(run):
        return False
    if (run.hardware.available or 1) < 2 or launch.seen_gpus is not None or "visible_devices" in launch.settings:
        return False
    text = run.script.document.text
    own = "CUDA_VISIBLE_DEVICES" in text or "unsloth" in text  # Unsloth trains on one GPU, whatever it sees
    return not own and not any(load.spreads for load in run.script.facts.loads)


_SEVERAL = re.compile(r"CUDA_VISIBLE_DEVICES[\"']\]?\s{0,9}[=,]\s{0,9}[\"']\s{0,9}\d+\s{0,9},\s{0,9}\d")


def shows_several(run: Run) -> Place | None:
    """Where a script that runs in one process itself says that it sees several GPUs, over which a Trainer then makes an
    ``nn.DataParallel``."""
    if run.value("engine") != "single" or run.script is None or not has_trainer(run):
        return None
    document = run.script.document
    found = _SEVERAL.search(document.text)
    return Place(document, Span(*found.span())) if found is not None else None
