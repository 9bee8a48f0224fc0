"""Runs of which the length is only a cap: samples that are neither packed nor padded to it may all be shorter."""

from __future__ import annotations

from lintfit.documents.patterns import lazy_pattern
from lintfit.frozen import replace
from lintfit.memo import Memo
from lintfit.memory import estimate
from lintfit.memory.result import Estimate, Verdict
from lintfit.memory.spec import Spec
from lintfit.run.model import Run
from lintfit.settings.registry import LOWER_BOUNDS

SAMPLE = 1034
"""Tokens of the longest sample of data whose samples are short: Alpaca's by StableLM's tokenizer, the least of those
that LitGPT states (``tutorials/resource-tables.md``, 1034 to 1304). A batch is as long as its longest sample, so that
a shorter cap is reached."""
LONG = 2 * SAMPLE
"""Tokens that few samples have where a length is only their cap: twice those of the longest of public data."""
MEAN: int = LOWER_BOUNDS["seq_len"]
"""Tokens of a sample of public scripts' data in the mean, where that is short."""
FEW = 4
"""Samples of a micro-batch that may all be padded to :data:`SAMPLE`: who sets more has shorter ones as a rule. Runs
that readers found to fit all the same (``bench/precision/findings.jsonl``) had 8 to 32 where they say how many."""
ONE_LINE = 64
"""Tokens of a sample that is a sentence or two: what does not fit with these fits with no data."""
STEP = 64
"""Tokens to which the longest sequence is told."""
LONGEST = 131_072
"""Tokens up to which a longer sequence is tried, where the model does not say how many it takes."""

_ENOUGH = (Verdict.FITS, Verdict.TIGHT)
_SHORTER: Memo[Estimate] = Memo(64)
"""Estimates with samples of :data:`SAMPLE` or :data:`ONE_LINE` tokens, for which a rule and the plan ask."""
_PICTURES = lazy_pattern(r"(^|_)(image|vision|video|visual|mm|audio|speech|pixel)s?(_|$)")
"""Words in the names of flags by which a script trains on more than text (``--image_folder``, ``--vision_tower``)."""


def is_cap(run: Run) -> bool:
    """Whether the stated length is the most that a sample may have, and no more than that: of a front end's recipe, of
    a script that cuts samples and neither packs nor pads them to that length, and of one that trains on pictures, whose
    samples are as long as what they show."""
    if run.spec is None or "seq_len" not in run.spec.stated or run.spec.generation is not None:
        return False
    if (run.value("packing") not in (None, False) and not _refuses_packing(run)) or run.value("pads_to_length") is True:
        return False
    length = run.settings.get("seq_len")
    if length is not None and length.provenance.kind == "option":
        return False
    if run.recipe is not None:
        return run.value("packing") is False or _refuses_packing(run)
    return run.value("pads_to_length") is False or (shows_pictures(run) and not run.spec.own_loss)


def may_be_cap(run: Run) -> bool:
    """Whether a script states a length, and nobody knows whether its samples are put together or padded up to it."""
    if run.spec is None or run.script is None or "seq_len" not in run.spec.stated or run.spec.generation is not None:
        return False
    length = run.settings.get("seq_len")
    open_still = "pads_to_length" not in run.settings and run.value("packing") in (None, False)
    return open_still and length is not None and length.provenance.kind != "option" and not is_cap(run)


def exact_length(run: Run) -> bool:
    """Whether all samples are as long as is said: packed, padded, or said by the user."""
    length = run.settings.get("seq_len")
    if run.spec is None or (length is not None and length.provenance.kind == "option"):
        return True
    if run.value("packing") is True:
        return not _refuses_packing(run)
    return run.value("pads_to_length") is True


def _refuses_packing(run: Run) -> bool:
    """Whether TRL's trainer gets a vision-language model, of which it packs nothing (TRL 0.20 and later refuse it,
    ``sft_trainer.py:SFTTrainer.__init__``; before, scripts had collators of their own that pad to the longest)."""
    by_trl = run.training is not None and run.training.uses_trl
    return by_trl and run.spec is not None and run.spec.facts.vision is not None


def shows_pictures(run: Run) -> bool:
    """Whether a script trains on more than text: by the model, or by a flag of its launch line."""
    if run.spec is not None and run.spec.facts.vision is not None:
        return True
    return run.launch is not None and any(_PICTURES.search(flag.name) for flag in run.launch.flags)


