"""What a document was read as by the runs that it is a part of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from lintfit.documents.model import DataDocument, Document
from lintfit.run.model import Run
from lintfit.sources import detect
from lintfit.sources.base import Source


def source_of(document: Document, runs: Sequence[Run]) -> Source | None:
    """The document read as its dialect: as a run has read it, else from its content."""
    first = reader_of(document, runs)
    found = next((each for each in _all_of(first) if each.document is document), None) if first is not None else None
    if found is not None:
        return found
    if not isinstance(document, DataDocument) or document.root is None:
        return None
    match detect.dialect(document):
        case "deepspeed":
            from lintfit.sources.deepspeed import read_deepspeed

            return read_deepspeed(document)
        case "accelerate":
            from lintfit.sources.accelerate import read_accelerate

            return read_accelerate(document)
    return None


def reader_of(document: Document, runs: Sequence[Run]) -> Run | None:
    """The first run that has read a document as something."""
    own = [str(document.path), str(document.kind)]
    every = runs.of if isinstance(runs, Watched) else runs
    return next((run for run in every if own in run.says("sources", partial(_sources, run))), None)


def _all_of(run: Run) -> Iterator[Source]:
    """What a run has read, the configs first: of a kept run, all else is read anew where somebody asks for it."""
    for name in ("deepspeed", "accelerate", "script", "recipe", "launch"):
        source: Source | None = getattr(run, name)
        if source is not None:
            yield source


def _sources(run: Run) -> list[list[str]]:
    """The documents that a run has read as something, by path and kind."""
    return [[str(each.document.path), str(each.document.kind)] for each in _all_of(run)]


def _configs(run: Run) -> list[list[str]]:
    found = (run.deepspeed, run.accelerate)
    return [[str(each.document.path), str(each.document.kind)] for each in found if each is not None]


def is_config_of(document: Document, run: Run) -> bool:
    """Whether a run has read a document as the config of a library."""
    configs = run.says("configs", partial(_configs, run))
    if [str(document.path), str(document.kind)] not in configs:
        return False
    return any(source is not None and source.document is document for source in (run.deepspeed, run.accelerate))


class Watched(tuple[Run, ...]):
    """The runs of a document, which notices whether anybody looks at them: if nobody does, nothing hangs on them."""

    def __new__(cls, runs: Sequence[Run]) -> Watched:
        made = super().__new__(cls, runs)
        made.of, made.looked = tuple(runs), False
        return made

    of: tuple[Run, ...]
    looked: bool

    def __iter__(self) -> Iterator[Run]:
        self.looked = True
        return super().__iter__()

    def __getitem__(self, index: Any) -> Any:
        self.looked = True
        return super().__getitem__(index)

    def __contains__(self, run: object) -> bool:
        self.looked = True
        return super().__contains__(run)

    def seen(self, first: Run | None) -> Sequence[Run]:
        """The runs that were looked at, and the one by which the document is read."""
        return self.of if self.looked else (first,) if first is not None else ()
