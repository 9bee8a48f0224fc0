"""dstack's tasks (https://dstack.ai/docs/reference/dstack.yml/task): ``commands``, ``resources.gpu``, ``nodes``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from lintfit.documents.jobs import nodes
from lintfit.documents.jobs.model import Job, Said
from lintfit.documents.model import FileText, Kind, Node
from lintfit.documents.patterns import lazy_pattern

_TASK = lazy_pattern(r"^type\s*:\s*[\"']?task\b", re.MULTILINE)


def is_one(path: Path, text: str) -> bool:
    return path.suffix in (".yaml", ".yml") and "commands" in text and _TASK.search(text) is not None


def read(file: FileText) -> Iterator[Job]:
    for root in nodes.roots(file, Kind.YAML):
        commands = root.get("commands")
        lines = [node for node in commands.elements if isinstance(node.value, str)] if commands is not None else []
        if not lines:
            continue
        batch = _asked(root.get("resources", "gpu")) | nodes.counted(nodes=nodes.said(root.get("nodes")))
        seen = nodes.variables(root.get("env"))
        seen |= nodes.counted(DSTACK_GPUS_PER_NODE=nodes.count_in(batch), DSTACK_NODES_NUM=batch.get("nodes"))
        yield Job(nodes.script_of(file.text, lines), variables=seen, batch=batch)


def _asked(node: Node | None) -> dict[str, Said]:
    if node is None or node.shape != "mapping":
        return nodes.gpus(node)
    name, count = node.get("name"), nodes.said(node.get("count"))
    kind = nodes.said(name.elements[0] if name is not None and len(name.elements) == 1 else name)
    if count is None:
        count = ("1", kind[1]) if kind is not None else None
    elif not (count[0] or "").isdigit():
        count = None  # a range
    return nodes.counted(constraint=kind, gpus_per_node=count)
