"""When a training loop of the script's own lets go of its gradients: where ``zero_grad`` stands."""

from __future__ import annotations

import libcst as cst

from lintfit.sources.python import operators
from lintfit.sources.python.own_pass import Pass, own, passes
from lintfit.sources.python.reading import Reading
from lintfit.sources.python.values import Record


def read(reading: Reading) -> None:
    """Note it for the first backward pass whose loop or function has a ``zero_grad``."""
    found = deciding(reading)
    if found is not None:
        call, when = _when(reading, *found)
        reading.state("zero_grad", when, call)


def deciding(reading: Reading) -> tuple[Pass, list[cst.Call]] | None:
    """The first such backward pass, with the calls of ``zero_grad`` around it."""
    for one in passes(reading) if own(reading) else ():
        found = [call for call in one.calls() if method(call) == "zero_grad"]
        if found:
            return one, found
    return None


def method(call: cst.Call) -> str:
    """The name of the method that is called; empty for a function."""
    return call.func.attr.value if isinstance(call.func, cst.Attribute) else ""


def _when(reading: Reading, one: Pass, calls: list[cst.Call]) -> tuple[cst.Call, str]:
    """The call that decides, and when gradients go."""
    records = {id(record.node): record for record in reading.records}
    for call in calls:
        if _fills(reading, records.get(id(call))):
            return call, "never"
    behind = [call for call in calls if one.start(call) > one.at]
    if behind:
        return behind[-1], "step"
    forward = next((one.start(call) for call in one.calls() if one.is_forward(call)), None)
    between = [call for call in calls if forward is not None and forward < one.start(call)]
    return (between[-1], "backward") if between else (calls[-1], "forward")


def _fills(reading: Reading, record: Record | None) -> bool:
    """Whether gradients are filled with zeros: asked for, or torch 1's default, which Accelerate does not share."""
    asked = record.value(0, "set_to_none") if record is not None else None
    if asked is not None:
        return operators.truth(asked) is False
    return reading.found.accelerator is None and not reading.at_least("torch", 2, 0)
