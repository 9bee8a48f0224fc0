"""The ``#SBATCH`` lines of a Slurm script (https://slurm.schedmd.com/sbatch.html)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from lintfit.documents.model import Span
from lintfit.documents.patterns import lazy_pattern
from lintfit.frozen import frozen

_DIRECTIVE = lazy_pattern(r"^#SBATCH[ \t]+(?P<options>[^\r\n]*)", re.MULTILINE)
_OPTION = lazy_pattern(
    r"(?P<key>--?[A-Za-z][\w-]*)(?:=|[ \t]+(?!-)|(?=[ \t]|$))(?P<value>\"[^\"]*\"|'[^']*'|[^ \t\r\n#-][^ \t\r\n]*|)"
)
_SHORT_OPTION = lazy_pattern(r"(?P<key>-[A-Za-z])(?P<value>[^\s=-]\S*)")


@frozen
class Directive:
    """One option of an ``#SBATCH`` line: ``--gres=gpu:8`` has the key ``--gres`` and the value ``gpu:8``."""

    key: str
    value: str
    span: Span
    value_span: Span


_COUNTS = {
    "--nodes": ("SLURM_NNODES", "SLURM_JOB_NUM_NODES"),
    "-N": ("SLURM_NNODES", "SLURM_JOB_NUM_NODES"),
    "--ntasks": ("SLURM_NTASKS", "SLURM_NPROCS"),
    "-n": ("SLURM_NTASKS", "SLURM_NPROCS"),
    "--ntasks-per-node": ("SLURM_NTASKS_PER_NODE",),
    "--gpus-per-node": ("SLURM_GPUS_PER_NODE", "SLURM_GPUS_ON_NODE"),
    "--cpus-per-task": ("SLURM_CPUS_PER_TASK",),
}
"""The variables that sbatch sets from an option (sbatch, "output environment variables")."""


def slurm_counts(found: Iterable[Directive]) -> dict[str, str]:
    """The numbers that a job's options give its environment."""
    counts: dict[str, str] = {}
    for directive in found:
        if directive.value.isdigit():
            counts.update(dict.fromkeys(_COUNTS.get(directive.key, ()), directive.value))
    return counts


@lru_cache(maxsize=4)
def directives(text: str) -> tuple[Directive, ...]:
    """Every option of every ``#SBATCH`` line, in order; of a page that is read block by block they are the same."""
    return tuple(_directives(text))


def _directives(text: str) -> Iterator[Directive]:
    for line in _DIRECTIVE.finditer(text):
        start, end = line.span("options")
        comment = re.compile(r"[ \t]#").search(text, start, end)
        offset, end = start, comment.start() if comment else end
        while offset < end:
            match = _SHORT_OPTION.match(text, offset, end) or _OPTION.match(text, offset, end)
            if match is None:
                offset += 1
                continue
            value = match["value"].strip("\"'")
            yield Directive(match["key"], value, Span(*match.span()), Span(*match.span("value")))
            offset = max(match.end(), offset + 1)
