from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.launched import leads_to
from lintfit.checks.helpers.runs import (
    SMALL,
    arguments_of,
    at_length,
    breaks_or_strains,
    cards,
    engine_assumed,
    enough,
    most,
    names_unread_file,
    stated_at,
    told_by,
    up_to,
)
from lintfit.checks.helpers.wording import rough, spot
from lintfit.documents.patterns import lazy_pattern
from lintfit.findings.model import Applicability, Severity
from lintfit.memory.result import Verdict
from lintfit.run.model import Run
from lintfit.settings.model import AUTO
from lintfit.verdict.capped import exact_length

_WORTH_IT = 0.05
"""Share of the GPU that half precision must give back to be mentioned."""


def check_run(context: RunContext) -> Iterator[Report]:
    run, spec, estimate = context.run, context.run.spec, context.estimate
    if run.training is None or spec is None or estimate is None or not run.training.trains:
        return
    if spec.mixed_precision != "no" or spec.weights_dtype != "fp32" or "mixed_precision" in run.doubtful:
        return
    if names_unread_file(run) and stated_at(run, "mixed_precision") is None:
        return  # that file may well say it
    if spec.facts.parameters < SMALL or spec.quantization is not None:
        return
    gpu = run.hardware.gpu
    if gpu is not None and gpu.compute_capability is not None and gpu.compute_capability < (7, 0):
        return
    if breaks_or_strains(context) is None:
        return
    half = "fp16" if gpu is not None and gpu.native_bf16 is False else "bf16"
    other = context.what_if(mixed_precision=half)
    if other is None or estimate.capacity_bytes is None:
        return
    now, then = most(estimate, "activations", "logits"), most(other, "activations", "logits")
    if now - then < _WORTH_IT * estimate.capacity_bytes:
        return  # what is too much stands elsewhere
    yield Report(
        stated_at(run, "mixed_precision") or arguments_of(run),
        f"neither bf16 nor fp16 is on{_left_open(run)}: {cards(run)} compute in fp32, "
        f"activations and logits take {up_to(context)}{rough(now)}{at_length(context)}, with {half} {rough(then)}",
        severity=_severity(context),
        fix=enough(context, f"train in {half}", Applicability.UNSAFE, {"mixed_precision": half}),
        help=f"pass {run.training.spelled(half, True)}: "
        "weights, gradients and optimizer states keep their size without DeepSpeed",
    )


def _severity(context: RunContext) -> Severity:
    """A warning where it is known how the run is started, and it does not fit with samples that are as long as is said
    (where a config waits for a flag, with short ones, too); information where the launch says no to both."""
    run = context.run
    stated = run.spec is not None and "seq_len" in run.spec.stated and exact_length(run)
    anyway = context.at_short is not None and context.at_short.verdict is Verdict.DOES_NOT_FIT
    by_itself = run.script is not None and not run.script.walk.parses
    started = leads_to(run) or run.recipe is not None or by_itself
    sure = (stated or (anyway and bool(_left_open(run)))) and not engine_assumed(run)
    refused = run.launch is not None and any(run.launch.flag(name) is not None for name in ("bf16", "fp16"))
    return Severity.WARNING if sure and started and not refused and not _is_trial(run) else Severity.INFO


_TRIAL = lazy_pattern(r"(?i)(?:^|[_\W])(?:tests?|benchmarks?|bench|profil\w*|measure\w*|debug)(?:[_\W]|$)")
"""Names of scripts that try something out, or measure it."""


def _is_trial(run: Run) -> bool:
    """Whether a script, by its name, trains nothing that is kept."""
    return run.script is not None and _TRIAL.search(run.script.document.path.stem) is not None


def _left_open(run: Run) -> str:
    """Which config waits for an argument that nobody passes."""
    setting = run.settings.get("mixed_precision")
    waiting = [beaten for beaten in setting.overrode if beaten.value is AUTO] if setting is not None else []
    if not waiting:
        return ""
    names = " and ".join(block.name for block in waiting)
    passer = run.launch.place if run.launch is not None else arguments_of(run)
    flags = " or ".join(f"--{block.name}" if run.launch is not None else f"{block.name}=True" for block in waiting)
    home = waiting[0].provenance.place
    if home is None:
        return ""
    told = told_by(run, [block.name for block in waiting], flags)
    return f" ({spot(home)} leaves {names} to the arguments, {spot(passer)} {told})"
