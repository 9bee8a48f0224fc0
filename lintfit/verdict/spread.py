"""Why a run is neither sure to fit nor sure not to: what decides it, in GiB, and how to state it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lintfit.frozen import names, replace
from lintfit.memory import estimate
from lintfit.memory.result import Estimate, Verdict
from lintfit.memory.spec import GIB, Spec
from lintfit.settings.model import in_words
from lintfit.settings.registry import SETTINGS
from lintfit.verdict.judge import SHORT
from lintfit.verdict.model import Judged, Spread
from lintfit.verdict.reasons import LENGTH

if TYPE_CHECKING:
    from lintfit.memory.verdict.causes import Cause

_NAMED = 2
_WORTH = 0.02
"""Share of the peak from which a cause is worth a word, as an assumption is."""

_OF_SPEC = frozenset(names(Spec))
"""What a cause names that is no library; the facts of a model are no setting either."""

_FLAGS = {"seq_len": "--seq-len", "model": "--model"}
"""Settings that a check's flags state."""


def what_decides(judged: Judged) -> tuple[Spread, ...]:
    """The one or two things by which a run may have another verdict, where low and high differ in it."""
    run, result = judged.run, judged.estimate
    if run.spec is None or result is None or result.capacity_bytes is None or run.doubtful or run.unseen_flags:
        return ()
    found = [_length(run.spec, result)] if any(each.startswith(LENGTH) for each in judged.unknown) else []
    if judged.verdict is Verdict.TIGHT:
        found += [*judged.moved_by, *_on_host(result)]
    open_ways = judged.verdict is Verdict.TIGHT or (judged.verdict is Verdict.UNKNOWN and not judged.by_version)
    if open_ways and result.peak.low <= result.capacity_bytes < result.peak.high:
        named = {each.how for each in found}
        found += [each for each in spread(run.spec, result.peak.likely) if each.how not in named]
    return tuple(found[:_NAMED])


def _length(spec: Spec, result: Estimate) -> Spread:
    """What the assumed length makes beside one as short as those of public scripts."""
    short = estimate(replace(spec, seq_len=SHORT)).peak.likely
    what = f"sequences of {spec.seq_len} tokens, which is assumed, not of {SHORT}"
    return Spread(what, (result.peak.likely - short) / GIB, "--seq-len")


def _on_host(result: Estimate) -> Iterator[Spread]:
    if result.host_is_tight and not result.host_is_short:
        what = "what the processes themselves may take of the host (libraries, CUDA)"
        yield Spread(what, result.host.processes / GIB, "--host-memory, where there is more", of_host=True)


def spread(spec: Spec, peak: int) -> tuple[Spread, ...]:
    """The one or two things that decide most of the range around a peak of ``peak`` bytes, what can be stated first."""
    from lintfit.memory.verdict.causes import GAPS, causes

    worth = [cause for cause in causes(spec) if abs(cause.bytes) >= _WORTH * peak]
    worth.sort(key=lambda cause: cause.names == (GAPS,))
    return tuple(_spread(cause, cause.names == (GAPS,)) for cause in worth[:_NAMED])


def _spread(cause: Cause, of_gaps: bool) -> Spread:
    size = cause.bytes / GIB
    if of_gaps:
        return Spread("gaps in torch's allocator", size, "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True")
    libraries = [name for name in cause.names if name not in _OF_SPEC]
    if libraries and len(libraries) == len(cause.names):
        versions = ",".join(f"{name}=VERSION" for name in libraries)
        return Spread(f"the version of {in_words(libraries)} is not stated", size, f"--versions {versions}")
    flags = [_FLAGS[name] for name in cause.names if name in _FLAGS]
    how = " ".join(flags) or "a script, config or launch line that says it"
    stated = [name for name in cause.names if name in SETTINGS]
    return Spread(f"{in_words(stated) or 'the code of the model'} not stated", size, how)
