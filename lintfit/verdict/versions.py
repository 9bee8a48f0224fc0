"""A run's verdict over the versions of the libraries that may be installed: what each of them gives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from typing import Any

from lintfit.frozen import frozen, replace
from lintfit.memory.result import Estimate, Range, Verdict
from lintfit.memory.spec import GIB, Spec
from lintfit.run.model import OlderRun, Run
from lintfit.run.versions import in_words
from lintfit.settings.model import spoken
from lintfit.settings.values import Fsdp
from lintfit.verdict.model import Judged, Spread

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
class _Step:
    """Two versions of a library that follow each other, and what comes out on either side of them."""

    library: str
    bound: str
    newer: Judged
    older: Judged
    until: str = ""
    """The version from which on it is another again; empty where that holds for all later ones."""
    since: str = ""
    """The version before which it is another again; empty where that holds for all earlier ones."""

    @property
    def sizes(self) -> tuple[Estimate, Estimate]:
        assert self.newer.estimate is not None and self.older.estimate is not None
        return self.newer.estimate, self.older.estimate

    @property
    def apart(self) -> float:
        """Share of the peak by which the two differ."""
        newer, older = (each.peak.likely for each in self.sizes)
        return abs(newer - older) / max(newer, 1)

    @property
    def decides(self) -> bool:
        return self.newer.verdict is not self.older.verdict

    @property
    def told(self) -> bool:
        return self.decides or self.apart > WORTH


def over_versions(judged: Judged, older: Sequence[tuple[OlderRun, Judged]]) -> Judged:
    """The verdict that holds for every version, with a range that covers them all.

    ``judged`` is the run on the newest versions. Where a version gives another verdict than the newest, it is unknown,
    but for fitting and fitting tightly.
    """
    if judged.estimate is None:
        return judged
    steps = list(_steps(judged, older))
    results = [judged.estimate, *(step.sizes[1] for step in steps)]
    result = replace(judged.estimate, peak=_span(results))
    verdict = judged.verdict
    if verdict is not Verdict.UNKNOWN:
        verdict = _together({verdict, *(step.older.verdict for step in steps)})
        result = replace(result, verdict=_together({result.verdict, *(each.verdict for each in results)}))
    told = _one_a_library(_bounded([step for step in steps if step.told]))
    unknown = judged.unknown
    if verdict is Verdict.UNKNOWN is not judged.verdict:
        result = replace(result, verdict=verdict)
        unknown = tuple(_line(step) for step in told if step.decides)
    else:
        line = " | ".join([*map(_line, told), *_known(judged.run)])
        changed = verdict is not judged.verdict
        lines = (line, *result.assumptions) if changed else (*result.assumptions, line)
        result = replace(result, assumptions=lines if line else result.assumptions)
    longest = judged.longest if verdict in (Verdict.FITS, judged.verdict) else None
    by_version = unknown if unknown is not judged.unknown else ()
    moved_by = tuple(_moved(step) for step in told if step.decides) if verdict is Verdict.TIGHT else ()
    return replace(
        judged,
        estimate=result,
        verdict=verdict,
        unknown=unknown,
        by_version=by_version,
        moved_by=moved_by,
        longest=longest,
    )


def _known(run: Run) -> list[str]:
    known = in_words(run.versions)
    return [f"versions: {known}"] if known else []


def _steps(judged: Judged, older: Sequence[tuple[OlderRun, Judged]]) -> Iterator[_Step]:
    """From the newest version of each library to the oldest, step by step."""
    last: dict[str, Judged] = {}
    for each, found in reversed(older):
        if found.estimate is not None:
            yield _Step(each.library, each.bound, last.get(each.library, judged), found)
            last[each.library] = found


def _together(verdicts: Set[Verdict]) -> Verdict:
    """What may be said where each of several verdicts may be the run's."""
    if len(verdicts) == 1:
        return next(iter(verdicts))
    return Verdict.TIGHT if verdicts <= {Verdict.FITS, Verdict.TIGHT} else Verdict.UNKNOWN


