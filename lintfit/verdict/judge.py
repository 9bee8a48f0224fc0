"""From a run to its verdict: the estimate, and what of it may be said with what is known."""

from __future__ import annotations

from collections.abc import Sequence

from lintfit.frozen import replace
from lintfit.memory import estimate
from lintfit.memory.result import Estimate, Range, Verdict
from lintfit.memory.spec import Spec
from lintfit.run.model import Run
from lintfit.run.stopping import asks_for_two_engines, evaluates_nothing, lacks_a_key
from lintfit.settings.registry import LOWER_BOUNDS
from lintfit.settings.uncounted import BATCH_SPLIT, FEWER_LAYERS, OWN_PARTS, SPREADS
from lintfit.verdict.at_most import AtMost, at_most
from lintfit.verdict.beyond import beyond
from lintfit.verdict.capped import STEP, fits_up_to, is_cap, with_shorter
from lintfit.verdict.found_batch import with_found_batch
from lintfit.verdict.model import Judged
from lintfit.verdict.reasons import HOST, IMAGES, of_length, why_unknown
from lintfit.verdict.scaling import Scaling, scaling, shown
from lintfit.verdict.versions import over_versions

SHORT: int = LOWER_BOUNDS["seq_len"]
"""Tokens of a sequence, or of a prompt, that is as short as those of public scripts: a run that does not fit even with
these does not fit."""


COMPILED = "the model as it is, not compiled (torch.compile fuses operations, and as a rule keeps less)"


def judge(run: Run) -> Judged:
    """The run with its estimate and verdict, over all versions of its libraries that may be installed."""
    judged = _judge(with_found_batch(run))
    if judged.estimate is None or run.doubtful or run.unseen_flags:
        return judged  # it is open what the run is, whatever the version
    return over_versions(judged, [(older, _judge(with_found_batch(older.run))) for older in run.older()])


