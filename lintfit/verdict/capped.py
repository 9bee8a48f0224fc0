"""Runs of which the length is only a cap: samples that are neither packed nor padded to it may all be shorter."""

from __future__ import annotations

from lintfit.frozen import replace
from lintfit.memory import estimate
from lintfit.memory.result import Estimate, Verdict
from lintfit.memory.spec import Spec
from lintfit.run.model import Run
from lintfit.settings.registry import LOWER_BOUNDS

SAMPLE = 1034
"""Tokens of the longest sample of data whose samples are short: Alpaca's by StableLM's tokenizer, the least of those
that LitGPT states (``tutorials/resource-tables.md``, 1034 to 1304). A batch is as long as its longest sample, so that
a shorter cap is reached."""
MEAN: int = LOWER_BOUNDS["seq_len"]
"""Tokens of a sample of public scripts' data in the mean, where that is short."""
STEP = 64
"""Tokens to which the longest sequence is told."""


def is_cap(run: Run) -> bool:
    """Whether the stated length is the most that a sample may have, and no more than that: of a front end's recipe, and
    of a script that trains a model on pictures, whose samples are as long as what they show."""
    if run.spec is None or "seq_len" not in run.spec.stated or run.spec.generation is not None:
        return False
    if run.recipe is None:
        return run.spec.facts.vision is not None and run.value("packing") is not True and not run.spec.own_loss
    length = run.settings.get("seq_len")
    by_user = length is not None and length.provenance.kind == "option"
    return not by_user and run.value("packing") is False and run.value("pads_to_length") is not True


def with_shorter(run: Run, spec: Spec, result: Estimate) -> tuple[Estimate, int] | None:
    """The estimate of a run that does not fit at its cap, as it is where its samples are shorter, and the tokens of the
    longest with which it fits; None where it does not fit then either.

    The low end is that of samples of :data:`SAMPLE` tokens; of :data:`MEAN` where a batch is as long as all
    its samples together.
    """
    shortest = MEAN if run.value("joins_samples") is True else SAMPLE
    if spec.seq_len <= shortest:
        return None
    low = estimate(replace(spec, seq_len=shortest))
    if low.verdict is Verdict.DOES_NOT_FIT:
        return None
    longest, over = shortest, spec.seq_len
    while over - longest > STEP:
        middle = (longest + over) // 2
        too_long = estimate(replace(spec, seq_len=middle)).verdict is Verdict.DOES_NOT_FIT
        longest, over = (longest, middle) if too_long else (middle, over)
    line = f"samples of no more than {longest} tokens ({spec.seq_len} are a cap, to which nothing packs or pads them)"
    peak = replace(result.peak, low=low.peak.low)
    verdict = Verdict.UNKNOWN if low.verdict is Verdict.UNKNOWN else Verdict.TIGHT
    return replace(result, peak=peak, verdict=verdict, assumptions=(line, *result.assumptions)), longest
