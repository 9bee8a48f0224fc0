from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from lintfit.checks.helpers.context import FileContext, Report
from lintfit.checks.helpers.moves import (
    costs_nothing,
    hint,
    is_comment,
    is_foreign,
    moved,
    place_name,
    rename,
    stands_at_home,
)
from lintfit.checks.helpers.readers import installed
from lintfit.checks.helpers.trees import data_of
from lintfit.documents.model import DataDocument, Node
from lintfit.documents.patterns import lazy_pattern
from lintfit.findings.model import Severity
from lintfit.frozen import replace
from lintfit.run.model import Run
from lintfit.schema.sections import UnknownKey, load, unknown_keys
from lintfit.settings.model import Place
from lintfit.settings.registry import SETTINGS


def check_file(context: FileContext) -> Iterator[Report]:
    found = data_of(context, "deepspeed")
    if found is None:
        return
    document, root = found
    for unknown in unknown_keys(root, load("deepspeed"), installed(context.runs, "deepspeed")):
        # Code of the tree may read a key that is not one of DeepSpeed's that went astray.
        own = is_foreign(unknown) and context.read_by(unknown.path) is not None
        if len(unknown.path) == 1 and not own:
            report = _report(document, root, unknown)
            idle = costs_nothing(root, unknown) or _holds(context.runs, unknown) or _saves_as_asked(root, unknown)
            idle = idle or _only_prints(unknown)
            yield replace(report, severity=Severity.INFO) if idle else report


_PRINTS = lazy_pattern(
    r"(?:^|_)(?:verbos(?:e|ity)|prints?|log|logs|logger|logging|tqdm|progress_bar)(?:_|$)"
    r"|^(?:wall_clock_breakdown|memory_breakdown|dump_state|comms_logger)$",
    re.IGNORECASE,
)
_SAID = lazy_pattern(r"_(?:prob|probs|probability|likelihood|scale|softmax)", re.IGNORECASE)
"""What logarithms are of."""


def _only_prints(unknown: UnknownKey) -> bool:
    """Whether a key changes at most what is logged or printed: by its name, or by that of the key that was meant."""
    names = (str(unknown.entry.key), unknown.suggestion or "")
    return any(_PRINTS.search(name) is not None and _SAID.search(name) is None for name in names)


_ELSEWHERE = {"num_gpus": "gpus", "n_gpus": "gpus", "n_gpu": "gpus", "world_size": "gpus"}
"""Settings under names of nobody's."""
_FLASH = lazy_pattern(r"(?:use_)?flash_att(?:ention|n)(?:_2)?")


def _holds(runs: Sequence[Run], unknown: UnknownKey) -> bool:
    """Whether it is a setting that every run has from elsewhere, as the key says it: ``gradient_checkpointing``."""
    name, value = str(unknown.entry.key), unknown.entry.value.value
    name = _ELSEWHERE.get(name, name)
    if value is True and _FLASH.fullmatch(name):
        name, value = "attention", "flash_attention_2"
    return bool(runs) and name in SETTINGS and all(run.value(name) == value for run in runs)


_SAVES = lazy_pattern(r"(?:save|gather)_\w*(?:weights|model|16bit|state_dict)")


def _saves_as_asked(root: Node, unknown: UnknownKey) -> bool:
    """Whether a key of nobody's asks for the whole weights, which the config has ZeRO-3 gather already."""
    gathers = root.get("zero_optimization", "stage3_gather_16bit_weights_on_model_save")
    asked = unknown.entry.value.value is True and _SAVES.search(str(unknown.entry.key)) is not None
    return is_foreign(unknown) and asked and gathers is not None and gathers.value is True


def _report(document: DataDocument, root: Node, unknown: UnknownKey) -> Report:
    key = unknown.entry.key
    place = Place(document, unknown.entry.key_span)
    if unknown.since is not None:
        return Report(
            place,
            f'"{key}" is a key of DeepSpeed {unknown.since} and later; the one that the project asks for ignores it',
            help=f"ask for deepspeed>={unknown.since}, or delete the key",
        )
    ignored = f'DeepSpeed has no top-level key "{key}" and ignores it'
    if is_comment(root, unknown):
        return Report(place, f"{ignored}: it reads like a comment", severity=Severity.INFO)
    if stands_at_home(root, unknown) and unknown.home is not None:
        return Report(place, f"{ignored}; {place_name(unknown.home)} has it already", help="delete it")
    if unknown.home is not None:
        return Report(
            place,
            f"{ignored}{hint(unknown)}",
            fix=moved(document, root, unknown),
            help=f"move it into {place_name(unknown.home)}",
        )
    if unknown.suggestion is not None:
        fix = rename(document, root, unknown.entry, unknown.suggestion)
        return Report(place, f"{ignored}{hint(unknown)}", fix=fix)
    return Report(place, ignored, help="delete it, or write the key that it was meant to be")
