"""What a document was read as by the runs that it is a part of."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from lintfit.documents.model import DataDocument, Document
from lintfit.run.model import Run
from lintfit.sources import detect
from lintfit.sources.base import Source


def source_of(document: Document, runs: Sequence[Run]) -> Source | None:
    """The document read as its dialect: as a run has read it, else from its content."""
    own = [str(document.path), str(document.kind)]
    for run in runs:
        if own not in run.says("sources", partial(_sources, run)):
            continue
        for source in (run.deepspeed, run.accelerate, run.script, run.recipe, run.launch):
            if source is not None and source.document is document:
                return source
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


def _sources(run: Run) -> list[list[str]]:
    """The documents that a run has read as something, by path and kind."""
    found = (run.deepspeed, run.accelerate, run.script, run.recipe, run.launch)
    return [[str(each.document.path), str(each.document.kind)] for each in found if each is not None]


def _configs(run: Run) -> list[list[str]]:
    found = (run.deepspeed, run.accelerate)
    return [[str(each.document.path), str(each.document.kind)] for each in found if each is not None]


def is_config_of(document: Document, run: Run) -> bool:
    """Whether a run has read a document as the config of a library."""
    configs = run.says("configs", partial(_configs, run))
    if [str(document.path), str(document.kind)] not in configs:
        return False
    return any(source is not None and source.document is document for source in (run.deepspeed, run.accelerate))
