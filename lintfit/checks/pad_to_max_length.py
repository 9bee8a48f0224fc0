from __future__ import annotations

import re
from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.readers import one_load
from lintfit.checks.helpers.runs import stated_at
from lintfit.documents.patterns import occurs
from lintfit.findings.model import Severity
from lintfit.run.model import Run
from lintfit.sources.script.model import Call

_LANGUAGE_MODEL = re.compile(r"(CausalLM|LMHeadModel|Seq2SeqLM|ConditionalGeneration)\.from_pretrained$")
_STATIC = re.compile(r"\b(xla|tpu|neuron|habana|hpu|torch\.compile|torch_compile|packing|group_texts|optimum)\b", re.I)
_ENCODES = re.compile(r"Seq2SeqLM|(T5|Bart|BART|Pegasus\w*|LED|M2M100|ProphetNet)ForConditionalGeneration")
"""Models that are given texts to sum up or to translate, many of which reach the length at which they are cut; their
logits are those of the labels' tokens."""
_LONG = 1024
"""Tokens from which on padding costs more than it saves in shapes."""


def check_run(context: RunContext) -> Iterator[Report]:
    run = context.run
    if run.script is None or not run.script.facts.trains or occurs(_STATIC, run.script.document.text):
        return
    load = one_load(run)
    if load is None or not _LANGUAGE_MODEL.search(load.function):
        return
    for call in run.script.calls("tokenizer"):
        padding = call.argument("padding")
        if padding is None or padding.value != "max_length" or call.spreads:
            continue
        length = _length(run, call)
        if length is not None and length >= _LONG:
            encodes = _ENCODES.search(load.function) is not None
            what = "activations" if encodes else "activations, logits"
            yield Report(
                padding.whole,
                f'padding="max_length" makes every sample {length:,} tokens: '
                f"{what} and time of the longest possible one in every batch",
                severity=Severity.WARNING if call.taken is True and not encodes else Severity.INFO,
                help="pad each batch to its longest sample (padding=True in a DataCollatorWithPadding)",
            )


def _length(run: Run, call: Call) -> int | None:
    """Tokens that a tokenizer pads to: its ``max_length``, else the ``model_max_length`` that a file states."""
    given = call.argument("max_length")
    if given is not None:
        return given.value if isinstance(given.value, int) else None
    length, place = run.value("seq_len"), stated_at(run, "seq_len")
    if place is None or not isinstance(length, int):
        return None
    line = place.document.position(place.span.start).line
    return length if "model_max_length" in place.document.text.splitlines()[line - 1] else None
