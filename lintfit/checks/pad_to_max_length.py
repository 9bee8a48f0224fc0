from __future__ import annotations

import re
from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.readers import one_load
from lintfit.findings.model import Severity

_LANGUAGE_MODEL = re.compile(r"(CausalLM|LMHeadModel|Seq2SeqLM|ConditionalGeneration)\.from_pretrained$")
_STATIC = re.compile(r"\b(xla|tpu|neuron|habana|hpu|torch\.compile|torch_compile|packing|group_texts|optimum)\b", re.I)
_LONG = 1024
"""Tokens from which on padding costs more than it saves in shapes."""


def check_run(context: RunContext) -> Iterator[Report]:
    run = context.run
    if run.script is None or not run.script.facts.trains or _STATIC.search(run.script.document.text):
        return
    load = one_load(run)
    if load is None or not _LANGUAGE_MODEL.search(load.function):
        return
    for call in run.script.calls("tokenizer"):
        padding, length = call.argument("padding"), call.argument("max_length")
        if padding is None or padding.value != "max_length" or length is None:
            continue
        if isinstance(length.value, int) and length.value >= _LONG:
            yield Report(
                padding.whole,
                f'padding="max_length" makes every sample {length.value:,} tokens: activations, logits and time of the '
                "longest possible one in every batch",
                severity=Severity.WARNING if call.taken is True else Severity.INFO,
                help="pad each batch to its longest sample (padding=True in a DataCollatorWithPadding)",
            )
