"""How messages write sizes, counts and keys."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lintfit.catalog.facts import Gpu
from lintfit.memory.result import Estimate
from lintfit.memory.spec import GIB
from lintfit.settings.model import Place


def gib(size: int | float) -> str:
    """Bytes as ``13.0 GiB``; a tenth is as fine as any estimate is."""
    return f"{size / GIB:,.1f} GiB"


def small(size: int | float) -> str:
    """Bytes of what there are many of: ``2.3 GiB``, ``98 MiB``, ``4 KiB``."""
    if size >= GIB:
        return gib(size)
    kib = size / 1024
    return f"{kib / 1024:,.0f} MiB" if kib >= 1024 else f"{kib:,.0f} KiB"


def rough(size: int | float) -> str:
    """Bytes that hang on the lengths of samples, as fine as those are known: ``28 GiB``, ``2.4 GiB``."""
    return f"{size / GIB:,.0f} GiB" if size >= 10 * GIB else gib(size)


def rough_of(size: int | float, capacity: int | float) -> str:
    """The same of a capacity: ``28 of 23.7 GiB``."""
    return f"{rough(size).removesuffix(' GiB')} of {gib(capacity)}"


def of_gib(size: int | float, capacity: int | float) -> str:
    """Bytes of a capacity: ``27.9 of 23.7 GiB``; finer where a tenth does not tell which is more."""
    for digits in (1, 2):
        found, most = f"{size / GIB:,.{digits}f}", f"{capacity / GIB:,.{digits}f}"
        if found != most or size == capacity:
            break
    return f"{found} of {most} GiB"


def billions(parameters: int) -> str:
    """A parameter count as ``7.0 B`` or ``494 M``."""
    return f"{parameters / 1e9:.1f} B" if parameters >= 10**9 else f"{parameters / 1e6:.0f} M"


def listed(names: Iterable[str], conjunction: str = "and") -> str:
    """``"a"``, ``"a" and "b"``, ``"a", "b" and "c"``."""
    return united([f'"{name}"' for name in names], conjunction)


def united(words: Sequence[str], conjunction: str = "and") -> str:
    """``1``, ``1 and 2``, ``1, 2 and 3``."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {conjunction} {words[-1]}"


def an(noun: str) -> str:
    """A noun with its article: ``an AssertionError``, ``a ValueError``."""
    return f"{'an' if noun[:1] in 'AEIOU' else 'a'} {noun}"


def plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def peak(estimate: Estimate) -> str:
    """A peak against its GPU: ``27.9 of 23.7 GiB``, or the bare size where the GPU is unknown."""
    likely = estimate.peak.likely
    return of_gib(likely, estimate.capacity_bytes) if estimate.capacity_bytes is not None else gib(likely)


def capability(gpu: Gpu) -> str:
    """``7.5``; where nobody states it, what a GPU without bf16 has."""
    return ".".join(map(str, gpu.compute_capability)) if gpu.compute_capability else "below 8.0"


def spot(place: Place) -> str:
    """A second place in a message: file name and line (``run.sh:12``)."""
    line = place.document.position(place.span.start).line
    return f"{place.document.path.name}:{line}"
