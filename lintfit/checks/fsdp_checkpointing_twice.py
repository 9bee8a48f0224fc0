from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.fixes import offered
from lintfit.checks.helpers.readers import older
from lintfit.checks.helpers.runs import anchor, arguments_of
from lintfit.checks.helpers.script_calls import arguments_call
from lintfit.documents.model import FileEdit
from lintfit.findings.model import Applicability, Fix, Related, Severity
from lintfit.run.model import Run
from lintfit.settings.model import Place, Provenance, Setting
from lintfit.settings.values import Fsdp

_LAYERS_THEMSELVES = "4.53"
"""The first transformers most of whose layers checkpoint themselves (``GradientCheckpointingLayer``; 4.52 has it for a
few), so that a layer which FSDP wraps is recomputed with the weights that it has gathered."""
_NAMES = ("activation_checkpointing", "gradient_checkpointing")
_KEYS = ("activation_checkpointing", "fsdp_activation_checkpointing")

DECIDED_BY = ("gradient_checkpointing",)


def check_run(context: RunContext) -> Iterator[Report]:
    run = context.run
    if run.training is None or run.value("engine") != "fsdp" or not run.training.uses_trainer:
        return
    if run.script is not None and run.script.facts.trainer is None:
        return
    argument = _argument(run)
    by_fsdp = _by_fsdp(run)
    if argument is not None and argument.value is True:
        if by_fsdp is not None:
            yield _twice(run, argument.provenance.place or anchor(run), by_fsdp)
        elif _gathers_again(run):
            yield _outside(run, argument)
    elif argument is None and by_fsdp is not None and _trl_default(run):
        yield _twice(run, arguments_of(run), by_fsdp)


def _argument(run: Run) -> Setting | None:
    """What the trainer's arguments are told themselves, under either name."""
    if run.script is None:
        found = run.training.argument(*_NAMES) if run.training is not None else None
        return found if found is not None and found.provenance.kind == "file" else None
    arguments = run.script.facts.training_arguments
    argument = arguments.argument(*_NAMES) if arguments is not None else None
    if argument is None:
        return None
    return Setting(argument.name or _NAMES[1], argument.value, Provenance("file", "", argument.place))


def _by_fsdp(run: Run) -> Place | None:
    """Where FSDP itself is told to checkpoint."""
    arguments = arguments_call(run)
    config = arguments.argument("fsdp_config") if arguments is not None else None
    if config is not None and isinstance(config.value, dict) and any(config.value.get(key) is True for key in _KEYS):
        return config.place
    setting = run.accelerate.settings.get("gradient_checkpointing") if run.accelerate is not None else None
    overridden = run.launch is not None and "fsdp_activation_checkpointing" in run.launch.invocation.options
    return setting.provenance.place if setting is not None and setting.value is True and not overridden else None


def _trl_default(run: Run) -> bool:
    """TRL's configs switch checkpointing on unless they are told not to (TRL 0.21 and up)."""
    assert run.training is not None
    arguments = arguments_call(run)
    known = run.training.settings.get("gradient_checkpointing")
    return (
        (arguments is None or not arguments.spreads)
        and run.training.uses_trl
        and known is not None
        and known.value is True
        and known.provenance.kind == "default"
    )


def _twice(run: Run, place: Place, by_fsdp: Place) -> Report:
    return Report(
        place,
        "gradient_checkpointing and FSDP's activation_checkpointing are both on: the Trainer stops with ValueError "
        "(can't be set to True simultaneously)",
        severity=Severity.ERROR,
        related=(Related(by_fsdp, "FSDP checkpoints, too"),),
        fix=_off(run),
        help=f"leave it to FSDP: {run.training.spelled(_NAMES[1], False) if run.training is not None else ''}",
    )


def _off(run: Run) -> Fix | None:
    argument = _argument(run)
    name = argument.name if argument is not None else _NAMES[1]
    if run.script is None:
        edits = run.training.write_argument(name, False) if run.training is not None else None
    else:
        arguments = run.script.facts.training_arguments
        if arguments is None or run.script.facts.parse_call is not None:
            return None
        edits = run.script.set_argument(arguments, name, "False")
    return offered("leave it to FSDP", Applicability.SAFE, edits)


def _gathers_again(run: Run) -> bool:
    """Whether weights are freed between forward and backward, so that recomputing gathers them once more.

    A checkpoint that does not reenter recomputes when the unit has gathered its weights for the backward pass, where
    FSDP leaves its own forward hooks out (``_pre_forward`` of ``torch/distributed/fsdp/_runtime_utils.py``). A model
    of the tree whose own code checkpoints without reentering does so whatever the Trainer asks for; a layer that
    checkpoints itself does so within its unit.
    """
    if older((run,), "transformers", _LAYERS_THEMSELVES) is False:
        return False
    fsdp = run.value("fsdp")
    sharded = isinstance(fsdp, Fsdp) and fsdp.gathers == 2
    reenters = run.value("use_reentrant") is True and not run.mentions("use_reentrant=False")
    return sharded and reenters and run.settings.get("quantization") is None


def _outside(run: Run, argument: Setting) -> Report:
    place = argument.provenance.place or anchor(run)
    text = place.document.text
    written = text[text.rfind("\n", 0, place.span.start) + 1 : place.span.end]
    name = next((each for each in _NAMES if each in written), argument.name)
    return Report(
        place,
        f"{name} under FSDP's full sharding recomputes outside of FSDP's units: every layer's weights are "
        "gathered once more in the backward pass",
        severity=Severity.WARNING if older((run,), "transformers", _LAYERS_THEMSELVES) else Severity.INFO,
        fix=_moved(run),
        help="use activation_checkpointing of fsdp_config instead",
    )


def _moved(run: Run) -> Fix | None:
    """Switch FSDP's on in the Accelerate file and the argument off."""
    off = _off(run)
    on: tuple[FileEdit, ...] | None = None
    if run.accelerate is not None:
        on = run.accelerate.write("gradient_checkpointing", True)
    if off is None or not on:
        return None
    return Fix("let FSDP checkpoint its own units", Applicability.SAFE, (*off.edits, *on))