def _judge(run: Run) -> Judged:
    """The run on one version of each library. What is only known at best cannot be said to fit.

    The estimate's verdict is the GPU's; the run's is that of the GPU and the host. Where nobody states the number
    of GPUs, the verdict is one that holds for every number.
    """
    if run.spec is None:
        return _by_config(run) or Judged(run, unknown=why_unknown(run, None))
    bound = _by_bounds(run) or _by_machine(run)
    if bound is not None:
        return bound
    scaled = scaling(run.spec) if run.count_open and run.spec.capacity_bytes is not None else None
    spec, result = (run.spec, estimate(run.spec)) if scaled is None else shown(run.spec, scaled)
    run = replace(run, spec=spec)
    verdict = result.verdict if scaled is None else scaled.verdict
    decided_by: list[str] = []
    capped: int | None = None
    if verdict is Verdict.DOES_NOT_FIT and scaled is None and is_cap(run):
        shorter = with_shorter(run, spec, result)
        if shorter is not None:
            (result, capped), verdict = shorter, shorter[0].verdict
    more = beyond(run, spec, result) if scaled is None and verdict is not Verdict.DOES_NOT_FIT else None
    if more is not None and more.estimate.verdict is Verdict.DOES_NOT_FIT:
        spec, verdict = more.spec, more.estimate.verdict
        result = replace(more.estimate, assumptions=(more.reason, *more.estimate.assumptions))
    elif more is not None:
        decided_by.append(more.reason)
        verdict, more = Verdict.UNKNOWN, None
    if run.doubtful:
        result = _at_best(run, result)
        if verdict is not Verdict.DOES_NOT_FIT:
            verdict = Verdict.UNKNOWN
    if verdict in (Verdict.DOES_NOT_FIT, Verdict.TIGHT) and _decided_by_length(spec, verdict, scaled):
        verdict = Verdict.UNKNOWN
        decided_by.append(of_length(None if scaled is not None or run.doubtful else _fitting(spec)))
    if verdict is Verdict.TIGHT and decided_by_images(spec, scaled):
        verdict = Verdict.UNKNOWN
        decided_by.append(IMAGES)
    if any(line in SPREADS for line in spec.uncounted):
        verdict, more = Verdict.UNKNOWN, None  # several GPUs share what one has not room for
    if FEWER_LAYERS in spec.uncounted:
        verdict, more = Verdict.UNKNOWN, None
    if BATCH_SPLIT in spec.uncounted and _may_be_split(spec):
        verdict, more = Verdict.UNKNOWN, None
    if run.unseen_flags:
        verdict = Verdict.UNKNOWN
    if (
        verdict in (Verdict.FITS, Verdict.TIGHT)
        and (stop := evaluates_nothing(run) or asks_for_two_engines(run)) is not None
    ):
        verdict = Verdict.UNKNOWN
        decided_by.append(f"{stop.reason} ({stop.help})")
    if verdict is not Verdict.UNKNOWN and (stop := lacks_a_key(run)) is not None:
        verdict, more = Verdict.UNKNOWN, None
        decided_by.append(f"{stop.reason} ({stop.help})")
    if run.all_gpus is not None:
        result = replace(result, assumptions=(run.all_gpus, *result.assumptions))
    if run.joined is not None:
        result = replace(result, assumptions=(run.joined, *result.assumptions))
    given = run.launch.document.given if run.launch is not None else None
    if given is not None:
        result = replace(result, assumptions=(f"it is started as {given.where} does", *result.assumptions))
    if run.usual_command is not None:
        started = f"it is started with `{run.usual_command}`"
        result = replace(result, assumptions=(started, *result.assumptions))
    if run.value("torch_compile") is True:
        result = replace(result, assumptions=(*result.assumptions, COMPILED))
    result = replace(result, verdict=verdict)
    longest = fits_up_to(spec) if verdict is Verdict.FITS and scaled is None else None
    if longest is not None:
        line = f"sequences of no more than {longest} tokens (no length is stated; longer ones may not fit)"
        result = replace(result, assumptions=(line, *result.assumptions))
    if verdict in (Verdict.FITS, Verdict.TIGHT):
        verdict = _with_host(run, verdict, [result] if scaled is None else [each for _, each in scaled.by_count])
        decided_by += [HOST] if verdict is Verdict.UNKNOWN else []
    unknown: tuple[str, ...] = ()
    if verdict is Verdict.UNKNOWN:
        result = replace(result, verdict=verdict)
        unknown = why_unknown(run, result, tuple(decided_by))
    longest = longest if verdict is Verdict.FITS else capped if verdict is Verdict.TIGHT else None
    decisive = more if verdict is Verdict.DOES_NOT_FIT else None
    return Judged(run, result, verdict, longest=longest, scaling=scaled, unknown=unknown, beyond=decisive)


def _by_bounds(run: Run) -> Judged | None:
    """The verdict of a run that fits whatever is open of it: with what takes no less; None for every other.

    Where nobody has counted what is open, it may fit tightly, too, with the likely peak of what takes no less; what
    somebody could state stays unknown then, and so does a model of which several GPUs have a part each.
    """
    bounds = at_most(run)
    spread = run.spec is not None and any(line in (*SPREADS, FEWER_LAYERS) for line in run.spec.uncounted)
    strict = spread or any(each.can_be_told for each in bounds)
    enough = {Verdict.FITS} if strict else {Verdict.FITS, Verdict.TIGHT}
    found = []
    for each in bounds:
        judged = _judge(each.run)
        if judged.verdict not in enough or not _is_likely(each, judged):
            return None
        found.append((each, judged))
    if not found:
        return None
    bound, judged = max(found, key=lambda each: each[1].peak)
    result = judged.estimate
    assert result is not None and run.spec is not None
    low = min(result.peak.low, estimate(run.spec).peak.low, result.peak.likely + bound.extra)
    peak = Range(low, result.peak.likely + bound.extra, result.peak.high + bound.extra)
    notes = (*bound.notes, *result.assumptions)
    verdict = Verdict.TIGHT if any(other.verdict is Verdict.TIGHT for _, other in found) else Verdict.FITS
    result = replace(result, peak=peak, capacity_bytes=run.spec.capacity_bytes, verdict=verdict, assumptions=notes)
    own = OWN_PARTS in run.spec.uncounted  # what is trained stays open
    return replace(judged, run=run if own else judged.run, estimate=result, verdict=verdict)


