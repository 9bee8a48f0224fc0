"""The kinds of job files: how each is told by its name and text, without a parser, and the module that reads it."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from lintfit.documents.jobs.model import Job
from lintfit.documents.model import FileText
from lintfit.documents.written_commands import WORDS

_MODULES = (
    "skypilot",
    "dstack",
    "kubernetes",
    "compose",
    "vertex",
    "azureml",
    "taskfile",
    "justfile",
    "vscode",
    "sagemaker",
)
"""Names of modules of this package, each with ``is_one(path, text)`` and ``read(file)``, the likeliest first."""
SUFFIXES = frozenset({".yaml", ".yml", ".json", ".py", ".just", ""})


def kind_of_job(path: Path, text: str) -> str | None:
    """The module that reads a job file; None for any other file."""
    if path.suffix not in SUFFIXES or not _may_start(path, text):
        return None
    for name in _MODULES:
        if import_module(f"lintfit.documents.jobs.{name}").is_one(path, text):
            return name
    return None


def _may_start(path: Path, text: str) -> bool:
    """A cheap look: most YAML, JSON and Python is none."""
    if path.suffix == ".py":
        return "sagemaker" in text and "entry_point" in text
    if path.suffix == ".json":
        return path.parent.name == ".vscode" or "workerPoolSpecs" in text
    if not path.suffix:
        return path.name.lower() in ("justfile", ".justfile")
    keys = ("run:", "command", "containers", "cmds", "workerPoolSpecs", "entrypoint", "tasks:")
    return any(key in text for key in keys) and any(word in text for word in (*WORDS, "python"))


def read_jobs(file: FileText, kind: str) -> Iterator[Job]:
    """What a job file of a kind starts."""
    yield from import_module(f"lintfit.documents.jobs.{kind}").read(file)
