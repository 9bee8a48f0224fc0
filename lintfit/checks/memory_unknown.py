from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.runs import anchor, place_of
from lintfit.checks.helpers.wording import gib, of_gib
from lintfit.memory.result import Verdict
from lintfit.memory.spec import Spec
from lintfit.run.model import Run
from lintfit.run.stopping import lacks_a_key
from lintfit.settings.model import UNKNOWN, in_words
from lintfit.settings.registry import LOWER_BOUNDS
from lintfit.verdict.judge import decided_by_images

_NAMED = 4
"""How many settings a message names."""

_STARTED = (
    "check the script that starts it, or name the file of its arguments beside it (lintfit check train.py args.json); "
    "a [[run]] table lists what belongs together"
)


def check_run(context: RunContext) -> Iterator[Report]:
    run = context.run
    if run.origin.kind == "config":
        return
    if run.broken or any(each.certainty != "open" for each in run.missing):
        return  # syntax-error, invalid-json and missing-file say it
    if any(each.decides for each in run.refused):
        return  # refused-flag says it
    if context.verdict is not Verdict.UNKNOWN or not _trains(run):
        return
    if run.unknown:
        known = f"the memory of this run is not known without {' and '.join(run.unknown)}{_by_count(context)}"
        unseen = run.launch is None and not run.origin.partners and run.script is not None and run.script.walk.parses
        yield Report(anchor(run), known, help=_STARTED if unseen else "")
    elif (stop := lacks_a_key(run)) is not None:
        yield Report(stop.place, f"the memory of this run is not known without {stop.reason}", help=stop.help)
    elif run.doubtful:
        yield _doubtful(run)
    elif run.unseen_flags:
        named = in_words(run.unseen_flags[:_NAMED])
        more = ", …" if len(run.unseen_flags) > _NAMED else ""
        yield _assumed(run, named + more)
    elif run.spec is not None and (open_ways := _undecided(run.spec)) and not _evaluates_without_end(run.spec):
        place = place_of(run, "uncounted", "frozen_models", "own_evaluation")
        yield Report(place, f"the memory of this run is not known; not modelled: {open_ways[0]}")
    elif context.by_version:
        what = f"whether this run fits depends on a version that nothing states: {' | '.join(context.by_version)}"
        yield Report(
            anchor(run), what, help="a lock file, a pin in the requirements or [versions] in lintfit.toml says it"
        )
    elif run.spec is not None and context.estimate is not None and not _evaluates_without_end(run.spec):
        images = decided_by_images(run.spec, context.scaling)
        yield (_images if images else _length)(run, run.spec, context)


def _undecided(spec: Spec) -> tuple[str, ...]:
    from lintfit.memory.verdict.undecided import undecided

    return undecided(spec)


def _doubtful(run: Run) -> Report:
    """Settings that only running the script would tell, with the reason and at the place of the first that has one."""
    named = in_words(run.doubtful)
    message = f"the memory of this run is not known: {named} is not statically known"
    unknown = [name for name in run.doubtful if name in run.settings and run.settings[name].value is UNKNOWN]
    if "method" in run.doubtful and "partly_frozen" in run.settings:
        unknown.append("partly_frozen")
    if "forward_pass" in run.doubtful:
        unknown.append("forward_pass")
    said = [name for name in unknown if run.settings[name].provenance.detail]
    why = f"; {run.settings[said[0]].provenance.detail}" if said else ""
    return Report(place_of(run, *said, *run.doubtful), message + why)


def _evaluates_without_end(spec: Spec) -> bool:
    """Whether it is the evaluation's logits that nobody can count, which eval-logits-accumulated says."""
    if spec.evaluation is None:
        return False
    from lintfit.memory.evaluation.kept import open_ended

    return open_ended(spec)


def _by_count(context: RunContext) -> str:
    """On how many GPUs the run fits, where their number alone is missing."""
    scaling = context.scaling
    if scaling is None or context.run.doubtful or context.run.spec is None or "seq_len" not in context.run.spec.stated:
        return ""
    if scaling.fewest is None:
        count, result = next((pair for pair in scaling.by_count if pair[1].host_is_short), scaling.least)
        if result.host_is_short:
            return f"; {count} take {of_gib(result.host.peak, result.host_capacity_bytes or 0)} of the host's memory"
        return f"; even on {count} it takes {of_gib(result.peak.likely, result.capacity_bytes or 0)} each"
    count, result = scaling.fewest
    return f"; it fits on {count} or more ({of_gib(result.peak.likely, result.capacity_bytes or 0)} each)"


def _assumed(run: Run, named: str) -> Report:
    """What decides is only assumed: a field of the command line has its default, or a name says what a number is."""
    if run.launch is not None:
        return Report(
            anchor(run),
            "the memory of this run is not known: accelerate launch takes its engine from the file that "
            "accelerate config wrote on the machine",
            help="name that file (--config_file), or say the engine here (--multi_gpu, --use_deepspeed, --use_fsdp)",
        )
    if run.script is not None and not run.script.walk.parses:
        return Report(
            anchor(run),
            f"the memory of this run is not known: {named} can only be assumed from the script",
            help="say it with a flag or in lintfit.toml; lintfit estimate lists what is assumed",
        )
    return Report(
        anchor(run),
        f"the memory of this run is not known: its command line decides {named}, and no launch line is known",
        help=_STARTED,
    )


def _length(run: Run, spec: Spec, context: RunContext) -> Report:
    """Everything is known but how long the sequences are, and that decides."""
    short = context.what_if(seq_len=LOWER_BOUNDS["seq_len"])
    assert short is not None and context.estimate is not None
    return Report(
        anchor(run),
        "whether this run fits depends on the length of its sequences, which nothing states: "
        f"{gib(context.estimate.peak.likely)} at {spec.seq_len} tokens, {gib(short.peak.likely)} at "
        f"{LOWER_BOUNDS['seq_len']}, of {gib(spec.capacity_bytes or 0)}",
        help="give it (--seq-len, or seq-len in lintfit.toml), or cut samples where they are tokenized (max_length)",
    )


def _images(run: Run, spec: Spec, context: RunContext) -> Report:
    """Everything is known but what the images are, and that decides."""
    assert context.estimate is not None
    peak = context.estimate.peak
    return Report(
        anchor(run),
        "whether this run fits depends on its images, of which nothing states how many and how large they are: "
        f"{gib(peak.likely)} for text alone, up to {gib(peak.high)} with one as large as can be in every "
        f"sequence, of {gib(spec.capacity_bytes or 0)}",
        help="bound them in the processor (max_pixels); --images says how many a sample has",
    )


def _trains(run: Run) -> bool:
    if run.recipe is not None or (run.launch is not None and run.launch.action is not None):
        return True
    return run.script is not None and run.script.facts.trains
