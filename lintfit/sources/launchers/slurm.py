"""What a Slurm job's options say of nodes, tasks and GPUs (https://slurm.schedmd.com/sbatch.html)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from lintfit.documents.model import Document, Edit, FileEdit, Span
from lintfit.documents.numerals import whole
from lintfit.documents.patterns import lazy_pattern
from lintfit.documents.placeholders import is_to_fill_in
from lintfit.frozen import frozen
from lintfit.settings.model import UNKNOWN, Provenance, Setting, Special

Count = int | Special


@frozen(eq=False)
class Stated:
    """A count and where it came from."""

    value: Count
    provenance: Provenance


@frozen(eq=False)
class Slurm:
    """What ``#SBATCH`` lines and ``srun``'s flags say; None where they do not. ``gpus`` are those of one node."""

    nodes: Stated | None = None
    tasks: Stated | None = None
    tasks_per_node: Stated | None = None
    gpus: Stated | None = None
    gpu: Setting | None = None

    def variable(self, name: str) -> Stated | None:
        """What SLURM sets an environment variable to, as far as the job's own options decide it."""
        match name:
            case "SLURM_NNODES" | "SLURM_JOB_NUM_NODES":
                return self.nodes
            case "SLURM_NTASKS" | "SLURM_NPROCS":
                return self.tasks
            case "SLURM_NTASKS_PER_NODE":
                return self.tasks_per_node
            case "SLURM_GPUS_ON_NODE" | "SLURM_GPUS_PER_NODE":
                return self.gpus
        return None


def read_slurm(document: Document, options: Mapping[str, tuple[str | None, Span]]) -> Slurm:
    """What a batch job's options say. ``options`` are their values by long name (with ``-``), None where unknown."""

    def stated(name: str) -> Stated | None:
        found = options.get(name)
        if found is None:
            return None
        text, span = found
        match = re.match(r"\d+", text or "")
        number = whole(match[0]) if match else None
        return Stated(number if number is not None else UNKNOWN, Provenance.at(document, span))

    nodes = stated("nodes")
    gpus: Stated | None = None
    gpu: Setting | None = None
    for name in ("gpus-per-node", "gres", "gpus", "gpus-per-task"):
        found = options.get(name)
        if found is None or found[0] is None:
            continue
        kind, count = split_gres(found[0] if name != "gres" else _gpus_only(found[0]))
        provenance = Provenance.at(document, found[1])
        if kind is not None and gpu is None:
            gpu = Setting("gpu", kind, provenance)
        if count is not None and gpus is None:
            gpus = _per_node_of(name, Stated(count, provenance), nodes, stated("ntasks-per-node"))
    if (found := options.get("instance")) is not None and found[0]:
        gpus, gpu = _on_instance(document, found[0], found[1], gpus, gpu)
    if gpu is None and (found := options.get("constraint")) is not None and found[0]:
        gpu = _constrained(document, found[0], found[1])
    return Slurm(nodes, stated("ntasks"), stated("ntasks-per-node"), gpus, gpu)


def _on_instance(
    document: Document, name: str, span: Span, gpus: Stated | None, gpu: Setting | None
) -> tuple[Stated | None, Setting | None]:
    """The GPUs of a cloud's type of machine, where nothing else is asked for."""
    from lintfit.catalog.gpus import instance

    known = instance(name.removeprefix("ml."))
    if known is None:
        return gpus, gpu
    provenance = Provenance.at(document, span)
    return gpus or Stated(known[1], provenance), gpu or Setting("gpu", known[0].name, provenance)


def _per_node_of(name: str, count: Stated, nodes: Stated | None, tasks: Stated | None) -> Stated:
    """The GPUs of one node, from a count that is one node's, the whole job's or one task's."""
    if not isinstance(count.value, int):
        return count
    if name == "gpus" and nodes is not None:
        known = isinstance(nodes.value, int) and nodes.value > 0 and count.value % nodes.value == 0
        return Stated(
            count.value // nodes.value if known and isinstance(nodes.value, int) else UNKNOWN, count.provenance
        )
    if name == "gpus-per-task" and tasks is not None:
        return Stated(count.value * tasks.value if isinstance(tasks.value, int) else UNKNOWN, count.provenance)
    return count


def _gpus_only(text: str) -> str:
    """The items of a ``--gres`` list that are about GPUs (``gpu:a100:4``, ``gres/gpu:2``)."""
    items = (item.strip().removeprefix("gres/") for item in text.split(","))
    return ",".join(item for item in items if item.partition(":")[0] == "gpu")


def split_gres(text: str) -> tuple[str | None, int | None]:
    """GPU and count of a ``--gpus`` value or a GPU item of ``--gres``.

    ``gpu:a100:4`` and ``a100:4`` are (``a100``, 4), ``4`` is (None, 4); both are None for an empty text.
    """
    item = re.sub(r"\([^()]*\)", "", text.partition(",")[0]).strip()
    parts = [part for part in item.split(":") if part]
    if parts and parts[0] == "gpu":
        parts = parts[1:] or ["1"]
    if not parts or any(_states_nothing(part) for part in parts):
        return None, None
    asked = whole(parts[-1]) if parts[-1].isdigit() else 1
    return (None if parts[0].isdigit() else parts[0]), asked


def _states_nothing(part: str) -> bool:
    """Whether a part of an item is no name and no count: it is to be filled in, or the shell's."""
    return _NO_NAME.search(part) is not None or is_to_fill_in(part)


_NO_NAME = lazy_pattern(r"[<>{}$]")
"""What neither a name nor a count is made of: ``gpu:<number_of_gpus>``."""
_GRES_COUNT = lazy_pattern(r"(?:^|[,/\"'])gpu(?::[\w.-]*[A-Za-z_][\w.-]*)?:(?P<count>\d+)")
_PLAIN_COUNT = lazy_pattern(r"^[\"']?(?:[\w.-]*[A-Za-z_][\w.-]*:)?(?P<count>\d+)[\"']?$")


def asked_cards(document: Document, options: Iterable[tuple[str, Span]], before: int, after: int) -> list[FileEdit]:
    """The edits that make a job ask for ``after`` GPUs a node in the place of ``before``, wherever it says so."""
    edits: list[FileEdit] = []
    for name, span in options:
        found = (_GRES_COUNT if name == "--gres" else _PLAIN_COUNT).search(document.slice(span))
        if found is not None and whole(found["count"]) == before:
            place = Span(span.start + found.start("count"), span.start + found.end("count"))
            edits.append(FileEdit(document.path, Edit(place, str(after)), document))
    return edits


def _constrained(document: Document, text: str, span: Span) -> Setting | None:
    """The GPU that a node feature names (``a100_80gb``), where the catalogue knows one of that name."""
    from lintfit.catalog.gpus import lookup

    alternatives = [part for part in re.split(r"[|&\[\]()]", text) if part.strip()]
    cards = [name for name in alternatives if lookup(name) is not None]
    return Setting("gpu", cards[0], Provenance.at(document, span)) if len(cards) == 1 else None
