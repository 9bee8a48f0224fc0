"""The rule removed-argument: see its page."""

from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.context import FileContext, Report
from lintfit.checks.python_edits import without_argument
from lintfit.checks.readers import milder, older
from lintfit.documents.model import Document
from lintfit.findings import Applicability, FileEdit, Fix, Severity
from lintfit.run.model import Run
from lintfit.sources.script_model import Argument, Call

_SINCE_5 = {
    "load_in_4bit": "quantization_config=BitsAndBytesConfig(load_in_4bit=True)",
    "load_in_8bit": "quantization_config=BitsAndBytesConfig(load_in_8bit=True)",
    "use_flash_attention_2": 'attn_implementation="flash_attention_2"',
}
"""Keywords of ``from_pretrained`` that transformers 5 no longer takes, and what says the same now."""

_LOADERS = ("from_pretrained", "from_config")


def check_file(context: FileContext) -> Iterator[Report]:
    facts = getattr(context.source, "facts", None)
    for call in facts.loads if facts is not None else ():
        if call.name not in _LOADERS or not call.function.startswith(("transformers.", "Auto")):
            continue
        passed = call.argument("gradient_checkpointing")
        if passed is not None:
            yield _checkpointing(context, call, passed)
        for name, successor in _SINCE_5.items():
            argument = call.argument(name)
            if argument is not None:
                report = _dropped(context, call, argument, successor)
                if report is not None:
                    yield report


def _checkpointing(context: FileContext, call: Call, argument: Argument) -> Report:
    return Report(
        argument.whole,
        f"{call.name}(gradient_checkpointing=…) stops with TypeError "
        "(unexpected keyword argument 'gradient_checkpointing')",
        fix=_move(context, argument),
        help="pass it to the trainer's arguments, or call model.gradient_checkpointing_enable()",
    )


def _move(context: FileContext, argument: Argument) -> Fix | None:
    """Take the keyword away and switch checkpointing on where the Trainer looks for it."""
    if argument.value is not True:
        return _delete(context.document, argument, Applicability.SAFE)
    for run in context.runs:
        if run.script is not None and run.script.document is context.document:
            return _moved(run, context.document, argument)
    return None


def _moved(run: Run, document: Document, argument: Argument) -> Fix | None:
    assert run.script is not None
    added: tuple[FileEdit, ...] | None = ()
    if run.value("gradient_checkpointing") is not True:
        added = run.script.write("gradient_checkpointing", True)
    removal = without_argument(document, argument.whole.span)
    if not added and run.value("gradient_checkpointing") is not True:
        return None
    return Fix(
        "move it to the trainer's arguments",
        Applicability.SAFE,
        (FileEdit(document.path, removal, document), *(added or ())),
        {"gradient_checkpointing": True},
    )


def _dropped(context: FileContext, call: Call, argument: Argument, successor: str) -> Report | None:
    spared = older(context.runs, "transformers", "5")
    if spared:
        return None
    return Report(
        argument.whole,
        f"{call.name}({argument.name}=…) stops with TypeError in transformers 5; {successor} says the same",
        severity=Severity.ERROR if spared is False else milder(Severity.ERROR),
        fix=_delete(context.document, argument, Applicability.SAFE) if argument.value in (False, None) else None,
        help=f"write {successor}",
    )


def _delete(document: Document, argument: Argument, applicability: Applicability) -> Fix:
    edit = without_argument(document, argument.whole.span)
    return Fix("delete it", applicability, (FileEdit(document.path, edit, document),))
