"""Why nothing that is cheaper than a plan does: only what holds for the whole space is said."""

from __future__ import annotations

from lintfit.fit.options import Candidate, Effect
from lintfit.fit.search import Fitting, Search
from lintfit.memory.result import Estimate
from lintfit.memory.spec import GIB, Spec
from lintfit.run.change import changed_spec

BY_HAND = "what comes before this one and does fit can only be carried out by hand"


def cheaper(search: Search, found: Fitting) -> str:
    """Which of all that costs less is known not to fit, once the class of a plan is looked at and all that comes before
    the plan does not.

    What was not looked at comes behind the plan for a reason that has nothing to do with its time: more changes, a
    config that has to be split in two, larger micro-batches, more tokens that are cut.
    """
    alike = "leaves the training as it is" if found.candidate.effect is Effect.SAME else "changes the training no more"
    if search.spec.gradient_checkpointing:
        alike = f"goes on to recompute activations, {alike}"
    faster = [ranked for ranked in search.behind(found) if ranked.quoted < found.quoted]
    if not faster:
        return f"every one that {alike} and costs less time among them"
    if all(ranked.candidate.count > found.candidate.count for ranked in faster):
        return f"every one that {alike} and costs less time with as few changes among them"
    return ""


def proof(search: Search, said: str) -> str:
    """How many combinations do not suffice, what is ``said`` of those that are cheaper, and the nearest of them."""
    tried = search.tried
    if tried.count < 2:
        return ""
    text = f"{tried.count} other combinations {'are not even likely to fit' if search.tight else 'do not fit'}"
    text += f"{';' if said == BY_HAND else ','} {said}" if said else ""
    nearest = search.closest()
    if nearest is not None:
        text += f" (nearest: {_near(search, *nearest)})"
    if tried.hosts:
        text += f"; {tried.hosts} of them lack host memory"
    return text


def _near(search: Search, candidate: Candidate, result: Estimate) -> str:
    """What comes nearest, with what it needs; where only its high end is too much, with what decides that."""
    need = f"{candidate.name}, {result.peak.high / GIB:.1f} of {search.limit / GIB:.1f} GiB to plan for"
    if result.peak.likely > search.limit:
        return need
    why = decides(changed_spec(search.spec, candidate.changes, launched=search.launched), result)
    return f"{need}, {result.peak.likely / GIB:.1f} likely{f': {why}' if why else ''}"


def decides(spec: Spec, result: Estimate) -> str:
    """What makes the high end of an estimate, each with how to state it; nothing where no one thing does."""
    from lintfit.verdict.spread import spread

    return "; ".join(f"{each.what}, {each.gib:.1f} GiB: {each.how}" for each in spread(spec, result.peak.likely))
