from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.fixes import related
from lintfit.checks.helpers.readers import COMPARES, MISMATCH, mismatch_stops, older, reader_of
from lintfit.checks.helpers.runs import change, names_unread_file
from lintfit.checks.helpers.trees import assigned
from lintfit.checks.helpers.wording import spot
from lintfit.findings.model import Applicability, Fix, Severity
from lintfit.run.model import Run
from lintfit.settings.model import AUTO, Setting
from lintfit.sources.deepspeed import bf16_section

_PRECISIONS = ("bf16", "fp16")
_BY_ACCELERATE = "4.30"
"""The transformers whose Trainer first trains through accelerate."""
_LOOKS = "0.20"
"""The oldest accelerate in which its check was seen."""

OF_HANDED_ON = True


def check_run(context: RunContext) -> Iterator[Report]:
    run = context.run
    reader = reader_of((run,))
    if run.value("engine") != "deepspeed" or run.missing or names_unread_file(run):
        return
    if reader == "transformers" and run.deepspeed is not None:
        yield from _config_against_arguments(run)
        yield from _launcher_is_not_heard(run)
    elif reader == "transformers" and run.accelerate is not None:
        yield from _launcher_against_arguments(run)
    elif reader == "accelerate" and run.deepspeed is not None:
        yield from _config_against_launcher(run)


def _config_against_arguments(run: Run) -> Iterator[Report]:
    """transformers compares ``fp16.enabled`` and ``bf16.enabled`` with the arguments unless they are "auto"."""
    assert run.deepspeed is not None and run.training is not None
    if older((run,), "transformers", COMPARES):
        return
    old_name = bf16_section(run.deepspeed.document.root) != "bf16"
    for name in _PRECISIONS:
        block, argument = run.deepspeed.settings.get(name), run.training.settings.get(name)
        if name == "bf16" and old_name:
            continue  # transformers does not look at "bfloat16"
        if block is None or not isinstance(block.value, bool) or argument is None:
            continue
        value = bool(argument.value) if argument.value is None or isinstance(argument.value, bool) else None
        if value is None or value == block.value or argument.provenance.kind == "assumed":
            continue
        if _left_to_trl(run, argument):
            continue
        assert block.provenance.place is not None
        stated = argument.provenance.kind != "default"
        absent = f" (not given{_said_in_its_place(run, name)})"
        stops, severity = mismatch_stops(run)
        if severity is Severity.ERROR and (asked := _beside_the_other(run)) is not None:
            stops = f"the Trainer stops with {_error_beside(run, asked)}"
        yield Report(
            block.provenance.place,
            f"{name}.enabled is {str(block.value).lower()} here, and the trainer's {name} is {str(value).lower()}"
            f"{'' if stated else absent}: {stops}",
            severity=severity,
            related=related(argument.provenance.place, f"{name} is set here"),
            fix=_follow(run, name, stated or value),
            help=f'write "auto" here and {_said(run, name)} to train in {name}',
        )


def _said_in_its_place(run: Run, name: str) -> str:
    """What the launch says where it does not pass a precision: the other one, or nothing."""
    if run.launch is None:
        return ""
    other = run.launch.flag("fp16" if name == "bf16" else "bf16")
    if other is not None and _other_is_on(run, name):
        return f": {spot(other.place)} passes --{other.name}{f' {other.value}' if other.value else ''}"
    return f": {spot(run.launch.place)} does not pass --{name}"


def _beside_the_other(run: Run) -> str | None:
    """The precision that the arguments ask for where the config switches the other one on; None where it does not."""
    assert run.deepspeed is not None
    for name, other in (("fp16", "bf16"), ("bf16", "fp16")):
        block = run.deepspeed.settings.get(other)
        if block is not None and block.value is True and _other_is_on(run, other):
            return name
    return None


def _error_beside(run: Run, name: str) -> str:
    """The error that comes where the arguments ask for one precision and the config for the other: accelerate looks
    when the Trainer makes its Accelerator (``DeepSpeedPlugin.set_mixed_precision``, 0.20 to 1.2.1), before transformers
    compares the two."""
    before = older((run,), "transformers", _BY_ACCELERATE)
    if before is True:
        return MISMATCH
    if before is False or older((run,), "accelerate", _LOOKS) is False:
        other = "fp16" if name == "bf16" else "bf16"
        words = f"arg cannot be set to `{name}` when `{other}` is set in the DeepSpeed config file."
        return f"ValueError (`--mixed_precision` {words})"
    return "ValueError"


def _left_to_trl(run: Run, argument: Setting) -> bool:
    """Whether TRL fills the switch after it was read: none stands for bf16 without fp16
    (TRL 0.19, ``SFTConfig.__post_init__``)."""
    return argument.value is None and run.training is not None and run.training.uses_trl


def _spelled(run: Run, name: str) -> str:
    """The trainer's switch as it is said where the run says its arguments."""
    return (run.training.spelled(name, True) if run.training is not None else None) or f"{name}=True"


def _said(run: Run, name: str) -> str:
    return f"{name}=True in the arguments" if run.recipe is None else _spelled(run, name)


