"""Why a run is neither sure to fit nor sure not to: what decides it, in GiB, and how to state it."""

from __future__ import annotations

from lintfit.frozen import frozen
from lintfit.memory.spec import GIB, Spec
from lintfit.memory.verdict.causes import GAPS, Cause, causes
from lintfit.settings.model import in_words
from lintfit.settings.registry import SETTINGS

_NAMED = 2
_WORTH = 0.02
"""Share of the peak from which a cause is worth a word, as an assumption is."""

_FLAGS = {"seq_len": "--seq-len", "model": "--model"}
"""Settings that a check's flags state."""


@frozen
class Spread:
    """One thing that moves a run within its range: what it is, the GiB that it decides, and how to state it."""

    what: str
    gib: float
    how: str

    def said(self) -> str:
        """``the version of trl is not stated (+25.1): --versions trl=VERSION``"""
        return f"{self.what} ({self.gib:+.1f}): {self.how}"


def spread(spec: Spec, peak: int) -> tuple[Spread, ...]:
    """The one or two things that decide most of the range around a peak of ``peak`` bytes, what can be stated first."""
    worth = [cause for cause in causes(spec) if abs(cause.bytes) >= _WORTH * peak]
    worth.sort(key=lambda cause: cause.names == (GAPS,))
    return tuple(_spread(cause) for cause in worth[:_NAMED])


def _spread(cause: Cause) -> Spread:
    size = cause.bytes / GIB
    if cause.names == (GAPS,):
        return Spread("gaps in torch's allocator", size, "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True")
    libraries = [name for name in cause.names if name not in SETTINGS]
    if libraries and len(libraries) == len(cause.names):
        stated = ",".join(f"{name}=VERSION" for name in libraries)
        return Spread(f"the version of {in_words(libraries)} is not stated", size, f"--versions {stated}")
    flags = [_FLAGS[name] for name in cause.names if name in _FLAGS]
    how = " ".join(flags) or "a script, config or launch line that says it"
    return Spread(f"{in_words(cause.names) or 'the code of the model'} not stated", size, how)
