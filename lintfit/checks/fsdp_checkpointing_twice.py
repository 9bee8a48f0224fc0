"""The rule fsdp-checkpointing-twice: see its page."""

from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.script_calls import is_trl
from lintfit.documents.model import FileEdit
from lintfit.findings.model import Applicability, Fix, Related, Severity
from lintfit.run.model import Run
from lintfit.settings.model import Place
from lintfit.settings.values import Fsdp
from lintfit.sources.script.model import Argument

_KEYS = ("activation_checkpointing", "fsdp_activation_checkpointing")


def check_run(context: RunContext) -> Iterator[Report]:
    run = context.run
    if run.script is None or run.value("engine") != "fsdp" or run.script.facts.trainer is None:
        return
    argument = _argument(run)
    by_fsdp = _by_fsdp(run)
    if argument is not None and argument.value is True:
        if by_fsdp is not None:
            yield _twice(run, argument.place, by_fsdp)
        elif _gathers_again(run):
            yield _outside(run, argument)
    elif argument is None and by_fsdp is not None and _trl_default(run):
        yield _twice(run, _arguments_place(run), by_fsdp)


def _argument(run: Run) -> Argument | None:
    assert run.script is not None
    arguments = run.script.facts.training_arguments
    return arguments.argument("activation_checkpointing", "gradient_checkpointing") if arguments is not None else None


def _by_fsdp(run: Run) -> Place | None:
    """Where FSDP itself is told to checkpoint."""
    assert run.script is not None
    arguments = run.script.facts.training_arguments
    config = arguments.argument("fsdp_config") if arguments is not None else None
    if config is not None and isinstance(config.value, dict) and any(config.value.get(key) is True for key in _KEYS):
        return config.place
    setting = run.accelerate.settings.get("gradient_checkpointing") if run.accelerate is not None else None
    overridden = run.launch is not None and "fsdp_activation_checkpointing" in run.launch.invocation.options
    return setting.provenance.place if setting is not None and setting.value is True and not overridden else None


def _trl_default(run: Run) -> bool:
    """TRL's configs switch checkpointing on unless they are told not to (TRL 0.21 and up)."""
    assert run.script is not None
    arguments = run.script.facts.training_arguments
    known = run.script.settings.get("gradient_checkpointing")
    return (
        arguments is not None
        and not arguments.spreads
        and is_trl(run.script)
        and known is not None
        and known.value is True
        and known.provenance.kind == "default"
    )


def _arguments_place(run: Run) -> Place:
    assert run.script is not None and run.script.facts.training_arguments is not None
    return run.script.facts.training_arguments.place


def _twice(run: Run, place: Place, by_fsdp: Place) -> Report:
    return Report(
        place,
        "gradient_checkpointing and FSDP's activation_checkpointing are both on: the Trainer stops with ValueError "
        "(can't be set to True simultaneously)",
        severity=Severity.ERROR,
        related=(Related(by_fsdp, "FSDP checkpoints, too"),),
        fix=_off(run),
        help="leave it to FSDP: gradient_checkpointing=False",
    )


def _off(run: Run) -> Fix | None:
    assert run.script is not None
    arguments = run.script.facts.training_arguments
    if arguments is None or run.script.facts.parse_call is not None:
        return None
    argument = _argument(run)
    name = argument.name if argument is not None else "gradient_checkpointing"
    edits = run.script.set_argument(arguments, name, "False")
    return Fix("leave it to FSDP", Applicability.SAFE, edits) if edits else None


def _gathers_again(run: Run) -> bool:
    """Whether weights are freed between forward and backward, so that recomputing gathers them once more."""
    fsdp = run.value("fsdp")
    sharded = isinstance(fsdp, Fsdp) and fsdp.gathers == 2
    return sharded and run.settings.get("quantization") is None


def _outside(run: Run, argument: Argument) -> Report:
    return Report(
        argument.place,
        f"{argument.name} under FSDP's full sharding recomputes outside of FSDP's units: every layer's weights are "
        "gathered once more in the backward pass",
        severity=Severity.WARNING,
        fix=_moved(run, argument),
        help="use activation_checkpointing of fsdp_config instead",
    )


def _moved(run: Run, argument: Argument) -> Fix | None:
    """Switch FSDP's on in the Accelerate file and the argument off."""
    off = _off(run)
    on: tuple[FileEdit, ...] | None = None
    if run.accelerate is not None:
        on = run.accelerate.write("gradient_checkpointing", True)
    if off is None or not on:
        return None
    return Fix("let FSDP checkpoint its own units", Applicability.SAFE, (*off.edits, *on))
