"""What a job file comes to: commands, the variables that they see, and the machines that are asked for."""

from __future__ import annotations

from collections.abc import Mapping

from lintfit.documents.model import Span
from lintfit.frozen import field, frozen

Said = tuple[str | None, Span]
"""A text, None where it is not known, and where it stands."""


@frozen(eq=False)
class Job:
    """Commands that run in one environment.

    ``script`` is the file's text with blanks for all but shell commands, up to where they end; ``words`` are one
    command that no shell takes apart. ``batch`` is what is asked for, in sbatch's words (``nodes``, ``gpus-per-node``,
    ``constraint`` for the kind of GPU) and ``instance``, a cloud's type of machine. ``started_by`` are the words of the
    launcher that the platform puts in front of ``python``. ``folder`` is where it starts, from the file's own.
    """

    script: str = ""
    words: tuple[Said, ...] = ()
    variables: Mapping[str, Said] = field(default_factory=dict)
    batch: Mapping[str, Said] = field(default_factory=dict)
    started_by: tuple[str, ...] = ()
    folder: str = "."
    fixed: bool = False
    """Whether it stands in several places, so that a change of one would not do."""
