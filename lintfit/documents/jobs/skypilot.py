"""SkyPilot's tasks (https://docs.skypilot.co/en/latest/reference/yaml-spec.html): ``run``, ``resources``, ``envs``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from lintfit.documents.jobs import nodes
from lintfit.documents.jobs.model import Job
from lintfit.documents.model import FileText, Kind, Node
from lintfit.documents.patterns import lazy_pattern

_RUN = lazy_pattern(r"^run\s*:", re.MULTILINE)
_ASKS = lazy_pattern(r"^(?:resources|num_nodes|workdir|file_mounts|setup)\s*:", re.MULTILINE)


def is_one(path: Path, text: str) -> bool:
    return path.suffix in (".yaml", ".yml") and _RUN.search(text) is not None and _ASKS.search(text) is not None


def read(file: FileText) -> Iterator[Job]:
    for root in nodes.roots(file, Kind.YAML):
        run = root.get("run")
        if run is None or not isinstance(run.value, str):
            continue
        batch = nodes.gpus(root.get("resources", "accelerators"))
        if not batch:
            batch = nodes.counted(instance=nodes.said(root.get("resources", "instance_type")))
        batch |= nodes.counted(nodes=nodes.said(root.get("num_nodes")))
        seen = nodes.variables(root.get("envs"), root.get("secrets"))
        seen |= nodes.counted(
            SKYPILOT_NUM_GPUS_PER_NODE=nodes.count_in(batch), SKYPILOT_NUM_NODES=batch.get("nodes") or ("1", run.span)
        )
        script = nodes.script_of(file.text, [run])
        yield Job(script, variables=seen, batch=batch, folder=_folder(root.get("workdir")))


def _folder(workdir: Node | None) -> str:
    """The folder that is taken along, in which the commands start: from where the task is launched, the file's own."""
    named = nodes.text_of(workdir)
    return named if named and not named.startswith(("/", "~")) and "://" not in named and "$" not in named else "."
