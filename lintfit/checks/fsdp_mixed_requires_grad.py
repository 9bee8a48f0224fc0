from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.fixes import related
from lintfit.checks.helpers.runs import anchor, stated_at
from lintfit.checks.helpers.script_calls import arguments_call, calls_of
from lintfit.memory.engines.fsdp import one_unit
from lintfit.memory.spec import Spec
from lintfit.memory.tensors.parameters import inventory
from lintfit.run.model import Run
from lintfit.settings.model import Place
from lintfit.settings.values import Fsdp

_POLICY = ("fsdp_auto_wrap_policy(", "import fsdp_auto_wrap_policy", "lambda_auto_wrap_policy", "lambda_policy_fn")
"""Words of code that wraps what is trained apart from what is frozen (PEFT's policy, and how recipes write it)."""


def check_run(context: RunContext) -> Iterator[Report]:
    run, spec, fsdp = context.run, context.run.spec, context.run.value("fsdp")
    if run.script is None or not run.script.facts.trains or not isinstance(fsdp, Fsdp) or fsdp.version != 1:
        return
    if run.value("engine") != "fsdp" or spec is None or "method" in run.doubtful or run.mentions(*_POLICY):
        return
    switched_off = _switched_off(run)
    unit = _mixed_unit(run, spec)
    if switched_off is None or unit is None:
        return
    yield Report(
        switched_off,
        f"use_orig_params is off, and {unit} holds trained and frozen parameters: FSDP stops with ValueError "
        "(Must flatten tensors with uniform `requires_grad` when `use_orig_params=False`)",
        related=related(stated_at(run, "method", "frozen_modules"), "what is frozen"),
        help="use_orig_params: true, or wrap what is trained apart (peft.utils.other.fsdp_auto_wrap_policy)",
    )


def _mixed_unit(run: Run, spec: Spec) -> str | None:
    """A unit of FSDP whose parameters do not all train or all rest; None where each does one of the two."""
    if spec.method == "lora":
        # transformers' Trainer takes PEFT's policy, which wraps adapters by themselves.
        by_trainer = run.training is not None and run.training.uses_trainer
        return None if by_trainer else "the whole model" if one_unit(spec) else "each layer"
    whole = one_unit(spec)
    trained = {weight.trainable for weight in inventory(spec).weights if whole or not weight.per_layer}
    if len(trained) < 2:
        return None
    return "the whole model" if whole else "the unit of all that is in no layer"


def _switched_off(run: Run) -> Place | None:
    """Where ``use_orig_params`` is false: on the launch line, in the launcher's file or in the script."""
    if run.launch is not None and "fsdp_use_orig_params" in run.launch.invocation.options:
        said = next((flag for flag in run.launch.launcher_flags if flag.name == "fsdp_use_orig_params"), None)
        return said.place if said is not None and str(said.value).lower() == "false" else None
    node = run.accelerate.node("fsdp_config", "fsdp_use_orig_params") if run.accelerate is not None else None
    if run.accelerate is not None and node is not None:
        return Place(run.accelerate.document, node.span) if node.plain() is False else None
    return _by_script(run)


def _by_script(run: Run) -> Place | None:
    assert run.script is not None
    arguments = arguments_call(run)
    config = arguments.argument("fsdp_config") if arguments is not None else None
    if config is not None and isinstance(config.value, dict) and config.value.get("use_orig_params") is False:
        return config.place or anchor(run)
    for call in calls_of(run.script, "FullyShardedDataParallelPlugin", "FSDP", "FullyShardedDataParallel"):
        argument = call.argument("use_orig_params")
        if call.taken is True and argument is not None and argument.value is False:
            return argument.place
    return None
