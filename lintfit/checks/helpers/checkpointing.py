"""What the rules about gradient checkpointing ask of a script: which keywords it runs with, and how to change them."""

from __future__ import annotations

from typing import Literal

from lintfit.checks.helpers.fixes import offered
from lintfit.checks.helpers.runs import stated_at
from lintfit.checks.helpers.script_calls import arguments_call
from lintfit.findings.model import Applicability, Fix
from lintfit.run.model import Run
from lintfit.settings.model import Place
from lintfit.sources.script.model import Argument, Call

KEYWORDS = ("gradient_checkpointing_kwargs", "activation_checkpointing_kwargs")


def keywords_of(call: Call) -> Argument | None:
    """The keywords for torch's checkpoint that a call is given."""
    argument = call.argument(*KEYWORDS)
    if argument is None and call.name == "gradient_checkpointing_enable" and call.positional:
        return call.positional[0]
    return argument


def reentrant_of(argument: Argument | None) -> bool | None:
    """What keywords say of ``use_reentrant``; None where they say nothing that is known."""
    value = argument.value.get("use_reentrant") if argument is not None and isinstance(argument.value, dict) else None
    return value if isinstance(value, bool) else None


def how_known(run: Run) -> Literal["stated", "default", "guess"] | None:
    """Where a run's ``use_reentrant`` comes from: the files, a known version's default, or the newest version's."""
    setting = run.settings.get("use_reentrant")
    if setting is None or not isinstance(setting.value, bool):
        return None
    if setting.provenance.kind != "default":
        return "stated"
    return "default" if "transformers" in run.versions else "guess"


def stated_place(run: Run) -> Place | None:
    """Where the keywords stand, else where checkpointing is switched on."""
    arguments = arguments_call(run)
    stated = stated_at(run, "use_reentrant", "gradient_checkpointing")
    return arguments.place if stated is None and arguments is not None else stated


def with_reentrant(run: Run, value: bool) -> Fix | None:
    """A fix that makes the Trainer checkpoint so; None where its arguments do not stand in a script."""
    arguments = arguments_call(run)
    if run.script is None or arguments is None or run.script.facts.parse_call or run.script.facts.trainer is None:
        return None
    present = next((name for name in KEYWORDS if name in arguments.arguments), KEYWORDS[0])
    given = arguments.arguments.get(present)
    if given is not None and not (isinstance(given.value, dict) and set(given.value) <= {"use_reentrant"}):
        return None
    edits = run.script.set_argument(arguments, present, f'{{"use_reentrant": {value}}}')
    return offered(f"checkpoint with use_reentrant={value}", Applicability.SAFE, edits)
