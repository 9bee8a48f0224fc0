"""The input of a frozen base, opened for reentrant checkpointing: ``enable_input_require_grads`` where adapters train.

Without it no gradient reaches the adapters ("element 0 of tensors does not require grad"; transformers 4 opens it only
for adapters of its own loader, ``PreTrainedModel.gradient_checkpointing_enable``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import libcst as cst

from lintfit.documents import python_edits
from lintfit.documents.patterns import lazy_pattern
from lintfit.documents.python_layout import step
from lintfit.errors import CannotWrite
from lintfit.sources.script.interpreter.expressions import dotted
from lintfit.sources.script.interpreter.values import Object, Record, plain
from lintfit.sources.script.reading.calls import Calls
from lintfit.sources.script.reading.loops import around
from lintfit.sources.script.writing.callers import for_one_caller
from lintfit.sources.script.writing.file_edits import Edits, Script, edited

OPENS_INPUT = 5
"""The first transformers whose ``gradient_checkpointing_enable`` opens the input of every model itself."""
_GRPO_OPENS = (0, 16)
"""The first TRL whose ``GRPOTrainer`` opens the input itself (``_enable_gradient_checkpointing``)."""
_OPENERS = (
    "enable_input_require_grads", "make_inputs_require_grad", "prepare_model_for_gradient_checkpointing",
)  # fmt: skip
_OF_QUANTIZED = ("prepare_model_for_int8_training", "prepare_model_for_kbit_training")
"""Open the input of a quantised base alone, and not where checkpointing is refused them (PEFT ``utils/other.py``)."""


def opens_input(source: Script) -> bool:
    """Whether adapters of a frozen model are trained, whose input nobody opens for reentrant checkpointing."""
    method = source.settings.get("method")
    calls = (record for record in source.reading.records if record.taken is not False)
    return method is not None and method.value == "lora" and not any(_opens(source, call) for call in calls)


def _opens(source: Script, call: Record) -> bool:
    """Whether a call opens the input, or may: of a base of which nobody knows whether it is quantised."""
    if call.name in _OPENERS:
        return True
    stated, asked = source.settings.get("quantization"), call.keyword("use_gradient_checkpointing")
    quantized = stated is not None and stated.value is not None
    return call.name in _OF_QUANTIZED and quantized and (asked is None or plain(asked) is not False)


def opens_input_elsewhere(source: Script) -> bool:
    """Whether a branch that does not run now opens the input."""
    return any(record.taken is False and _opens(source, record) for record in source.reading.records)


def _opened_by_switch(source: Script) -> bool:
    """Whether the input is opened once checkpointing is on: ``if args.gradient_checkpointing:``, or a parameter of that
    name."""
    closed = (record for record in source.reading.records if record.taken is False and _opens(source, record))
    tests = (dotted(test) for record in closed for test in record.tests)
    return any(test.rpartition(".")[2] == "gradient_checkpointing" for test in tests)


def opening(source: Script) -> Edits:
    """The line above the script's own ``get_peft_model`` where checkpointing is switched on elsewhere.

    Nothing where transformers opens the input itself or recomputation is not reentrant. Raises CannotWrite where a
    person has to place the line.
    """
    if not opens_input(source) or _opened_by_switch(source) or not _reentrant(source):
        return ()
    trainer = source.reading.found.trainer
    if trainer is not None and trainer.name == "GRPOTrainer" and not source.reading.at_least("trl", *_GRPO_OPENS):
        raise CannotWrite("GRPOTrainer before TRL 0.16 opens no input of its adapters for reentrant checkpointing")
    wraps = [record for record in source.reading.records if record.name == "get_peft_model" and record.taken is True]
    if not wraps:
        return ()
    wrap = wraps[0]
    line, first = wrap.statement, wrap.node.args[0].value if wrap.node.args else None
    named = isinstance(first, (cst.Name, cst.Attribute))
    code = cst.Module(()).code_for_node(first) if first is not None else "model"
    if len(wraps) > 1 or line is None or len(line.body) != 1 or not named or not source.reading.calls.is_written(line):
        raise CannotWrite(f"the adapters need {code}.enable_input_require_grads() before get_peft_model, too")
    try:
        for_one_caller(source.reading.calls, line)
    except CannotWrite as refusal:
        raise CannotWrite(f"the adapters need {code}.enable_input_require_grads(), too, and {refusal}") from None
    code = f"{code}.enable_input_require_grads()"
    document = source.reading.calls.document_of(line)
    if (switch := _switch_at_hand(source, line)) is not None:
        code = f"if {switch}:\n{step(document)}{code}"
    return edited(source.reading.calls, line, python_edits.insert_statement_before, code)


def _switch_at_hand(source: Script, line: cst.SimpleStatementLine) -> str | None:
    """What a line can ask for whether this launch checkpoints, for other launches of the script do not; None where no
    flag says so, or the function around it has no name for the arguments."""
    made, calls = source.reading.found.arguments, source.reading.calls
    if made is None or not made.parsed:
        return None
    document, function = calls.document_of(line), _function_of(calls, line)
    start, end = (document.span(function).start if function is not None else 0), document.span(line).start
    above = document.text[start:end]
    names = (name for name in _names(source, made, function) if re.search(rf"\b{name}\b", above) is not None)
    name = next(names, None)
    return f"{name}.gradient_checkpointing" if name is not None else None


def _names(source: Script, made: Object, function: cst.FunctionDef | None) -> Iterator[str]:
    """What a function calls the arguments that somebody hands it, or from which it makes the trainer."""
    for record in source.reading.records:
        if record.callee is not None and record.callee.node is function and function is not None:
            parameters = [each.name.value for each in function.params.params]
            for index, passed in enumerate(record.passed):
                if passed.value is made and (passed.name is not None or index < len(parameters)):
                    yield passed.name or parameters[index]
    trainer = source.reading.found.trainer
    if trainer is None or _function_of(source.reading.calls, trainer.node) is not function:
        return
    for passed in trainer.passed:
        if passed.value is made and isinstance(passed.node.value, cst.Name):
            yield passed.node.value.value


def _function_of(calls: Calls, node: cst.CSTNode) -> cst.FunctionDef | None:
    outer = around(calls.document_of(node), node)
    return next((each for each in outer if isinstance(each, cst.FunctionDef)), None)


_NOT_BY_SWITCH = lazy_pattern(
    r"\n([ \t]*)if [\w.]{0,60}\bgradient_checkpointing:[ \t]*\n\1[ \t]+"
    r"[\w.]{0,60}\bgradient_checkpointing_kwargs[ \t]*=[ \t]*"
    r"(?:\{[ \t]*[\"']use_reentrant[\"'][ \t]*:|dict\([ \t]*use_reentrant[ \t]*=)[ \t]*False\b"
)
"""What says so of a launch that checkpoints alone: a branch that is not taken as long as this one does not."""


def _reentrant(source: Script) -> bool:
    stated = source.settings.get("use_reentrant")
    if stated is not None and stated.value is False and stated.provenance.kind == "file":
        return False
    made = source.reading.found.arguments
    given = (
        plain(made.attributes["gradient_checkpointing_kwargs"])
        if made is not None and ("gradient_checkpointing_kwargs" in made.attributes)
        else None
    )
    if isinstance(given, Mapping) and given.get("use_reentrant") is False:
        return False
    if any(_NOT_BY_SWITCH.search(document.text) for document in source.reading.calls.documents):
        return False
    known = (source.reading.version(name) for name in ("transformers", "transformers>="))
    return not any(version is not None and version >= (OPENS_INPUT,) for version in known)