def _follow(run: Run, name: str, arguments_decide: bool) -> Fix | None:
    """The stated argument wins; where only the config asks for 16 bits, the argument is added.

    Not beside the other precision, which the arguments ask for: which of the two is meant, nobody says.
    """
    assert run.deepspeed is not None
    if arguments_decide:
        document = run.deepspeed.document
        return assigned(document, f"let the arguments fill {name}", Applicability.SAFE, {(name, "enabled"): "auto"})
    if _other_is_on(run, name):
        return None
    return change(run, f"pass {_spelled(run, name)}, as the config has it", Applicability.UNSAFE, {name: True})


def _other_is_on(run: Run, name: str) -> bool:
    """Whether the arguments ask for the other of fp16 and bf16; a default gives way."""
    other = run.training.settings.get("fp16" if name == "bf16" else "bf16") if run.training is not None else None
    return other is not None and other.value not in (False, None) and other.provenance.kind != "default"


def _launcher_is_not_heard(run: Run) -> Iterator[Report]:
    """With a config of its own the Trainer fills "auto" from its arguments, whatever accelerate was told."""
    assert run.deepspeed is not None and run.training is not None
    asked = _launcher(run)
    if asked is None or asked.value not in _PRECISIONS or run.value("mixed_precision") != "no":
        return
    name = str(asked.value)
    block = run.deepspeed.settings.get(name)
    if run.training.settings.get("deepspeed") is None or asked.provenance.place is None:
        return
    if (block is not None and block.value is not AUTO) or _other_is_on(run, name):
        return
    yield Report(
        asked.provenance.place,
        f"mixed_precision {name} does not reach a Trainer that has its own DeepSpeed config: "
        f"without {_said(run, name)} the run trains in fp32",
        severity=Severity.WARNING,
        fix=change(run, f"pass {_spelled(run, name)}", Applicability.UNSAFE, {name: True}),
    )


def _launcher_against_arguments(run: Run) -> Iterator[Report]:
    """Without a JSON the plugin takes its precision from the launcher and compares it with the arguments."""
    assert run.training is not None
    asked = _launcher(run)
    if asked is None or asked.value not in _PRECISIONS or asked.provenance.place is None:
        return
    name = str(asked.value)
    argument = run.training.settings.get(name)
    other = run.training.settings.get("fp16" if name == "bf16" else "bf16")
    if argument is None or argument.provenance.kind == "assumed" or _left_to_trl(run, argument):
        return
    # What the arguments ask for takes the launcher's place before the two are compared
    # (``TrainingArguments.__post_init__`` sets ``ACCELERATE_MIXED_PRECISION``): the other precision wins.
    if argument.value not in (False, None) or (other is not None and other.value not in (False, None)):
        return
    yield Report(
        asked.provenance.place,
        f"mixed_precision is {name} here, and the trainer's {name} is off: the Trainer stops with ValueError "
        "(DeepSpeed config values that mismatch TrainingArguments values)",
        related=related(argument.provenance.place, f"{name} is set here"),
        fix=change(run, f"pass {_spelled(run, name)}, as the launcher has it", Applicability.UNSAFE, {name: True}),
        help=f"pass {_spelled(run, name)}, or set mixed_precision to what the arguments say",
    )


def _config_against_launcher(run: Run) -> Iterator[Report]:
    """Accelerate alone: a literal in the JSON wins, silently where it switches the asked precision off."""
    assert run.deepspeed is not None
    asked = run.training.settings.get("mixed_precision") if run.training is not None else None
    asked = asked if asked is not None and asked.known else _launcher(run)
    if asked is None or asked.value not in _PRECISIONS:
        return
    name = str(asked.value)
    other = "fp16" if name == "bf16" else "bf16"
    mine, theirs = run.deepspeed.settings.get(name), run.deepspeed.settings.get(other)
    if theirs is not None and theirs.value is True and theirs.provenance.place is not None:
        yield Report(
            theirs.provenance.place,
            f"{other}.enabled is true here, and mixed_precision is {name}: accelerate stops with ValueError",
            related=related(asked.provenance.place, f"mixed_precision is {name} here"),
            help=f'write "auto" for both blocks to train in {name}',
        )
    elif mine is not None and mine.value is False and mine.provenance.place is not None:
        yield Report(
            mine.provenance.place,
            f"{name}.enabled is false here, and mixed_precision is {name}: the config wins, "
            "and the run trains in fp32 without a message",
            severity=Severity.WARNING,
            related=related(asked.provenance.place, f"mixed_precision is {name} here"),
            fix=assigned(
                run.deepspeed.document,
                f'let mixed_precision fill {name} ("auto")',
                Applicability.UNSAFE,
                {(name, "enabled"): "auto"},
            ),
        )


def _launcher(run: Run) -> Setting | None:
    """What ``accelerate launch`` exports: its flag, else its file."""
    for source in (run.launch, run.accelerate):
        setting = source.settings.get("mixed_precision") if source is not None else None
        if setting is not None and setting.known:
            return setting
    return None
