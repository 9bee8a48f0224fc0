"""Command jobs of Azure Machine Learning (``az ml job create``, schema ``commandJob``)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from lintfit.documents.jobs import nodes
from lintfit.documents.jobs.model import Job
from lintfit.documents.model import FileText, Kind, Node
from lintfit.documents.patterns import lazy_pattern

_OPTIONAL = lazy_pattern(r"\$\[\[(?P<words>[^\[\]\r\n]*)\]\]")
_INPUT = lazy_pattern(r"\$\{\{ ?inputs\.([\w-]+) ?\}\}")


def is_one(path: Path, text: str) -> bool:
    return path.suffix in (".yaml", ".yml") and "command" in text and ("azureml" in text or "commandJob" in text)


def read(file: FileText) -> Iterator[Job]:
    for root in nodes.roots(file, Kind.YAML):
        command = root.get("command")
        if command is None or not isinstance(command.value, str):
            continue
        batch = nodes.counted(
            nodes=nodes.said(root.get("resources", "instance_count")),
            instance=nodes.said(root.get("resources", "instance_type")),
        )
        env = nodes.variables(root.get("environment_variables"))
        text = _OPTIONAL.sub(partial(_given, root), file.text)
        yield Job(nodes.script_of(text, [command]), variables=env, batch=batch, started_by=_started_by(root))


def _given(root: Node, optional: re.Match[str]) -> str:
    """What stands in ``$[[…]]`` where its inputs have defaults, and blanks where somebody has to give them."""
    whole, words = optional[0], optional["words"]
    if any(root.get("inputs", name, "default") is None for name in _INPUT.findall(words)):
        return " " * len(whole)
    return f"   {words}  "


def _started_by(root: Node) -> tuple[str, ...]:
    """The processes that the platform starts itself, which are those of torchrun."""
    if nodes.text_of(root.get("distribution", "type")) != "pytorch":
        return ()
    processes = nodes.text_of(root.get("distribution", "process_count_per_instance")) or "1"
    machines = nodes.text_of(root.get("resources", "instance_count")) or "1"
    return "torchrun", f"--nproc_per_node={processes}", f"--nnodes={machines}"
