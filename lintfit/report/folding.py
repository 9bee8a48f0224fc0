"""What a run's block says itself: findings that are its verdict, its causes or its plan, and are told nowhere else."""

from __future__ import annotations

from collections.abc import Sequence

from lintfit.findings.model import Finding, Severity
from lintfit.findings.results import RunResult
from lintfit.frozen import frozen
from lintfit.memory.result import Verdict
from lintfit.run.model import REFUSED

VERDICTS = frozenset({"does-not-fit", "tight-fit", "no-plan-fits", "fix-insufficient", "memory-unknown"})
"""Rules whose findings are the block itself: its verdict, its plan and what of it is not known."""

CAUSES = frozenset(
    {
        "adam-states-dominate",
        "dpo-reference-copy",
        "eager-attention-long-sequence",
        "eval-batch-default",
        "eval-logits-accumulated",
        "forced-float32",
        "full-precision-load",
        "full-precision-training",
        "gradient-checkpointing-off",
        "gradient-checkpointing-overridden",
        "gradients-beside-forward",
        "host-ram-short",
        "loop-outputs-held",
        "micro-batch-too-large",
        "modules-to-save-embeddings",
        "quantize-base-suggestion",
        "sequence-too-long",
        "trl-string-model-fp32",
        "vllm-trainer-overlap",
        "zero-stage-too-low",
    }
)
"""Rules about what takes memory that a run does not have; in one that fits they are findings like others."""


@frozen
class Folded:
    """A run's findings by what becomes of them: those that the block says, its causes, and all others."""

    verdicts: tuple[Finding, ...]
    causes: tuple[Finding, ...]
    others: tuple[Finding, ...]


def folded(result: RunResult, findings: Sequence[Finding]) -> Folded:
    """The findings of one run, parted. Where errors are among the causes of a run that does not fit, what is no more
    than information follows from them."""
    strained = result.verdict in (Verdict.DOES_NOT_FIT, Verdict.TIGHT)
    verdicts = tuple(finding for finding in findings if finding.rule in VERDICTS)
    causes = [finding for finding in findings if strained and finding.rule in CAUSES]
    others = [finding for finding in findings if finding not in verdicts and finding not in causes]
    worse = [finding for finding in causes if finding.severity is not Severity.INFO]
    return Folded(verdicts, tuple(_in_order(worse or causes)), tuple(_in_order(others)))


def _in_order(findings: Sequence[Finding]) -> list[Finding]:
    return sorted(findings, key=lambda finding: -finding.severity)


def not_known(result: RunResult, findings: Sequence[Finding]) -> list[tuple[str, Finding | None]]:
    """Why a run has no verdict, each reason with the finding that says the same: of a file that is not there, of a flag
    that is refused."""
    return [
        (reason, next((each for each in findings if _says(each, reason, result)), None)) for reason in result.unknown
    ]


def _says(finding: Finding, reason: str, result: RunResult) -> bool:
    run = result.run
    if finding.rule == "missing-file":
        return any(each.name in finding.message and reason.startswith(each.reason) for each in run.missing)
    return finding.rule == "refused-flag" and any(
        each.place == finding.place and reason.startswith(f"{each.name}{REFUSED}") for each in run.refused
    )
