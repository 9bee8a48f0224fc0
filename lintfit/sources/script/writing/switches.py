"""The script's own switches for adapters and a base in four bits: fields of its command line, found by name or by the
branches that ask for them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import libcst as cst

from lintfit.documents.python_walk import walk
from lintfit.errors import CannotWrite
from lintfit.sources.script.interpreter.values import Object, Record, objects, plain
from lintfit.sources.script.writing.file_edits import Edits

if TYPE_CHECKING:
    from lintfit.sources.script.writing.edits import Writer

_NO_SWITCH = "the script makes its adapters or quantized base itself, and no one flag switches them on"
FOUR_BITS = ("load_in_4bit", "use_4bit", "q_lora", "qlora", "use_qlora")
"""Fields by which scripts ask for a base in four bits, the plainest first."""
BITS = ("bits", "quantization_bit", "quant_bits")
"""Fields that say in how many bits the base is loaded."""


def holder(writer: Writer, function: str) -> Object | None:
    """What TRL's ``get_peft_config(model_args)`` and its like are given, where what they return is asked for."""
    for record in writer.source.reading.records:
        if record.name == function and record.taken is True:
            return next(objects(record.value(0, "model_args", "model_config")), None)
    return None


def fields(writer: Writer, made: Object, **values: Any) -> Edits | None:
    """The first of some fields that says something else; None where it cannot be written."""
    for name, value in values.items():
        current = writer.source.reading.attribute(made, name)
        known = plain(current) if current is not None else None
        if known not in (value, [value]):
            return writer.field(made, (name,), value)
    return ()


def switch_on(writer: Writer, names: Iterable[str]) -> Edits | None:
    """The one field of the command line with one of these names that is off."""
    found = writer.parsed_fields(names, lambda value: value is False)
    if len(found) != 1:
        raise CannotWrite(_NO_SWITCH)
    return writer.for_this_run(*next(iter(found.values())), True)


def asked_for(made: Iterable[Record]) -> set[str]:
    """The names that the branches ask for in which calls stand that this run does not make: fields of the command line
    (``if args.use_lora``), and parameters that are named like them (``if quantize``)."""
    tests = [test for record in made if record.taken is False for test in record.tests]
    nodes = [node for test in tests for node in walk(test)]
    fields = {node.attr.value for node in nodes if isinstance(node, cst.Attribute)}
    return fields or {node.value for node in nodes if isinstance(node, cst.Name)}


def _in_four(record: Record) -> bool:
    """Whether a ``BitsAndBytesConfig`` is one of four bits."""
    asked = record.keyword("load_in_4bit")
    return asked is not None and plain(asked) is True


def four_bits_on(writer: Writer) -> Edits | None:
    """The next field of the command line that asks for four bits: one after the other, until the base has them."""
    off = writer.parsed_fields(FOUR_BITS, lambda value: value is False)
    wide = writer.parsed_fields(BITS, lambda value: value in (16, 32, None))
    name = next((name for name in FOUR_BITS if name in off), None)
    if name is not None:
        return writer.for_this_run(*off[name], True)
    own = [r for r in writer.source.reading.records if r.name == "BitsAndBytesConfig" and _in_four(r)]
    switches = writer.parsed_fields(asked_for(own), lambda value: value is False)
    if len(switches) == 1:
        return writer.for_this_run(*next(iter(switches.values())), True)
    if len(wide) != 1:
        raise CannotWrite(_NO_SWITCH)
    return writer.for_this_run(*next(iter(wide.values())), 4)
