"""The configs of a run: which Accelerate YAML and which DeepSpeed JSON count, by name, by place or on their own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from lintfit.documents.broken import is_refused
from lintfit.documents.model import DataDocument, Document, Kind
from lintfit.frozen import replace
from lintfit.run.discover import SUFFIXES
from lintfit.run.files import RunFiles
from lintfit.run.precedence import Sources, first
from lintfit.settings.model import UNKNOWN, Setting
from lintfit.sources import detect

if TYPE_CHECKING:
    from lintfit.sources.accelerate import AccelerateSource
    from lintfit.sources.deepspeed import DeepSpeedSource

_CONFIGS = (Kind.JSON, Kind.YAML)
DEEPSPEED, ACCELERATE = "the DeepSpeed config", "the Accelerate config"
_CALLED: Mapping[str, str] = {"deepspeed": DEEPSPEED, "accelerate": ACCELERATE}
_KINDS: Mapping[str, Kind] = {"deepspeed": Kind.JSON, "accelerate": Kind.YAML}


def _config_kind(path: Path, role: Kind) -> Kind | None:
    """What a file that is named as a config is read as: by its suffix where that is a config's, else by its role."""
    return None if SUFFIXES.get(path.suffix) in _CONFIGS else role


def accelerate_of(files: RunFiles, sources: Sources) -> AccelerateSource | None:
    """The Accelerate YAML that the launch names, else the one that the user put beside it."""
    from lintfit.sources.accelerate import read_accelerate

    named = sources.named_yaml
    here = _named_here(files, named, Kind.YAML)
    if here is not None:
        return _as_launched(sources, read_accelerate(here))
    for path in _config_paths(files, "accelerate", named):
        document = files.config(path, _config_kind(path, Kind.YAML), ACCELERATE)
        refused = document is not None and named is not None and is_refused(document)
        if document is not None and document.root is not None and not refused:
            return _as_launched(sources, read_accelerate(document))
        _unparsed(files, "accelerate", named, document)
    return None


def _as_launched(sources: Sources, source: AccelerateSource) -> AccelerateSource:
    """The file as it counts where the command line chooses the engine (``--use_deepspeed``, ``--multi_gpu``)."""
    chosen = sources.said("launch", "engine")
    if chosen is None or not isinstance(chosen.value, str) or chosen.value == source.engine:
        return source
    return source.under(chosen.value)


def deepspeed_of(files: RunFiles, sources: Sources) -> DeepSpeedSource | None:
    """The DeepSpeed JSON that the script, the launch or the Accelerate YAML names, else the one beside it."""
    from lintfit.sources.deepspeed import read_deepspeed

    named = first(
        "deepspeed",
        sources.said("script", "deepspeed"),
        sources.said("launch", "deepspeed"),
        sources.launched_deepspeed_file,
        sources.said("accelerate", "deepspeed_config_file"),
    )
    own = _read_by_script(named) or _named_here(files, named, Kind.JSON)
    if own is not None:
        return _in_all_branches(sources, read_deepspeed(own), named)
    for path in _config_paths(files, "deepspeed", named):
        document = files.config(path, _config_kind(path, Kind.JSON), DEEPSPEED)
        if document is not None and document.root is not None:
            return read_deepspeed(document)
        _unparsed(files, "deepspeed", named, document)
    return None


def _in_all_branches(sources: Sources, source: DeepSpeedSource, named: Setting | None) -> DeepSpeedSource:
    """The file that a launch script writes in one of several branches: what they say differently is not known."""
    from lintfit.documents.here_documents import find_all_here, read_here
    from lintfit.sources.deepspeed import read_deepspeed

    launch = sources.launch
    if launch is None or named is None or not isinstance(named.value, str):
        return source
    settings = dict(source.settings)
    for index in find_all_here(launch.document, named.value, launch.place.span.start)[1:]:
        other = read_deepspeed(read_here(launch.document, index, Kind.JSON)).settings
        for name in settings.keys() | other.keys():
            mine, its = settings.get(name), other.get(name)
            if (mine.value if mine is not None else None) != (its.value if its is not None else None):
                place = (mine or its or named).provenance
                settings[name] = Setting(name, UNKNOWN, place)
    return replace(source, settings=settings)


def _named_here(files: RunFiles, named: Setting | None, kind: Kind) -> DataDocument | None:
    value = named.value if named is not None else None
    found = files.here(value, kind) if isinstance(value, str) and value else None
    return found if found is not None and found.root is not None else None


def _read_by_script(named: Setting | None) -> DataDocument | None:
    """The file that a script reads itself and hands on as it is (``config=json.load(open(path))``)."""
    place = named.provenance.place if named is not None else None
    document = place.document if place is not None else None
    if named is None or not isinstance(document, DataDocument) or document.root is None:
        return None
    whole = isinstance(named.value, dict) and document.root.plain() == named.value
    return document if whole and detect.dialect(document) == "deepspeed" else None


def _config_paths(files: RunFiles, dialect: str, named: Setting | None) -> list[Path]:
    """Where a config of a dialect may be: the file that is named, else partners, else the origin itself."""
    if named is not None and isinstance(named.value, str) and named.value:
        found = files.locator.find(named.value)
        here = files.here(named.value, _KINDS[dialect]) if found is None else None
        if here is not None:
            _unparsed(files, dialect, named, here)
        elif found is None:
            files.lacking.lack(_CALLED[dialect], named.value, named.provenance.place)
        return [found] if found is not None else []
    own = [files.origin.path] if files.origin.kind == "config" else []
    beside = [files.origin.beside] if files.origin.beside is not None else []
    return [path for path in (*files.origin.partners, *beside, *own) if files.dialect(path) == dialect]


def _unparsed(files: RunFiles, dialect: str, named: Setting | None, document: Document | None) -> None:
    """Note a config that a run names and that cannot be parsed."""
    if named is not None and document is not None:
        files.lacking.cannot_parse(_CALLED[dialect], document)
