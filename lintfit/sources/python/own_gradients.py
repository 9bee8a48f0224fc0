"""When a training loop of the script's own lets go of its gradients: where ``zero_grad`` stands."""

from __future__ import annotations

import libcst as cst

from lintfit.sources.python import operators
from lintfit.sources.python.own_pass import Pass, own, passes
from lintfit.sources.python.reading import Reading
from lintfit.sources.python.values import Record


def read(reading: Reading) -> None:
    """Note it for the first backward pass whose loop or function has a ``zero_grad``."""
    if not own(reading):
        return
    records = {id(record.node): record for record in reading.records}
    for one in passes(reading):
        found = [call for call in one.calls() if _method(call) == "zero_grad"]
        if found:
            call, when = _when(reading, one, found, records)
            reading.state("zero_grad", when, call)
            return


def _method(call: cst.Call) -> str:
    """The name of the method that a call is of."""
    return call.func.attr.value if isinstance(call.func, cst.Attribute) else ""


def _when(reading: Reading, one: Pass, calls: list[cst.Call], records: dict[int, Record]) -> tuple[cst.Call, str]:
    """The call that decides, and when gradients go."""
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