def shortest(run: Run) -> int:
    """Tokens of the shortest samples that a batch is taken to be as long as, where the length is only a cap.

    :data:`SAMPLE`, as the longest sample of a batch decides; :data:`MEAN` where a batch is as long as all its samples
    together, and where a sample is a picture with a few words, whose tokens nobody states.
    """
    pictures = shows_pictures(run) if run.recipe is None else _refuses_packing(run)
    return MEAN if run.value("joins_samples") is True or pictures else SAMPLE


def at_shortest(run: Run) -> Estimate | None:
    """The estimate of a run with its shortest samples; None where its length is no cap, or a shorter one."""
    if run.spec is None or not is_cap(run) or run.spec.seq_len <= shortest(run):
        return None
    return estimate(replace(run.spec, seq_len=shortest(run)))


def fits_at(run: Run) -> int | None:
    """Tokens of samples with which a run fits, tightly at least, whose samples nobody pads to a length, as far as
    anybody can tell: then it hangs on data that nobody sees whether it does not.

    :data:`SAMPLE` where a longer length is stated, else half the length, which people set so that hardly any sample is
    cut, and less in micro-batches of more than :data:`FEW`; :data:`ONE_LINE` where no file states one, so that nobody
    has reckoned with any.
    """
    spec = run.spec
    if spec is None or spec.generation is not None or exact_length(run):
        return None
    usual = min(SAMPLE if spec.seq_len > SAMPLE else spec.seq_len // 2, _usual(spec.micro_batch_size))
    lengths = (usual, ONE_LINE) if _of_nobody(run) else (usual,)
    return next((tokens for tokens in lengths if tokens < spec.seq_len and _fits(spec, tokens)), None)


def _usual(micro_batch: int) -> int:
    """Tokens of the longest sample of a micro-batch, where nobody has looked at the data."""
    return SAMPLE * FEW // min(max(micro_batch, FEW), 4 * FEW)  # the longest of many is no shorter than a quarter


def _of_nobody(run: Run) -> bool:
    """Whether no file states a length, be it that a library has one of its own: most samples are shorter than that."""
    length = run.settings.get("seq_len")
    return length is None or not length.known or length.provenance.kind in ("default", "assumed")


def _fits(spec: Spec, tokens: int) -> bool:
    shorter = replace(spec, seq_len=tokens)
    return _SHORTER.get(spec, str(tokens), lambda: estimate(shorter)).verdict in _ENOUGH


def with_shorter(run: Run, spec: Spec, result: Estimate) -> tuple[Estimate, int] | None:
    """The estimate of a run that does not fit at its cap, as it is where its samples are shorter, and the tokens of the
    longest with which it fits; None where it does not fit then either.

    The low end is that of the shortest samples (:func:`shortest`).
    """
    least = shortest(run)
    if spec.seq_len <= least:
        return None
    low = estimate(replace(spec, seq_len=least))
    if low.verdict is Verdict.DOES_NOT_FIT:
        return None
    longest, over = least, spec.seq_len
    while over - longest > STEP:
        middle = (longest + over) // 2
        too_long = estimate(replace(spec, seq_len=middle)).verdict is Verdict.DOES_NOT_FIT
        longest, over = (longest, middle) if too_long else (middle, over)
    line = f"samples of no more than {longest} tokens ({spec.seq_len} are a cap, to which nothing packs or pads them)"
    peak = replace(result.peak, low=low.peak.low)
    verdict = Verdict.UNKNOWN if low.verdict is Verdict.UNKNOWN else Verdict.TIGHT
    return replace(result, peak=peak, verdict=verdict, assumptions=(line, *result.assumptions)), longest


def fits_up_to(spec: Spec) -> int | None:
    """Tokens up to which a run fits whose sequences nobody states the length of; None where the longest fit, too."""
    longest = spec.facts.max_positions or LONGEST
    if "seq_len" in spec.stated:
        return None
    fitting = spec.seq_len
    while fitting < longest:
        if estimate(replace(spec, seq_len=min(2 * fitting, longest))).verdict is not Verdict.FITS:
            return fitting
        fitting *= 2
    return None
