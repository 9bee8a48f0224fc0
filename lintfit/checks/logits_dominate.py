from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.runs import breaks_or_strains, enough, most, place_of
from lintfit.checks.helpers.wording import of_gib
from lintfit.findings.model import Applicability, Severity
from lintfit.fit.axes.loss import has_liger
from lintfit.memory.spec import GIB
from lintfit.verdict.capped import shortest

_SHARE = 0.15
"""Share of the GPU from which on the logits are worth a word."""


def check_run(context: RunContext) -> Iterator[Report]:
    run, spec, estimate = context.run, context.run.spec, context.estimate
    if spec is None or estimate is None or estimate.capacity_bytes is None or spec.loss != "full" or spec.own_loss:
        return
    logits, low = most(estimate, "logits"), context.at_shortest
    least = most(low, "logits") if low is not None else logits
    if breaks_or_strains(context) is None or least <= _SHARE * estimate.capacity_bytes:
        return
    tokens, sizes = f"{spec.tokens:,} tokens", of_gib(logits, estimate.capacity_bytes)
    if least < logits:
        tokens = f"{spec.micro_batch_size * shortest(run):,} to {tokens} (samples are cut at {spec.seq_len:,})"
        sizes = f"{least / GIB:,.1f} to {sizes}"
    fuses = has_liger(run, spec)
    word = run.training.spelled("use_liger_kernel", True) if run.training is not None and fuses else None
    message = "compute the loss with Liger's fused kernel"
    yield Report(
        place_of(run, "loss", "micro_batch_size", "seq_len"),
        f"{spec.facts.vocab:,} vocabulary entries × {tokens}: logits and loss take {sizes}",
        severity=Severity.WARNING,
        fix=enough(context, message, Applicability.UNSAFE, {"loss": "liger"})
        if fuses and spec.trainer == "causal-lm"
        else None,
        help=(f"compute the loss in chunks ({word}) or " if word else "") + "lower the micro-batch",
    )
