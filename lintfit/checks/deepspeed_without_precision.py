from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.runs import SMALL, change, stated_at, told_by
from lintfit.checks.helpers.wording import spot
from lintfit.findings.model import Applicability, Fix, Related
from lintfit.memory.result import Verdict
from lintfit.memory.tensors.weights import model_dtype
from lintfit.run.model import Run
from lintfit.settings.model import AUTO, Place

DECIDED_BY = ("mixed_precision",)


def check_run(context: RunContext) -> Iterator[Report]:
    run = context.run
    stage = run.value("zero_stage")
    if run.training is None or not run.training.trains or run.value("engine") != "deepspeed":
        return
    if stage not in (1, 2, 3) or run.value("mixed_precision") != "no" or "mixed_precision" in run.doubtful:
        return
    if run.facts is not None and run.facts.parameters < SMALL:
        return
    if any(word in document.path.name.lower() for document in run.documents for word in ("fp32", "float32")):
        return  # on purpose
    if run.mentions("autocast", "Float8", "fp8", "cuda.amp", "apex"):
        return
    place = stated_at(run, "mixed_precision", "zero_stage")
    if place is None or _is_said(context):
        return
    left = _left_to_the_trainer(run)
    why = left[1] if left is not None else "neither bf16 nor fp16"
    yield Report(
        left[0] if left is not None else place,
        f"ZeRO-{stage} with {why}: {_consequence(run)}, and computes in it",
        related=(Related(run.launch.place, "and is not told here"),) if left is not None and run.launch else (),
        fix=_fix(run),
        help=f'write "bf16": {{"enabled": "auto"}} and pass {_asks(run)}',
    )


def _consequence(run: Run) -> str:
    """Which dtype the engine works in (``model_dtype`` in ``memory/tensors/weights.py`` has the sources)."""
    spec = run.spec
    if spec is not None and model_dtype(spec) != spec.weights_dtype:
        made = f"zero.Init makes the weights {model_dtype(spec)}, not {spec.weights_dtype}"
        return f"{made}, the engine keeps them and the gradients so"
    dtype = f" ({spec.weights_dtype})" if spec is not None and "weights_dtype" not in run.doubtful else ""
    return f"the engine keeps weights and gradients in the dtype that the model was loaded in{dtype}"


def _asks(run: Run) -> str:
    if run.recipe is not None and (said := run.recipe.spelled("bf16", True)) is not None:
        return said
    return 'bf16=True (or "enabled": true under deepspeed.initialize)'


def _left_to_the_trainer(run: Run) -> tuple[Place, str] | None:
    """Where the config leaves the precision to arguments that nobody gives, and that in words."""
    if run.deepspeed is None or run.training is None or not run.training.uses_trainer:
        return None
    blocks = [run.deepspeed.settings[name] for name in ("bf16", "fp16") if name in run.deepspeed.settings]
    left = [block for block in blocks if block.value is AUTO]
    names, place = [block.name for block in left], left[0].provenance.place if left else None
    if place is None:
        return None
    by_flags = run.script is None or run.script.facts.parse_call is not None
    flags = " or ".join(_flag(run, name) if by_flags else f"{name}=True" for name in names)
    where = run.launch.place if run.launch is not None and by_flags else None
    if where is None:
        return place, f'{" and ".join(names)} left to the arguments ("auto"), which have no {flags}'
    told = told_by(run, names, flags)
    return place, f'{" and ".join(names)} left to the arguments ("auto"), and {spot(where)} {told}'


def _flag(run: Run, name: str) -> str:
    return (run.recipe.spelled(name, True) if run.recipe is not None else None) or f"--{name}"


def _is_said(context: RunContext) -> bool:
    """Whether ``full-precision-training`` reports it with its numbers: memory is short and the model is in fp32."""
    spec = context.run.spec
    short = context.verdict in (Verdict.TIGHT, Verdict.DOES_NOT_FIT)
    return short and spec is not None and spec.weights_dtype == "fp32"


def _fix(run: Run) -> Fix | None:
    gpu = run.hardware.gpu
    if gpu is None or gpu.native_bf16 is None:
        return None
    half = "bf16" if gpu.native_bf16 else "fp16"
    return change(run, f"train in {half}", Applicability.UNSAFE, {"mixed_precision": half})
