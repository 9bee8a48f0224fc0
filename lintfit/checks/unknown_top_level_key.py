from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import FileContext, Report
from lintfit.checks.helpers.moves import (
    costs_nothing,
    hint,
    is_comment,
    is_foreign,
    is_held,
    moved,
    only_prints,
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
from lintfit.schema.sections import UnknownKey, load, unknown_keys
from lintfit.settings.model import Place


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
            idle = costs_nothing(root, unknown) or is_held(context.runs, unknown) or _saves_as_asked(root, unknown)
            idle = idle or only_prints(unknown)
            yield replace(report, severity=Severity.INFO) if idle else report


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
