"""When a training loop of the script's own lets go of its gradients: where ``zero_grad`` stands."""

from __future__ import annotations

from lintfit.sources.script.interpreter import operators
from lintfit.sources.script.interpreter.values import Record
from lintfit.sources.script.reading.collector import Reading
from lintfit.sources.script.reading.own_pass import Pass, own, passes


def read(reading: Reading) -> None:
    """Note it for the first backward pass whose loop or function has a ``zero_grad``."""
    found = deciding(reading)
    if found is not None:
        call, when = _when(reading, *found)
        reading.state("zero_grad", when, call.node)


def deciding(reading: Reading) -> tuple[Pass, list[Record]] | None:
    """The first such backward pass, with the calls of ``zero_grad`` around it."""
    for one in passes(reading) if own(reading) else ():
        found = [call for call in one.calls() if call.name == "zero_grad"]
        if found:
            return one, found
    return None


def by_default(reading: Reading) -> bool:
    """Whether ``zero_grad()`` sets gradients to None: since torch 2, and in Accelerate's optimizer."""
    return reading.found.accelerator is not None or reading.at_least("torch", 2, 0)


def _when(reading: Reading, one: Pass, calls: list[Record]) -> tuple[Record, str]:
    """The call that decides, and when gradients go."""
    for call in calls:
        asked = call.value(0, "set_to_none")
        if operators.truth(asked) is False if asked is not None else not by_default(reading):
            return call, "never"
    behind = [call for call in calls if one.start(call.node) > one.at]
    if behind:
        return behind[-1], "step"
    forward = next((one.start(call.node) for call in one.calls() if one.is_forward(call.node)), None)
    between = [call for call in calls if forward is not None and forward < one.start(call.node)]
    return (between[-1], "backward") if between else (calls[-1], "forward")
