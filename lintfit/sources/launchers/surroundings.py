"""What stands around a launch command."""

from __future__ import annotations

from collections.abc import Mapping

from lintfit.documents.model import Document, Span
from lintfit.frozen import field, frozen
from lintfit.settings.model import Provenance
from lintfit.sources.launchers.command_line import Option
from lintfit.sources.launchers.slurm import Slurm


@frozen(eq=False)
class Surroundings:
    """A launch command's document, the variables that it sees, and the batch job it is in."""

    document: Document
    command: Span
    environment: Mapping[str, str | None] = field(default_factory=dict)
    environment_places: Mapping[str, Span] = field(default_factory=dict)
    slurm: Slurm = field(default_factory=Slurm)
    by_srun: bool = False
    hosts: Mapping[str, int] | None = None
    """GPUs by host, from the hostfile that the command names; None where it names none or it cannot be read."""

    def at(self, span: Span, detail: str = "") -> Provenance:
        return Provenance.at(self.document, span, detail)

    def of(self, option: Option, detail: str = "") -> Provenance:
        span = option.words[0].span if option.words else option.flag.span
        return self.at(span, detail)

    @property
    def whole(self) -> Provenance:
        return self.at(self.command)
