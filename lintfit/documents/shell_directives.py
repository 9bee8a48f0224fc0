"""What the comments of a script ask a batch system for: ``#SBATCH`` lines (https://slurm.schedmd.com/sbatch.html), and
the GPUs of PBS's ``#PBS -l`` and LSF's ``#BSUB -gpu``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from lintfit.documents.model import Span
from lintfit.documents.patterns import lazy_pattern
from lintfit.frozen import frozen

_GPUS = lazy_pattern(
    r"^#(?:PBS[ \t][^\r\n#]*?-l[ \t]+(?:[\w=:,.-]*[:,])?n?gpus="
    r"|BSUB[ \t][^\r\n#]*?-gpu[ \t]+[\"']?(?:[^\"'\r\n]*:)?num=)(?P<count>\d+)"
    r"(?![^\r\n]*(?:\+|/task))",
    re.MULTILINE,
)
"""The GPUs of a node in PBS's words (``select=1:ngpus=4``, ``nodes=1:gpus=4``) and LSF's (``num=4``), where every
node has as many (PBS Professional's qsub, "Requesting resources"; LSF's bsub, "-gpu")."""
_CHUNKS = lazy_pattern(r"\bselect=(?!1\b)")
"""Several chunks, of which one node may have more than one."""
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
    """Every option of every ``#SBATCH`` line, in order, and what other systems are asked for as Slurm's option has it;
    of a page that is read block by block they are the same."""
    return (*_directives(text), *_of_other_systems(text))


def _of_other_systems(text: str) -> Iterator[Directive]:
    for match in _GPUS.finditer(text):
        if _CHUNKS.search(match.group()) is None:
            yield Directive("--gpus-per-node", match["count"], Span(*match.span()), Span(*match.span("count")))


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