def _by_machine(run: Run) -> Judged | None:
    """The verdict of a run of which only the machine's own file is open, where it is one whatever that says."""
    if run.unseen_flags != ("engine",):
        return None
    from lintfit.verdict.by_machine import by_machine

    return by_machine(run, _judge)


def _by_config(run: Run) -> Judged | None:
    """The verdict of a run of which only a config is missing, where it is one whatever that says."""
    if run.but_for_config is None:
        return None
    from lintfit.verdict.by_config import by_config

    return by_config(run, _judge)


def _may_be_split(spec: Spec) -> bool:
    """Whether a part of the batch may fit: what a GPU takes is then decided by how many GPUs the process sees."""
    return estimate(replace(spec, micro_batch_size=1)).verdict is not Verdict.DOES_NOT_FIT


def _is_likely(bound: AtMost, judged: Judged) -> bool:
    """Whether the likely peak of what takes no less is within the GPU."""
    capacity = bound.run.spec.capacity_bytes if bound.run.spec is not None else None
    return judged.estimate is not None and capacity is not None and judged.estimate.peak.likely <= capacity


def _with_host(run: Run, verdict: Verdict, results: Sequence[Estimate]) -> Verdict:
    """The verdict with the memory of the host, for every number of GPUs; a guessed offload counts for nothing."""
    if {"offload_optimizer", "offload_param"} & set(run.doubtful):
        return verdict
    short = [each.host_is_short for each in results]
    if all(short):
        return Verdict.DOES_NOT_FIT
    if any(short):
        return Verdict.UNKNOWN
    return Verdict.TIGHT if any(each.host_is_tight for each in results) else verdict


def _decided_by_length(spec: Spec, verdict: Verdict, scaled: Scaling | None) -> bool:
    """Whether nobody states how long the sequences are, and short ones would do better: then only they decide."""
    least = SHORT + (spec.generation.completion_len if spec.generation is not None else 0)
    if "seq_len" in spec.stated or spec.seq_len <= least:
        return False
    short = replace(spec, seq_len=least)
    return (estimate(short) if scaled is None else scaling(short)).verdict is not verdict


def _fitting(spec: Spec) -> int | None:
    """Tokens of the longest sequence with which a run fits that does not at the assumed one; None where none does."""
    short = estimate(replace(spec, seq_len=SHORT))
    if spec.generation is not None or short.not_modelled or short.verdict is not Verdict.FITS:
        return None
    fitting, over = SHORT, spec.seq_len
    while over - fitting > STEP:
        middle = (fitting + over) // 2 // STEP * STEP
        fits = estimate(replace(spec, seq_len=middle)).verdict is Verdict.FITS
        fitting, over = (middle, over) if fits else (fitting, middle)
    return fitting


def decided_by_images(spec: Spec, scaled: Scaling | None) -> bool:
    """Whether nobody states the images of a vision-language model, and text alone would fit: then only they decide."""
    if spec.facts.vision is None or spec.images is not None:
        return False
    text = replace(spec, images=0)
    return (estimate(text) if scaled is None else scaling(text)).verdict is Verdict.FITS


def _at_best(run: Run, result: Estimate) -> Estimate:
    lines = tuple(f"{name} is not known; taken is what needs least memory" for name in run.doubtful)
    return replace(result, assumptions=(*result.assumptions, *lines))
