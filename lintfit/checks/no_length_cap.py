"""The rule no-length-cap: see its page."""

from __future__ import annotations

import re
from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.readers import milder, older
from lintfit.findings.model import Severity

_CONFIGS = re.compile(r"^trl\..*(SFT|DPO|KTO|CPO|ORPO|Reward|BCO)Config$")
_SINCE = {"SFT": "0.16", "DPO": "0.13"}
"""TRL from which None means no limit; before, the tokenizer's own or 512 took its place."""


def check_run(context: RunContext) -> Iterator[Report]:
    run = context.run
    made = run.script.facts.training_arguments if run.script is not None else None
    if run.script is None or made is None or not _CONFIGS.search(made.function):
        return
    length, packing = made.argument("max_length"), run.script.argument("packing")
    if length is None or length.value is not None or length.provenance.kind != "file":
        return
    if packing is not None and packing.value is not False:
        return
    kind = made.name.removesuffix("Config")
    spared = older((run,), "trl", _SINCE.get(kind, "0.16"))
    if spared:
        return
    yield Report(
        length.whole,
        "max_length=None: nothing is cut, so that the longest sample decides the peak",
        severity=Severity.WARNING if spared is False else milder(Severity.WARNING),
        help="set max_length to what the cards hold; lintfit estimate --seq-len N says it",
    )