def _span(results: Sequence[Estimate]) -> Range:
    """The range of all versions around the figure of the newest, which comes first."""
    peaks = [result.peak for result in results]
    return Range(min(peak.low for peak in peaks), peaks[0].likely, max(peak.high for peak in peaks))


def _bounded(steps: Sequence[_Step]) -> list[_Step]:
    """The steps, which are in order, with what bounds either side: where what decides is another again."""
    found = []
    for index, step in enumerate(steps):
        name = _field(step.newer.run, step.older.run)
        newer = (each for each in reversed(steps[:index]) if _other(name, each.newer, step.newer))
        older = (each for each in steps[index + 1 :] if _other(name, each.older, step.older))
        until, since = (
            next((each.bound for each in side if each.library == step.library), "") for side in (newer, older)
        )
        found.append(replace(step, until=until, since=since))
    return found


def _other(name: str | None, one: Judged, another: Judged) -> bool:
    """Whether two versions give a field of the spec otherwise; the memory of the run where no field decides."""
    if name is None:
        return True
    return bool(_value(one.run.spec, name) != _value(another.run.spec, name))


def _one_a_library(steps: Sequence[_Step]) -> list[_Step]:
    """Of each library the step that decides, or else makes most of a difference."""
    found: dict[str, _Step] = {}
    for step in steps:
        known = found.get(step.library)
        if known is None or (step.decides, step.apart) > (known.decides, known.apart):
            found[step.library] = step
    return list(found.values())


def _line(step: _Step) -> str:
    """What a version decides, and what the run needs on either side of it."""
    newer, older = _sides(step)
    if step.decides and (open_there := step.older.unknown or step.newer.unknown):
        before = f"before {step.library} {step.bound}" if not step.bound.isdigit() else f"{older} of {step.library}"
        return f"{before if step.older.unknown else newer}: {open_there[0]}; {_STATE}"
    sizes = _sizes(*step.sizes)
    found = _decided(step.newer.run, step.older.run)
    if found is None:
        return f"memory of the run: {sizes[0]} {newer}, {sizes[1]} {older}; {_STATE}"
    what, now, then = found
    return f"{what}: {now} {newer} ({sizes[0]}), {then} {older} ({sizes[1]}); {_STATE}"


def _moved(step: _Step) -> Spread:
    """The same in a few words, with the GiB by which the highest figures differ."""
    newer, older = _sides(step)
    found = _decided(step.newer.run, step.older.run)
    what = f"{found[0]}: {found[1]} {newer}, {found[2]} {older}" if found else f"version {newer} or {older}"
    apart = step.sizes[1].peak.high - step.sizes[0].peak.high
    return Spread(what, apart / GIB, f"--versions {step.library}=VERSION")


def _sides(step: _Step) -> tuple[str, str]:
    """``in trl 0.29 and later`` and ``before``; ``in trl 0.22 until 0.29`` and ``in 0.19 until then``."""
    library, bound = step.library, step.bound
    if bound.isdigit():
        since = f" since {step.since}" if step.since else ""
        return f"in {library} {bound}" + (f" until {step.until}" if step.until else ""), f"in {int(bound) - 1}.x{since}"
    newer = f"in {library} {bound} " + (f"until {step.until}" if step.until else "and later")
    return newer, f"in {step.since} until then" if step.since else "before"


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
    name = _field(run, older)
    if name is None:
        return None
    setting = run.settings.get(name)
    by_name = name == "weights_dtype" and setting is not None and setting.provenance.detail.startswith("TRL")
    what = _BY_TRL if by_name else _DECIDED[name]
    return what, _spoken(_value(run.spec, name)), _spoken(_value(older.spec, name))


def _field(run: Run, older: Run) -> str | None:
    """The first of the spec's fields that an older version decides otherwise."""
    return next((name for name in _DECIDED if _value(run.spec, name) != _value(older.spec, name)), None)


def _value(spec: Spec | None, name: str) -> Any:
    return getattr(spec, name)


def _spoken(value: Any) -> str:
    return f"FSDP {value.version}" if isinstance(value, Fsdp) else spoken(value)
