"""Estimators of SageMaker's Python SDK (``HuggingFace(...)``, ``PyTorch(...)``) with literal arguments.

SageMaker starts ``python entry_point --name value …`` with the hyperparameters on each machine; with
``distribution={"torch_distributed": {"enabled": True}}`` torchrun with a process for each GPU
(sagemaker-training-toolkit 4.7, ``torch_distributed.py``).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

from lintfit.documents.jobs.model import Job, Said
from lintfit.documents.model import FileText, Span
from lintfit.documents.python_syntax import UNPARSED, statements

_ESTIMATORS = frozenset({"HuggingFace", "PyTorch"})


def is_one(path: Path, text: str) -> bool:
    return path.suffix == ".py" and "sagemaker" in text and "entry_point" in text and "instance_type" in text


def read(file: FileText) -> Iterator[Job]:
    try:
        tree = ast.Module(statements(file.text), [])
    except UNPARSED:
        return
    reader = _Reader(file.text, tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _name(node.func) in _ESTIMATORS:
            job = reader.job({keyword.arg: keyword.value for keyword in node.keywords if keyword.arg is not None})
            if job is not None:
                yield job


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


class _Reader:
    """Literals, and names that are set once to one."""

    def __init__(self, text: str, tree: ast.Module) -> None:
        self.lines = text.splitlines(keepends=True)
        self.starts = [0]
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line))
        self.named: dict[str, ast.expr | None] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                name = node.targets[0].id
                self.named[name] = node.value if name not in self.named else None

    def job(self, arguments: Mapping[str, ast.expr]) -> Job | None:
        script = self.said(arguments.get("entry_point"))
        if script is None:
            return None
        folder = self.said(arguments.get("source_dir"))
        path = f"{folder[0].rstrip('/')}/{script[0]}" if folder is not None and folder[0] and script[0] else script[0]
        words = [("python", script[1]), (path, script[1])]
        given = self.meant(arguments.get("hyperparameters"))
        for key, value in zip(given.keys, given.values, strict=True) if isinstance(given, ast.Dict) else ():
            name, said = self.said(key), self.said(value)
            if name is not None and said is not None:
                words += [(f"--{name[0]}" if name[0] is not None else None, name[1]), said]
        machines, instance = self.said(arguments.get("instance_count")), self.said(arguments.get("instance_type"))
        batch = {"nodes": machines, "instance": instance}
        return Job(
            words=tuple(words),
            batch={name: said for name, said in batch.items() if said is not None},
            started_by=self.started_by(arguments.get("distribution"), machines),
        )

    def started_by(self, distribution: ast.expr | None, machines: Said | None) -> tuple[str, ...]:
        found = self.meant(distribution)
        try:
            value = ast.literal_eval(found) if found is not None else None
        except ValueError:
            return ()
        known = isinstance(value, dict) and (value.get("torch_distributed") or value.get("pytorchddp"))
        if not isinstance(known, dict) or not known.get("enabled"):
            return ()
        return "torchrun", "--nproc_per_node=gpu", f"--nnodes={machines[0] if machines is not None else 1}"

    def meant(self, node: ast.expr | None) -> ast.expr | None:
        return self.named.get(node.id, node) if isinstance(node, ast.Name) else node

    def said(self, node: ast.expr | None) -> Said | None:
        """A literal as a word, with its place; its text is None where it is none."""
        if node is None:
            return None
        meant = self.meant(node)
        value = meant.value if isinstance(meant, ast.Constant) else None
        place = self.span(meant if meant is not None else node)
        return (str(value) if isinstance(value, (str, int, float, bool)) else None), place

    def span(self, node: ast.expr) -> Span:
        end_line, end_column = node.end_lineno or node.lineno, node.end_col_offset or 0
        return Span(self.at(node.lineno, node.col_offset), self.at(end_line, end_column))

    def at(self, line: int, column: int) -> int:
        """The character offset of a line and a column in bytes of UTF-8."""
        return self.starts[line - 1] + len(self.lines[line - 1].encode()[:column].decode("utf-8", "ignore"))
