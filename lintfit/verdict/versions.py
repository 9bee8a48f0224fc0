"""A run's verdict over the versions of the libraries that may be installed: what each of them gives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from lintfit.frozen import frozen, replace
from lintfit.memory.result import Estimate, Range, Verdict
from lintfit.memory.spec import GIB, Spec
from lintfit.run.model import OlderRun, Run
from lintfit.run.versions import in_words
from lintfit.settings.model import spoken
from lintfit.settings.values import Fsdp
from lintfit.verdict.model import Judged
from lintfit.versions import Versions

WORTH = 0.005
"""Share of a peak by which versions must differ to be told of."""

_STATE = "state it with --versions"

_DECIDED = {
    "weights_dtype": "dtype of a bare from_pretrained",
    "quantization": "quantization where nothing states it",
    "mixed_precision": "mixed precision where nothing states it",
    "gradient_checkpointing": "gradient checkpointing where nothing states it",
    "fsdp": "FSDP where nothing states its version",
    "use_reentrant": "use_reentrant where nothing states it",
    "loss": "how the trainer computes the loss",
    "optimizer": "the Trainer's own optimizer",
    "seq_len": "tokens of a sequence where nothing states them",
}
"""What versions may decide, by the spec's field; the first of several is told."""
_BY_TRL = "dtype of a model given by name"


@frozen(eq=False)
class _Older:
    """The run where a library is older, with what comes out then."""

    of: OlderRun
    judged: Judged
    estimate: Estimate


def over_versions(judged: Judged, older: Sequence[tuple[OlderRun, Judged]]) -> Judged:
    """The verdict that holds for every version, with a range that covers them all.

    ``judged`` is the run on the newest versions. Where a version gives another verdict than the newest, it is unknown,
    but for fitting and fitting tightly.
    """
    if judged.estimate is None:
        return judged
    others = [_Older(of, found, found.estimate) for of, found in older if found.estimate is not None]
    differing = [other for other in others if _differs(judged, other)]
    result, verdict, unknown = judged.estimate, judged.verdict, judged.unknown
    result = replace(result, peak=_span([result, *(each.estimate for each in others)]))
    deciding = [other for other in others if other.judged.verdict is not verdict]
    if deciding and verdict is not Verdict.UNKNOWN:
        verdict = _together([verdict, *(other.judged.verdict for other in deciding)])
        result = replace(result, verdict=verdict)
        if verdict is Verdict.UNKNOWN:
            unknown = tuple(dict.fromkeys(_line(judged, other) for other in _one_a_library(judged, deciding)))
    lines = tuple(_assumed(judged, differing, unknown))
    if deciding:
        result = replace(result, assumptions=(*lines, *result.assumptions))
    else:
        result = replace(result, assumptions=(*result.assumptions, *lines))
    longest = judged.longest if verdict is Verdict.FITS else None
    return replace(judged, estimate=result, verdict=verdict, unknown=unknown, longest=longest)


def _together(verdicts: Sequence[Verdict]) -> Verdict:
    return Verdict.TIGHT if set(verdicts) <= {Verdict.FITS, Verdict.TIGHT} else Verdict.UNKNOWN


def _span(results: Sequence[Estimate]) -> Range:
    """The range of all versions around the figure of the newest, which comes first."""
    peaks = [result.peak for result in results]
    return Range(min(peak.low for peak in peaks), peaks[0].likely, max(peak.high for peak in peaks))


def _differs(judged: Judged, other: _Older) -> bool:
    return abs(_apart(judged, other)) > WORTH or other.judged.verdict is not judged.verdict


def _apart(judged: Judged, other: _Older) -> float:
    """By how much of the peak an older version needs more."""
    assert judged.estimate is not None
    likely = judged.estimate.peak.likely
    return (other.estimate.peak.likely - likely) / max(likely, 1)


def _one_a_library(judged: Judged, others: Sequence[_Older]) -> list[_Older]:
    """Of each library the version that makes most of a difference."""
    found: dict[str, _Older] = {}
    for other in others:
        known = found.get(other.of.library)
        if known is None or abs(_apart(judged, other)) > abs(_apart(judged, known)):
            found[other.of.library] = other
    return list(found.values())


def _assumed(judged: Judged, differing: Sequence[_Older], unknown: Sequence[str]) -> Iterator[str]:
    """One line at most: what the versions decide, else which they are."""
    told = [line for other in _one_a_library(judged, differing) if (line := _line(judged, other)) not in unknown]
    versions = judged.run.versions
    known = in_words(versions) if isinstance(versions, Versions) else ""
    if told:
        yield " | ".join(told)
    elif known and not unknown:
        yield f"versions: {known}"


def _line(judged: Judged, other: _Older) -> str:
    """What a version decides, and what the run needs on either side of it."""
    assert judged.estimate is not None
    library, bound = other.of.library, other.of.bound
    newer, older = f"in {library} {bound}", f"in {int(bound) - 1}.x" if bound.isdigit() else "before"
    if not bound.isdigit():
        newer += " and later"
    sizes = _sizes(judged.estimate, other.estimate)
    found = _decided(judged.run, other.of.run)
    if found is None:
        return f"memory {newer} ({sizes[0]}) and {older} ({sizes[1]}); {_STATE}"
    what, now, then = found
    return f"{what}: {now} {newer} ({sizes[0]}), {then} {older} ({sizes[1]}); {_STATE}"


def _sizes(newer: Estimate, older: Estimate) -> tuple[str, str]:
    """What the run needs of a GPU; of the host where that is what differs."""
    if newer.peak.likely == older.peak.likely and newer.host.peak != older.host.peak:
        return f"{_gib(newer.host.peak)} of the host", f"{_gib(older.host.peak)} of the host"
    return _gib(newer.peak.likely), _gib(older.peak.likely)


def _gib(size: int) -> str:
    found = size / GIB
    return f"{found:.0f} GiB" if found >= 10 else f"{found:.1f} GiB"


def _decided(run: Run, older: Run) -> tuple[str, str, str] | None:
    """What an older version decides otherwise, with both values; None where it is nothing that files could state."""
    assert run.spec is not None and older.spec is not None
    for name, what in _DECIDED.items():
        now, then = _value(run.spec, name), _value(older.spec, name)
        if now == then:
            continue
        setting = run.settings.get(name)
        if name == "weights_dtype" and setting is not None and setting.provenance.detail.startswith("TRL"):
            what = _BY_TRL
        return what, _spoken(now), _spoken(then)
    return None


def _value(spec: Spec, name: str) -> Any:
    return getattr(spec, name)


def _spoken(value: Any) -> str:
    return f"FSDP {value.version}" if isinstance(value, Fsdp) else spoken(value)
