from __future__ import annotations

from collections.abc import Iterator

from lintfit.catalog.attention import has_sdpa
from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.runs import change, fits, most
from lintfit.checks.helpers.wording import gib
from lintfit.findings.model import Applicability, Severity
from lintfit.memory.result import Verdict
from lintfit.memory.spec import Spec
from lintfit.memory.versions import release, transformers_versions
from lintfit.verdict.capped import exact_length

_LONG = 2048
"""Tokens from which the scores are worth a word."""
_WORTH_IT = 2**30
"""Bytes that another implementation must save."""


def check_run(context: RunContext) -> Iterator[Report]:
    run, spec, estimate = context.run, context.run.spec, context.estimate
    if run.training is None:
        return
    attention, length = run.settings.get("attention"), run.settings.get("seq_len")
    if attention is None or attention.value != "eager" or attention.provenance.place is None:
        return
    if spec is None or estimate is None or length is None or not isinstance(length.value, int) or length.value < _LONG:
        return
    gpu = run.hardware.gpu
    if not _has_another(spec) or (gpu is not None and gpu.flash_attention_2 is False):
        return
    if run.mentions("output_attentions"):
        return
    other = context.what_if(attention="sdpa")
    if other is None:
        return
    now, then = most(estimate, "activations", "temporaries"), most(other, "activations", "temporaries")
    if now - then < _WORTH_IT:
        return
    severity = context.severity()
    mends = severity is Severity.ERROR and fits(other)
    most_severe = Severity.WARNING if exact_length(run) else Severity.INFO  # samples may all be short
    yield Report(
        attention.provenance.place,
        f"eager attention stores the scores of {spec.facts.heads} heads × {length.value:,}² tokens: activations take "
        f"{gib(now)}, with sdpa {gib(then)}",
        severity=Severity.ERROR if mends else min(severity, most_severe),
        fix=change(run, "use sdpa", Applicability.UNSAFE, {"attention": "sdpa"})
        if context.verdict is not Verdict.FITS
        else None,
        help=f"pass {run.training.spelled('attn_implementation', 'sdpa')}",
    )


def _has_another(spec: Spec) -> bool:
    """Whether the model runs SDPA where it is asked for, and what it is called by is what it runs: in every version
    since 4.46 where nobody states one."""
    code, versions = spec.facts.code, transformers_versions(spec, (4, 46))
    torch = release(spec.versions.get("torch"))
    if code.eager_advised or not code.chooses_kernel:
        return False
    return all(has_sdpa(code, version, torch) for version in versions)
