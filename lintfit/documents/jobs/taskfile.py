"""Commands of a Taskfile (https://taskfile.dev)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from lintfit.documents.jobs import nodes
from lintfit.documents.jobs.model import Job, Said
from lintfit.documents.model import FileText, Kind, Node
from lintfit.documents.patterns import lazy_pattern

_REFERENCE = lazy_pattern(r"\{\{[ ]*\.(?P<name>[A-Za-z_]\w*)[ ]*\}\}")
_NAMES = frozenset({"Taskfile.yml", "Taskfile.yaml", "taskfile.yml", "taskfile.yaml", "Taskfile.dist.yml"})


def is_one(path: Path, text: str) -> bool:
    return path.name in _NAMES and "tasks" in text


def read(file: FileText) -> Iterator[Job]:
    shell = _REFERENCE.sub(lambda match: _variable(match["name"], len(match.group())), file.text)
    for root in nodes.roots(file, Kind.YAML):
        tasks = root.get("tasks")
        common = [root.get("vars"), root.get("env")]
        for entry in tasks.entries if tasks is not None else ():
            task = entry.value
            lines = [line for line in _lines(task) if isinstance(line.value, str)]
            if lines:
                seen = nodes.variables(*common, task.get("vars"), task.get("env"))
                yield Job(nodes.script_of(shell, lines), variables=_spelled(seen))


def _variable(name: str, length: int) -> str:
    """A reference of Task's in the shell's form, of the same length."""
    return "${" + name + "_" * (length - len(name) - 3) + "}"


def _spelled(found: Mapping[str, Said]) -> dict[str, Said]:
    """Every variable under each of the names that :func:`_variable` gives it."""
    return {name + "_" * more: value for name, value in found.items() for more in (0, 2, 4)}


def _lines(task: Node) -> Iterator[Node]:
    if task.shape == "scalar":
        yield task
        return
    if (only := task.get("cmd")) is not None:
        yield only
    commands = task.get("cmds") if task.shape == "mapping" else task
    for element in commands.elements if commands is not None else ():
        found = element if element.shape == "scalar" else element.get("cmd")
        if found is not None:
            yield found
