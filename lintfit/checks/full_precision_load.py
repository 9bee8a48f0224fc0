from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.runs import SMALL, anchor, breaks_or_strains, change, enough
from lintfit.checks.helpers.wording import billions, gib
from lintfit.checks.helpers.zero3_loads import loads_in_parts
from lintfit.findings.model import Applicability, Fix, Severity
from lintfit.memory.result import Verdict
from lintfit.memory.spec import Spec
from lintfit.run.model import Run
from lintfit.settings.model import Place
from lintfit.sources.script.model import Call, ScriptFacts

_HALF = {"bf16": "bfloat16", "fp16": "float16"}


def check_run(context: RunContext) -> Iterator[Report]:
    run = context.run
    facts, spec = run.facts, run.spec
    weights = run.settings.get("weights_dtype")
    if run.training is None or facts is None or spec is None or weights is None or not run.training.trains:
        return
    if weights.value != "fp32" or weights.provenance.kind != "default" or facts.checkpoint_dtype not in _HALF:
        return
    place = _load(run)
    if place is None or facts.parameters < SMALL or spec.quantization is not None or loads_in_parts(run):
        return
    severity = _severity(context, spec)
    if severity is None:
        return
    yield Report(
        place,
        f"no dtype is given, and {weights.provenance.detail or 'transformers before 5'} loads fp32: "
        f"{gib(4 * facts.parameters)} for {billions(facts.parameters)} parameters "
        f"that the checkpoint holds in {facts.checkpoint_dtype} ({gib(2 * facts.parameters)})",
        severity=severity,
        fix=_fix(context, spec, facts.checkpoint_dtype),
        help=f"pass {_said(run, facts.checkpoint_dtype)}, or shard the fp32 weights if they are trained",
    )


def _load(run: Run) -> Place | None:
    """Where the trained model is loaded without a dtype; of a model that TRL loads by its name, another rule speaks."""
    if run.script is None:
        return None if run.training is None or run.training.uses_trl else anchor(run)
    call = _trained_load(run.script.facts)
    return call.place if call is not None else None


def _said(run: Run, dtype: str) -> str:
    if run.recipe is None:
        return f"torch_dtype=torch.{_HALF[dtype]}"
    return run.recipe.spelled("dtype", _HALF[dtype]) or _HALF[dtype]


def _trained_load(facts: ScriptFacts) -> Call | None:
    # A trainer's class of the project's own may load what it is handed by name, beside the load that surely happens.
    sure = any(load.taken is True for load in facts.loads)
    possible = (load for load in facts.loads if load.taken is True or (load.taken is None and not sure))
    loads = [load for load in possible if not load.spreads and load.argument("dtype", "torch_dtype") is None]
    return facts.trained_among(loads)


def _severity(context: RunContext, spec: Spec) -> Severity | None:
    """Full fine-tuning wants fp32 weights where nothing keeps masters: there it is a fact and no fault."""
    if context.verdict is Verdict.UNKNOWN:
        return Severity.INFO
    severity = breaks_or_strains(context)
    if severity is None:
        return None
    if spec.engine == "deepspeed" and spec.mixed_precision != "no":
        return Severity.INFO
    return Severity.INFO if spec.method == "full" else Severity.WARNING


def _fix(context: RunContext, spec: Spec, checkpoint: str | None) -> Fix | None:
    gpu = context.run.hardware.gpu
    dtype = "fp16" if gpu is not None and gpu.native_bf16 is False else checkpoint
    if spec.mixed_precision != "no":
        dtype = spec.mixed_precision
    message = f"load the weights in {dtype}"
    engine_keeps_master = spec.engine == "deepspeed" and spec.mixed_precision != "no"
    if spec.method == "lora" or engine_keeps_master:
        return change(context.run, message, Applicability.SAFE, {"weights_dtype": dtype})
    return enough(context, message, Applicability.UNSAFE, {"weights_dtype": dtype})
