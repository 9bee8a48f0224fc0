from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.fixes import offered
from lintfit.checks.helpers.runs import SMALL, anchor
from lintfit.checks.helpers.wording import billions, gib
from lintfit.checks.helpers.zero3_loads import loads_in_parts
from lintfit.findings.model import Applicability, Fix, Severity
from lintfit.memory.result import Verdict
from lintfit.run.model import Run
from lintfit.settings.model import Place, Setting
from lintfit.sources.recipes.trl_recipe import TrlRecipe


def check_run(context: RunContext) -> Iterator[Report]:
    run = context.run
    weights = run.settings.get("weights_dtype")
    if weights is None or weights.value != "fp32" or weights.provenance.kind != "default" or _cast_by_engine(run):
        return
    loader = _loader(run, weights)
    if loader is None or run.value("method") != "lora" or run.facts is None:
        return
    name, place = loader
    parameters = run.facts.parameters
    if parameters < SMALL or run.facts.checkpoint_dtype not in ("bf16", "fp16"):
        return
    yield Report(
        place,
        f"{name} loads a model that it is given by name in float32: the frozen base takes "
        f"{gib(4 * parameters)} for {billions(parameters)} parameters instead of {gib(2 * parameters)}",
        severity=Severity.WARNING if context.verdict in (Verdict.TIGHT, Verdict.DOES_NOT_FIT) else Severity.INFO,
        fix=_fix(run),
        help="pass --dtype bfloat16"
        if run.recipe is not None
        else 'pass model_init_kwargs={"dtype": "bfloat16"} in the trainer\'s config',
    )


def _cast_by_engine(run: Run) -> bool:
    """Whether DeepSpeed may have the weights in 16 bits whatever they are loaded in
    (``engine.py:_configure_distributed_model``); ZeRO-3's ``zero.Init`` makes them so."""
    by_engine = run.value("engine") == "deepspeed" and run.value("mixed_precision") != "no"
    return by_engine or loads_in_parts(run)


def _loader(run: Run, weights: Setting) -> tuple[str, Place] | None:
    """What loads the model by its name, and where: TRL's trainer, or its command line."""
    if isinstance(run.recipe, TrlRecipe):
        return run.recipe.program, anchor(run)
    trainer = run.script.facts.trainer if run.script is not None else None
    by_name = trainer is not None and weights.provenance.detail.startswith("TRL")
    return (trainer.name, trainer.place) if trainer is not None and by_name else None


def _fix(run: Run) -> Fix | None:
    gpu = run.hardware.gpu
    dtype = "float16" if gpu is not None and gpu.native_bf16 is False else "bfloat16"
    if run.recipe is not None:
        written = run.recipe.write_argument("dtype", dtype)
        return Fix(f"load the base in {dtype}", Applicability.SAFE, written) if written else None
    assert run.script is not None
    arguments = run.script.facts.training_arguments
    if arguments is None or run.script.facts.parse_call is not None or "model_init_kwargs" in arguments.arguments:
        return None
    edits = run.script.set_argument(arguments, "model_init_kwargs", f'{{"dtype": "{dtype}"}}')
    return offered(f"load the base in {dtype}", Applicability.SAFE, edits)
