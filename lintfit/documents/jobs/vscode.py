"""VS Code's ``launch.json`` (programs and modules of Python) and ``tasks.json`` (commands)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from lintfit.documents.jobs import nodes
from lintfit.documents.jobs.model import Job, Said
from lintfit.documents.model import FileText, Kind, Node

_FOLDERS = ("${workspaceFolder}/", "${workspaceRoot}/", "${fileWorkspaceFolder}/")
_LAUNCHERS = frozenset({"accelerate", "accelerate-launch", "deepspeed", "torchrun"})
"""Programs that are scripts of Python themselves, and start another one."""
_DEBUGGERS = frozenset({"python", "debugpy"})


def is_one(path: Path, text: str) -> bool:
    return path.parent.name == ".vscode" and path.name in ("launch.json", "tasks.json")


def read(file: FileText) -> Iterator[Job]:
    for root in nodes.roots(file, Kind.JSON):
        for name, of in (("configurations", _configured), ("tasks", _task)):
            listed = root.get(name)
            for each in listed.elements if listed is not None else ():
                job = of(file.text, each)
                if job is not None:
                    yield job


def _configured(text: str, each: Node) -> Job | None:
    program, module = each.get("program"), each.get("module")
    named = program if program is not None else module
    if (
        nodes.text_of(each.get("type")) not in _DEBUGGERS
        or named is None
        or nodes.text_of(each.get("request")) == "attach"
    ):
        return None
    arguments = each.get("args")
    if arguments is not None and arguments.shape == "scalar":
        return None
    launches = module is None and (nodes.text_of(named) or "").rpartition("/")[2] in _LAUNCHERS
    words = [] if launches else [nodes.at(named, "python")]
    words += [*([nodes.at(named, "-m")] if program is None else []), _word(named)]
    words += [_word(word) for word in arguments.elements] if arguments is not None else []
    return Job(words=tuple(words), variables=nodes.variables(each.get("env")))


def _task(text: str, each: Node) -> Job | None:
    command, arguments = each.get("command"), each.get("args")
    if command is None or nodes.text_of(each.get("type")) not in ("shell", "process", None):
        return None
    env = nodes.variables(each.get("options", "env"))
    if arguments is None or not arguments.elements:
        return nodes.command(text, [command], env, {}, shell=True)
    return Job(words=(_word(command), *(_word(word) for word in arguments.elements)), variables=env)


def _word(node: Node) -> Said:
    """A word, with paths from the workspace's folder on as relative ones."""
    text = nodes.text_of(node) or ""
    for folder in _FOLDERS:
        text = text.removeprefix(folder)
    return (None if "${" in text else text), node.span
