"""Whether the model is compiled, whose memory no estimate counts."""

from __future__ import annotations

from lintfit.sources.script.interpreter import operators
from lintfit.sources.script.reading.collector import Reading, something
from lintfit.sources.training_words import COMPILING


def read(reading: Reading) -> None:
    """Note an argument, or a call of ``torch.compile``, that compiles the model."""
    made = reading.found.arguments
    for name in COMPILING:
        value = made.attributes.get(name) if made is not None else None
        if something(value) and operators.truth(value):
            reading.put("torch_compile", value, to=True)
            return
    for record in reading.records:
        if record.function == "torch.compile" and record.taken and record.passed:
            reading.state("torch_compile", True, record.node)
            return
