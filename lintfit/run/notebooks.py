"""What a notebook says of its run beside its code: the versions that it installs, the machine it is made for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from lintfit.documents.files import ReadError, is_notebook
from lintfit.documents.model import Kind
from lintfit.documents.patterns import lazy_pattern
from lintfit.documents.workspace import Workspace
from lintfit.run.requirements import Asked, asked_in
from lintfit.settings.model import Place, Provenance, Setting

_INSTALLERS = lazy_pattern(r"(?:.*/)?(?:pip|pip3|uv|conda|mamba|poetry)|(?:.*/)?python[\d.]*")

_COLAB = "T4"
"""What Colab gives a notebook that asks for a GPU and no kind of it: its free one, a T4 since 2022."""
_COLAB_GPUS = {
    "T4": "T4",
    "A100": "A100-40GB",
    "V100": "V100-16GB",
    "L4": "L4",
    "H100": "H100-80GB",
    "G4": "RTX PRO 6000",
}
"""Colab's ``gpuType`` as GPUs are called here. Its A100 has 40 GB, its V100 16."""
_KAGGLE_GPUS = {"nvidiaTeslaT4": ("T4", 2), "nvidiaTeslaP100": ("P100", 1), "gpu": ("P100", 1)}
"""Kaggle's ``accelerator``: "GPU T4 x2" and "GPU P100" in its settings, of which the bare ``gpu`` is the older."""


def asked_by(path: Path, workspace: Workspace) -> Mapping[str, Asked]:
    """The versions that a notebook's own ``!pip install`` lines ask for, the last of each library; else nothing."""
    found: dict[str, Asked] = {}
    for text, where in _installs(path, workspace):
        for name, version in asked_in(text).items():
            found[name] = (version, where)
    return found


def _installs(path: Path, workspace: Workspace) -> Iterator[tuple[str, str]]:
    if not is_notebook(path):
        return
    from lintfit.documents.shell_document import ShellDocument

    try:
        document = workspace.read(path, Kind.SHELL)
    except ReadError:
        return
    for command in document.commands if isinstance(document, ShellDocument) else ():
        words = [word.value for word in command.words if word.value is not None]
        if words and _INSTALLERS.fullmatch(words[0]) and "install" in words[1:5]:
            yield "\n".join(words), str(Place(document, command.span))


def machine_of(path: Path, workspace: Workspace) -> Mapping[str, Setting]:
    """The GPUs that the metadata of a notebook on Colab or Kaggle asks for: an assumption, for it may run elsewhere."""
    if not is_notebook(path):
        return {}
    from lintfit.documents.notebook import NotNotebook, read_notebook

    try:
        metadata = read_notebook(workspace.file(path).text).metadata
    except (ReadError, NotNotebook):
        return {}
    found = _kaggle(metadata) or _colab(metadata)
    if found is None:
        return {}
    kind, count, whose = found
    why = Provenance("assumed", f"what the notebook's metadata asks {whose} for")
    return {"gpu": Setting("gpu", kind, why), "gpus": Setting("gpus", count, why)}


def _kaggle(metadata: Mapping[str, Any]) -> tuple[str, int, str] | None:
    own = metadata.get("kaggle")
    stated = own.get("accelerator") if isinstance(own, Mapping) else None
    known = _KAGGLE_GPUS.get(stated) if isinstance(stated, str) else None
    return (*known, "Kaggle") if known is not None else None


def _colab(metadata: Mapping[str, Any]) -> tuple[str, int, str] | None:
    if metadata.get("accelerator") != "GPU":
        return None
    own = metadata.get("colab")
    stated = own.get("gpuType", _COLAB) if isinstance(own, Mapping) else None
    kind = _COLAB_GPUS.get(stated) if isinstance(stated, str) else None
    return (kind, 1, "Colab") if kind is not None else None
