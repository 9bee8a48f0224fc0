"""The input of a frozen base, opened for reentrant checkpointing: ``enable_input_require_grads`` where adapters train.

Without it no gradient reaches the adapters ("element 0 of tensors does not require grad"; transformers 4 opens it only
for adapters of its own loader, ``PreTrainedModel.gradient_checkpointing_enable``).
"""

from __future__ import annotations

from collections.abc import Mapping

import libcst as cst

from lintfit.documents import python_edits
from lintfit.errors import CannotWrite
from lintfit.sources.script.interpreter.values import Record, plain
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


def opening(source: Script) -> Edits:
    """The line above the script's own ``get_peft_model`` where checkpointing is switched on elsewhere.

    Nothing where transformers opens the input itself or recomputation is not reentrant. Raises CannotWrite where a
    person has to place the line.
    """
    if not opens_input(source) or not _reentrant(source):
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
    return edited(source.reading.calls, line, python_edits.insert_statement_before, code)


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
    known = (source.reading.version(name) for name in ("transformers", "transformers>="))
    return not any(version is not None and version >= (OPENS_INPUT,) for version in known)
