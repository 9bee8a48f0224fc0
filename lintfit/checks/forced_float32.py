from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.readers import older
from lintfit.checks.helpers.runs import SMALL, breaks_or_strains, change, copies, fits
from lintfit.checks.helpers.script_calls import trained_load
from lintfit.checks.helpers.wording import billions, gib
from lintfit.checks.helpers.zero3_loads import loads_in_parts
from lintfit.findings.model import Applicability, Fix, Severity
from lintfit.memory.result import Verdict
from lintfit.memory.spec import Spec
from lintfit.run.model import Run
from lintfit.settings.values import AS_LOADED
from lintfit.sources.script.model import Call, Statement


def check_run(context: RunContext) -> Iterator[Report]:
    script = context.run.script
    if script is None or not script.facts.trains or loads_in_parts(context.run) or _is_fp32_already(context):
        return
    for upcast in script.facts.upcasts:
        if upcast.call.taken is not False and not upcast.call.device_guarded:
            report = _report(context, upcast)
            if report is not None:
                yield report


def _report(context: RunContext, upcast: Statement) -> Report | None:
    facts, spec = context.run.facts, context.run.spec
    if facts is None or spec is None:
        loaded = trained_load(context.run.script) if context.run.script is not None else None
        if upcast.call.taken is None or loaded is None:
            return None  # a switch of the script's own decides; what is made from scratch is fp32 anyway
        if _may_be_fp32(context.run, loaded):
            return None
        wanted = _may_be_wanted(context.run)
        return Report(
            upcast.call.place,
            f"{_call(upcast)} makes every parameter fp32: 4 bytes each instead of 2 on each GPU",
            severity=Severity.INFO if wanted else Severity.WARNING,
            help="keep it where torch's autocast trains all weights (a GradScaler refuses fp16 ones); "
            "DeepSpeed and FSDP keep fp32 master weights of their own"
            if wanted
            else "delete it if an engine keeps fp32 master weights; name the model to see what it costs",
        )
    if facts.parameters < SMALL:
        return None
    if spec.engine in ("deepspeed", "fsdp") and spec.mixed_precision != "no":
        return _cast_back(context, upcast, spec)
    severity = _severity(context, spec)
    if severity is None:
        return None
    if upcast.call.taken is None:
        severity = Severity.INFO
    parameters = facts.parameters
    made = f"{_call(upcast)} makes all {billions(parameters)} parameters fp32: "
    sizes = f"weights {gib(2 * parameters)} → {gib(4 * parameters)} on each GPU"
    branch = "" if upcast.call.taken else ", if this branch runs"
    return Report(
        upcast.call.place,
        made + sizes + branch + _master(spec, parameters),
        severity=severity,
        fix=_without_it(context, spec),
        help="shard the fp32 weights (DeepSpeed keeps its own); loading them in 16 bits instead changes the numerics"
        if _is_master(spec)
        else "delete it and load the model in bf16 or fp16",
    )


def _is_fp32_already(context: RunContext) -> bool:
    """Whether the model is loaded in fp32, so that the cast makes nothing larger."""
    run = context.run
    load = trained_load(run.script) if run.script is not None else None
    if load is None or load.spreads or load.name != "from_pretrained":
        return False
    asked = load.argument("dtype", "torch_dtype")
    if asked is not None:
        return bool(asked.value == "fp32")
    if load.function.startswith("diffusers."):
        return True
    own_code = load.argument("trust_remote_code")
    return (
        load.function.startswith("transformers.")
        and (own_code is None or own_code.value is False)
        and older((run,), "transformers", "5") is True
    )


def _may_be_fp32(run: Run, load: Call) -> bool:
    """Whether a model of which nothing is known is loaded without a dtype: up to transformers 5 that makes fp32, from
    then on what its checkpoint is in. Unsloth loads in 16 bits without one."""
    if load.spreads or load.name != "from_pretrained" or run.mentions("unsloth"):
        return False
    return load.argument("dtype", "torch_dtype") is None and older((run,), "transformers", "5") is not False


def _may_be_wanted(run: Run) -> bool:
    """Whether a model of which nothing is known may train by its fp32 weights: as a whole, under autocast, be it that
    nobody knows whether it is on. In fp16 it has to, as a GradScaler refuses the gradients of fp16 weights; and engines
    cast them back."""
    precision = run.settings.get("mixed_precision")
    autocast = precision is not None and (not precision.known or precision.value in ("bf16", "fp16"))
    return autocast and run.value("method") != "lora"


def _severity(context: RunContext, spec: Spec) -> Severity | None:
    if context.verdict is Verdict.UNKNOWN:
        return Severity.INFO if _is_master(spec) else Severity.WARNING
    return breaks_or_strains(context)


def _is_master(spec: Spec) -> bool:
    """Whether the fp32 weights are what torch's autocast trains on, rather than a copy of something."""
    return spec.method == "full" and spec.mixed_precision != "no"


def _master(spec: Spec, parameters: int) -> str:
    if not _is_master(spec):
        return ""
    states = 16 * parameters
    return f"; with gradients and AdamW's states that is {gib(states)}, which torch's autocast does not shard"


def _cast_back(context: RunContext, upcast: Statement, spec: Spec) -> Report:
    """An engine casts to 16 bits and keeps the master itself: what is left is the copy while loading."""
    assert context.run.facts is not None
    parameters = context.run.facts.parameters
    engine = "DeepSpeed" if spec.engine == "deepspeed" else "FSDP"
    fix = None
    if spec.engine == "deepspeed":
        message = "delete it: DeepSpeed keeps fp32 master weights of its own"
        fix = change(context.run, message, Applicability.SAFE, {"weights_dtype": AS_LOADED})
    return Report(
        upcast.call.place,
        f"{_call(upcast)} makes all {billions(parameters)} parameters fp32 before {engine} casts them back: "
        f"{copies(context.run, 4 * parameters)} while the model loads",
        severity=Severity.WARNING if _host_is_short(context) else Severity.INFO,
        fix=fix,
    )


def _host_is_short(context: RunContext) -> bool:
    estimate = context.estimate
    if estimate is None or estimate.host_capacity_bytes is None:
        return False
    return estimate.host.load_peak > estimate.host_capacity_bytes


def _without_it(context: RunContext, spec: Spec) -> Fix | None:
    dtype = _loaded_dtype(context)
    if _is_master(spec) and dtype == "fp16":
        return None  # trainable fp16 weights under autocast raise "Attempting to unscale FP16 gradients"
    if context.verdict is Verdict.FITS or not fits(context.what_if(weights_dtype=dtype)):
        return None
    return change(context.run, "delete the cast", Applicability.UNSAFE, {"weights_dtype": AS_LOADED})


def _loaded_dtype(context: RunContext) -> str:
    """dtype before the cast: what it overrode, else what the GPUs can do."""
    setting = context.run.settings.get("weights_dtype")
    for beaten in setting.overrode if setting is not None else ():
        if beaten.value in ("bf16", "fp16"):
            return str(beaten.value)
    gpu = context.run.hardware.gpu
    return "fp16" if gpu is not None and gpu.native_bf16 is False else "bf16"


def _call(upcast: Statement) -> str:
    text = " ".join(upcast.call.place.text.split())
    return text if len(text) <= 60 else f".{upcast.call.name}()"
