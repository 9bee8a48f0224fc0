"""What rules ask of a script's calls beyond the few that its facts name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lintfit.run.model import Run
from lintfit.sources.script.model import Call

if TYPE_CHECKING:
    from lintfit.sources.script.source import ScriptSource


def calls_of(source: ScriptSource, *names: str) -> Iterator[Call]:
    """The calls of functions with these last names that this run may come by, in order of execution."""
    for record in source.reading.records:
        if record.name in names and record.taken is not False:
            yield source.reading.calls.call(record)


def arguments_call(run: Run) -> Call | None:
    """The call that makes the trainer's arguments; None where no script makes them."""
    return run.script.facts.training_arguments if run.script is not None else None


def trained_load(source: ScriptSource) -> Call | None:
    """The call that loads the model that is trained; None where it is not seen."""
    record = source.reading.found.trained_load
    return source.reading.calls.call(record) if record is not None else None


def may_quantize(load: Call) -> bool:
    """Whether another launch may quantize by the same call: a switch stands there, which this run has off."""
    given = (load.argument(name) for name in ("load_in_8bit", "load_in_4bit"))
    places = [argument.place for argument in given if argument is not None]
    return any(place.document.text[place.span.start : place.span.end] != "False" for place in places)


def hands_over(source: ScriptSource, call: Call, name: str) -> bool:
    """Whether a call certainly gets an object of the script's for this argument, in every branch."""
    from lintfit.sources.script.interpreter.values import Object

    return isinstance(source.reading.calls.records[id(call)].keyword(name), Object)


def on_trained_model(source: ScriptSource, call: Call) -> bool:
    """Whether a method is called on the trained model as a whole, wrapped or not."""
    from lintfit.sources.script.reading.facts import is_trained

    return is_trained(source.reading.found, source.reading.calls.records[id(call)].receiver)


def knows_deepspeed(source: ScriptSource, before: Call) -> bool | None:
    """Whether transformers knows of the DeepSpeed config when a call runs.

    It does while an ``HfDeepSpeedConfig`` is alive: one that the arguments or the ``Accelerator`` keep, or one
    made by hand. None where only the order is not known.
    """
    facts = source.facts
    found = (facts.training_arguments, facts.parse_call, facts.accelerator)
    makers: list[Call] = [call for call in found if call is not None]
    makers += source.told_by_parsers
    makers += calls_of(source, "HfDeepSpeedConfig", "HfTrainerDeepSpeedConfig")
    if not makers:
        return False
    return any(call.order < before.order and call.taken is True for call in makers) or None
