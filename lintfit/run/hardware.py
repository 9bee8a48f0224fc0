"""The GPUs of a run, how many, on how many nodes, and the memory of a node."""

from __future__ import annotations

import re
from collections.abc import Mapping

from lintfit.catalog.config import CatalogError
from lintfit.catalog.facts import Gpu
from lintfit.documents.numerals import whole
from lintfit.documents.shell_document import ShellDocument
from lintfit.run.model import Hardware
from lintfit.run.precedence import Sources
from lintfit.run.processes import available
from lintfit.settings.kinds import LARGEST_COUNT
from lintfit.settings.model import Setting, is_count

_SLURM_UNITS = {"": 2**20, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


def find_hardware(sources: Sources, settings: Mapping[str, Setting]) -> Hardware:
    """GPU, count, nodes and memory, from the settings and lintfit's options.

    Raises CatalogError for a GPU that the user named and nobody knows, unless its memory is stated as well.
    """
    options = sources.options
    gpu = _gpu(settings, options.gpu_memory_bytes)
    capacity = options.gpu_memory_bytes or (gpu.usable_bytes if gpu is not None else None)
    gpus, nodes, there = settings.get("gpus"), settings.get("nodes"), available(sources)
    return Hardware(
        gpu=gpu,
        gpus=gpus.value if gpus is not None and is_count(gpus.value, LARGEST_COUNT) else None,
        nodes=nodes.value if nodes is not None and is_count(nodes.value, LARGEST_COUNT) else 1,
        capacity_bytes=capacity,
        host_memory_bytes=options.host_memory_bytes or _slurm_memory(sources),
        available=there.value if there is not None and _is_stated(there) and sources.what_if("gpus") is None else None,
    )


def _is_stated(there: Setting) -> bool:
    """Whether the user says how many GPUs there are; a notebook's metadata may be that of another machine."""
    return there.provenance.kind != "assumed"


def _slurm_memory(sources: Sources) -> int | None:
    return memory_of_job(sources.launch.document) if sources.launch is not None else None


def memory_of_job(document: ShellDocument) -> int | None:
    """Bytes a node that ``#SBATCH --mem`` asks for (MiB without a unit); None where it says nothing, or 0 for all."""
    stated = [d.value for d in document.directives if d.key == "--mem"]
    found = re.fullmatch(r"(\d+)([KMGT]?)B?", stated[-1], re.IGNORECASE) if stated else None
    return (whole(found[1]) or 0) * _SLURM_UNITS[found[2].upper()] or None if found else None


def _gpu(settings: Mapping[str, Setting], memory: int | None) -> Gpu | None:
    named = settings.get("gpu")
    if named is None or not isinstance(named.value, str):
        return None
    from lintfit.catalog import gpus

    found = gpus.lookup(named.value)
    if found is None and memory is None and named.provenance.kind == "option":
        close = gpus.suggest(named.value)
        meant = f" (did you mean {close!r}?)" if close else ""
        raise CatalogError(f"gpu: {named.value!r} is not known{meant}; give its memory as gpu-memory")
    return found


def missing_gpu(settings: Mapping[str, Setting]) -> str:
    """What the user has to state for a run whose GPU is not known."""
    named = settings.get("gpu")
    if named is None or not isinstance(named.value, str):
        return "the GPU (--gpu, or gpu in lintfit.toml)"
    return f'the memory of the GPU "{named.value}" (--gpu-memory, or gpu-memory in lintfit.toml)'
