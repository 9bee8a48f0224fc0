"""Commands, variables and counts among the nodes of YAML or JSON."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from lintfit.documents.data_edits import reader_of
from lintfit.documents.jobs.model import Job, Said
from lintfit.documents.model import FileText, Kind, Node, Span
from lintfit.documents.patterns import lazy_pattern
from lintfit.documents.written_commands import blank, passed_over
from lintfit.frozen import replace

_SEPARATOR = lazy_pattern(r"^---[ \t]*(?:#.*)?$", re.MULTILINE)
_FILLED_IN = lazy_pattern(r"\$[A-Za-z_({]|\{\{|<[^<>]+>")
_EXPRESSION = lazy_pattern(r"\$?\{\{[^{}\n]*(?:(?:\{(?!\{)|\}(?!\}))[^{}\n]*)*\}\}")
_SHELLS = frozenset({"sh", "bash", "/bin/sh", "/bin/bash", "/usr/bin/bash", "/bin/zsh", "zsh"})
_MEMORY = lazy_pattern(r"^[\d.]+(?:\.\.[\d.]*)?[ ]*[GT]i?B?", re.IGNORECASE)


def roots(file: FileText, kind: Kind) -> Iterable[Node]:
    """The documents that a file holds; none of what cannot be read."""
    breaks = [match.span() for match in _SEPARATOR.finditer(file.text)] if kind is Kind.YAML else []
    starts, ends = [0, *(end for _, end in breaks)], [*(start for start, _ in breaks), len(file.text)]
    path = Path("job.yaml" if kind is Kind.YAML else "job.json")
    for start, end in zip(starts, ends, strict=True):
        masked = blank(file.text[:start]) + file.text[start:end] if breaks else file.text
        root = reader_of(kind)(replace(file, path=path, text=masked)).root if masked.strip() else None
        if root is not None:
            yield root


def text_of(node: Node | None) -> str | None:
    """A scalar as a shell would see it; None for anything else."""
    if node is None or node.shape != "scalar" or node.value is None:
        return None
    return str(node.value).lower() if isinstance(node.value, bool) else str(node.value)


def said(node: Node | None) -> Said | None:
    """A scalar with its place; its text is None where something is to be filled in."""
    text = text_of(node)
    if node is None or text is None:
        return None
    return (None if _FILLED_IN.search(text) else text), node.span


def variables(*nodes: Node | None) -> dict[str, Said]:
    """The variables of ``env`` in any of its forms: a mapping, a list of ``K=V``, or of ``name`` and ``value``."""
    found: dict[str, Said] = {}
    for node in nodes:
        for entry in node.entries if node is not None else ():
            if (value := said(entry.value)) is not None:
                found[entry.key] = value
        for element in node.elements if node is not None else ():
            name, value = text_of(element.get("name")), said(element.get("value"))
            if name is not None and value is not None:
                found[name] = value
            elif (text := text_of(element)) is not None and "=" in text:
                key, _, rest = text.partition("=")
                found[key] = (None if _FILLED_IN.search(rest) else rest), element.span
    return found


def script_of(text: str, nodes: Sequence[Node]) -> str:
    """The file with blanks for all but these scalars, each of which begins a line of one shell."""
    parts: list[str] = []
    length = 0
    for node in nodes:
        start, end, folded = _inside(text, node)
        body = text[start:end]
        if folded:
            body = re.sub(r"\\?[\r\n]+[ \t]*", lambda match: " " * len(match.group()), body)
        body = _EXPRESSION.sub(lambda match: "$" + "_" * (len(match.group()) - 1), body)
        gap = start - length
        parts += [passed_over(gap) if not parts else "\n".rjust(gap) if gap else "", body]
        length = end
    return "".join(parts)


def _inside(text: str, node: Node) -> tuple[int, int, bool]:
    """Where the text of a scalar begins and ends, without its quotes or its mark, and whether its lines are one."""
    start, end = node.span.start, node.span.end
    first = text[start : start + 1]
    if first in ("|", ">"):
        return (text.find("\n", start, end) + 1) or end, end, first == ">"
    if first in ("'", '"') and end - start > 1:
        return start + 1, end - 1, True
    return start, end, True


def command(
    text: str, nodes: Sequence[Node | None], env: Mapping[str, Said], batch: Mapping[str, Said], *, shell: bool = False
) -> Job | None:
    """The job of a command that stands in several nodes (``command`` and ``args``), as lists or as one string.

    ``bash -c STRING`` is that string; ``shell``: whether a string is one without it.
    """
    given = [node for node in nodes if node is not None]
    words = [item for node in given for item in (node.elements if node.shape == "sequence" else (node,))]
    if not words:
        return None
    values = [text_of(word) for word in words]
    if values[0] in _SHELLS:
        index = next((i for i, value in enumerate(values) if value and re.fullmatch(r"-[a-z]*c", value)), None)
        rest = words[index + 1 :] if index is not None else []
        return Job(script_of(text, rest[:1]), variables=env, batch=batch) if rest else None
    alone = len(words) == 1 and " " in (values[0] or "")
    if alone or (shell and len(given) == 1 and given[0].shape == "scalar"):
        return Job(script_of(text, words[:1]), variables=env, batch=batch)
    parts = tuple(item for word in words if (item := said(word)) is not None)
    return Job(words=parts, variables=env, batch=batch)


def gpus(node: Node | None) -> dict[str, Said]:
    """What ``NAME:COUNT``, ``{NAME: COUNT}`` or a list of such alternatives asks for on one machine."""
    if node is not None and node.shape == "mapping" and len(node.entries) == 1:
        entry = node.entries[0]
        count = text_of(entry.value)
        return {"gpus-per-node": (f"{entry.key}:{count or 1}", entry.span)}
    if node is not None and node.shape == "sequence":
        return gpus(node.elements[0]) if len(node.elements) == 1 else {}
    found = said(node)
    if found is None or found[0] is None:
        return {}
    parts = [part for part in found[0].split(":") if part and not _MEMORY.match(part)]
    if not parts or any(".." in part for part in parts):
        return {}  # a range, of which the scheduler takes what there is
    return {"gpus-per-node": (":".join(parts), found[1])}


def count_in(batch: Mapping[str, Said]) -> Said | None:
    """The number of GPUs of a machine, as far as it is asked for."""
    found = batch.get("gpus-per-node")
    if found is None or found[0] is None:
        return None
    last = found[0].rpartition(":")[2]
    return (last if last.isdigit() else "1"), found[1]


def counted(**found: Said | None) -> dict[str, Said]:
    """What is there of these, by name (``_`` for ``-``)."""
    return {
        name.replace("_", "-") if name.islower() else name: value for name, value in found.items() if value is not None
    }


def summed(nodes: Iterable[Node | None]) -> Said | None:
    """The sum of counts, with the place of the last."""
    known = [(node.value, node.span) for node in nodes if node is not None and isinstance(node.value, int)]
    return (str(sum(value for value, _ in known)), known[-1][1]) if known else None


def at(node: Node, text: str) -> Said:
    return text, Span(node.span.start, node.span.end)
