from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from lintfit.checks.helpers.context import FileContext, Report, RunContext
from lintfit.checks.helpers.readers import from_commit, milder, older
from lintfit.documents.model import Edit, Span
from lintfit.findings.model import Applicability, Fix, Severity
from lintfit.frozen import word_set
from lintfit.run.model import Run
from lintfit.run.stopping import refused_keywords
from lintfit.run.versions import range_of
from lintfit.sources.script.model import Argument, Call

if TYPE_CHECKING:  # runs without a script load no reader of Python
    from lintfit.sources.script.source import ScriptSource

_SINCE_5 = {
    "load_in_4bit": "quantization_config=BitsAndBytesConfig(load_in_4bit=True)",
    "load_in_8bit": "quantization_config=BitsAndBytesConfig(load_in_8bit=True)",
    "use_flash_attention_2": 'attn_implementation="flash_attention_2"',
}
"""Keywords of ``from_pretrained`` that transformers 5 no longer takes, and what says the same now."""

_RENAMED = {"evaluation_strategy": "eval_strategy", "max_seq_length": "max_length", "tokenizer": "processing_class"}
"""Keywords of configs and trainers that say the same under another name (the warnings of transformers 4.45's
``TrainingArguments`` and ``Trainer``, and of TRL 0.19's ``SFTConfig``)."""

_HELD = word_set(
    "bart beit bert bert-generation big_bird bigbird_pegasus blenderbot blenderbot-small camembert canine "
    "clip_text_model clip_vision_model deit dpr gpt2 gpt_neo hubert layoutlm led longformer luke m2m_100 "
    "marian mbart megatron-bert pegasus prophetnet rembert roberta roformer speech_to_text splinter t5 "
    "tapas vit wav2vec2 xlm-prophetnet xlm-roberta"
)
"""Model types whose config had the field ``gradient_checkpointing`` up to transformers 4.10.3
(``models/*/configuration_*.py``): where a checkpoint's ``config.json`` still holds it, the config takes the keyword."""

_OFF = frozenset({"False", "None"})
_CHOICE = re.compile(r"\n|\bif\b|\blambda\b|:=")
"""What cannot stand as the condition of a choice, or not on its line."""


def check_file(context: FileContext) -> Iterator[Report]:
    from lintfit.sources.script.source import ScriptSource

    source = context.source
    if not isinstance(source, ScriptSource):
        return
    for call in source.facts.loads:
        if call.name not in ("from_pretrained", "from_config") or not call.function.startswith("transformers."):
            continue
        passed = call.argument("gradient_checkpointing")
        if passed is not None and passed.is_written and _is_no_field(context.runs):
            yield _checkpointing(source, context.runs, call, passed)
        for name, successor in _SINCE_5.items():
            argument = call.argument(name)
            if argument is None or not argument.is_written:
                continue
            report = _dropped(source, context.runs, call, argument, successor)
            if report is not None:
                yield report


def check_run(context: RunContext) -> Iterator[Report]:
    for call, argument, taken in refused_keywords(context.run):
        library = "TRL" if taken.library == "trl" else taken.library
        yield Report(
            argument.whole,
            f"{call.name}({argument.name}=…) stops with TypeError in {library} "
            f"{range_of(context.run.versions, taken.library)} (unexpected keyword argument '{argument.name}')",
            help=_instead(call, argument),
        )


def _instead(call: Call, argument: Argument) -> str:
    """What takes a keyword's place: its new name, for what a trainer has handed over to its config in that."""
    name = _RENAMED.get(argument.name)
    if not call.name.endswith("Trainer") or argument.name == "tokenizer":
        return "delete it" if name is None else f"write {name}"
    return "take it out: the trainer's config says such things" if name is None else f"give the config {name}"


def _is_no_field(runs: Sequence[Run]) -> bool:
    """Whether all models are known, and no config of theirs takes the keyword for a field of its own."""
    known = [run.facts for run in runs]
    return bool(known) and all(
        facts is not None and facts.model_type not in _HELD and "gradient_checkpointing" not in facts.config
        for facts in known
    )


def _checkpointing(source: ScriptSource, runs: Sequence[Run], call: Call, argument: Argument) -> Report:
    return Report(
        argument.whole,
        f"{call.name}(gradient_checkpointing=…) stops with TypeError "
        "(unexpected keyword argument 'gradient_checkpointing')",
        fix=_move(source, runs, call, argument),
        help="pass it to the trainer's arguments, or call model.gradient_checkpointing_enable()",
    )


def _move(source: ScriptSource, runs: Sequence[Run], call: Call, argument: Argument) -> Fix | None:
    """Take the keyword away and switch checkpointing on where the Trainer looks for it."""
    from lintfit.checks.helpers.script_edits import without_argument

    removal = without_argument(source, call, argument)
    if argument.value in (False, None) or all(run.value("gradient_checkpointing") is True for run in runs):
        return Fix("delete it", Applicability.SAFE, removal)
    added = source.write("gradient_checkpointing", True)
    if not added:
        return None
    message = "move it to the trainer's arguments"
    return Fix(message, Applicability.SAFE, (*removal, *added), {"gradient_checkpointing": True})


def _dropped(
    source: ScriptSource, runs: Sequence[Run], call: Call, argument: Argument, successor: str
) -> Report | None:
    spared = older(runs, "transformers", "5")
    if spared or (spared is None and from_commit(runs, "transformers")):
        return None
    off = argument.value in (False, None)
    # What is off asks for nothing, and a project that still writes it mostly has the transformers of its time.
    unsure = milder(Severity.ERROR) if call.taken is True and not off else Severity.INFO
    return Report(
        argument.whole,
        f"{call.name}({argument.name}=…) stops with TypeError in transformers 5"
        + ("" if off else f"; {successor} says the same"),
        severity=Severity.ERROR if spared is False else unsure,
        fix=_replaced(source, call, argument),
        help="delete it" if off and _written(argument) in _OFF else f"write {successor}",
    )


def _replaced(source: ScriptSource, call: Call, argument: Argument) -> Fix | None:
    """Take away what is written as off, and name the attention kernel by its new keyword.

    What a variable says is off in the runs that are known and may be on in others, so it stays what it is.
    """
    from lintfit.checks.helpers.script_edits import without_argument
    from lintfit.documents import python_edits
    from lintfit.documents.python_reader import PythonDocument
    from lintfit.sources.script.writing import file_edits

    written = _written(argument)
    if written in _OFF:
        return Fix("delete it", Applicability.SAFE, without_argument(source, call, argument))
    if argument.name != "use_flash_attention_2" or call.argument("attn_implementation") is not None:
        return None
    document = argument.whole.document
    if not isinstance(document, PythonDocument) or _CHOICE.search(written):
        return None
    kernel = python_edits.quote(document, "flash_attention_2")
    start = argument.whole.span.start
    named = Edit(Span(start, start + len(argument.name)), "attn_implementation")
    chosen = Edit(argument.place.span, kernel if written == "True" else f"{kernel} if {written} else None")
    return Fix(
        "name the kernel by attn_implementation", Applicability.SAFE, file_edits.edits_in(document, (named, chosen))
    )


def _written(argument: Argument) -> str:
    place = argument.place
    return place.document.text[place.span.start : place.span.end].strip()
