from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lintfit.checks.helpers.context import FileContext, Report
from lintfit.checks.helpers.fixes import spliced
from lintfit.checks.helpers.readers import flag_given, milder, milder_by_the_tree, older, reader_of
from lintfit.checks.helpers.trees import assigned
from lintfit.checks.helpers.values import FoundMistake, found_in
from lintfit.documents.model import Edit, Kind
from lintfit.findings.model import Applicability, Fix, Severity
from lintfit.frozen import replace
from lintfit.settings.model import Place
from lintfit.suggest import is_typo, nearest

_BLOCKS = {
    ("fp16",): "enabled",
    ("bf16",): "enabled",
    ("zero_optimization",): "stage",
    ("zero_optimization", "offload_param"): "device",
    ("zero_optimization", "offload_optimizer"): "device",
    ("optimizer",): "type",
    ("scheduler",): "type",
}
"""Sections that old files give as one value, and the key that holds that value today."""

_STAGES = (0, 1, 2, 3)
_DEVICES = ("none", "cpu", "nvme")


def check_file(context: FileContext) -> Iterator[Report]:
    for found in found_in(context):
        if found.mistake.stringly or found.mistake.path == ("distributed_type",):
            continue
        if _is_bare_no(found) and flag_given(context, "mixed_precision"):
            continue  # accelerate launch takes the file's only where the command says none
        checked = _checked_since(found)
        old = older(context.runs, found.dialect, checked[0]) if checked is not None else False
        if old is not True:
            report = _report(found, checked[1] if checked is not None and old is None else None)
            lost = reader_of(context.runs) is None and "x-overwritten-by" in found.mistake.schema
            report = replace(report, severity=Severity.INFO) if lost else report
            newer = checked is not None and checked[0] == _READS_PRECISION
            yield milder_by_the_tree(context, report, _READS_PRECISION) if newer else report


_READS_NO = "0.34"
"""The first accelerate that does not read a bare ``no`` of ``mixed_precision`` as the word: up to 0.33
``commands/config/config_args.py:ClusterConfig`` made it one."""


_READS_PRECISION = "0.17.1"
"""The first DeepSpeed that checks the keys of ``fp16`` and ``bf16`` (``runtime/precision_config.py``, which 0.17.0 has
not); before, each was read as it was used."""
_PRECISION = frozenset({"fp16", "bf16"})


def _checked_since(found: FoundMistake) -> tuple[str, str] | None:
    """The release from which on a value is refused, and what comes of it; None where every release refuses it."""
    if _is_bare_no(found):
        return _READS_NO, f"accelerate {_READS_NO} and later stop when they start the script"
    path = found.mistake.path
    if found.dialect == "deepspeed" and len(path) > 1 and path[0] in _PRECISION and found.mistake.refused:
        return _READS_PRECISION, f"DeepSpeed {_READS_PRECISION} and later stop with a ValidationError"
    return None


def _is_bare_no(found: FoundMistake) -> bool:
    return found.dialect == "accelerate" and found.mistake.path == ("mixed_precision",) and _value(found) is False


def _value(found: FoundMistake) -> object:
    return found.mistake.node.value


def _report(found: FoundMistake, by_version: str | None = None) -> Report:
    """A finding; ``by_version`` says what comes of it where only some releases refuse the value."""
    mistake = found.mistake
    meant = _meant(found)
    hint = f'; did you mean "{meant}"?' if meant is not None else ""
    consequence = by_version or found.consequence
    fix = _block(found) or _quoted(found) or _spelling(found, meant)
    return Report(
        Place(found.document, mistake.node.span),
        f"{found.statement} is not allowed ({mistake.allowed}): {consequence}{hint}",
        severity=milder(found.severity) if _is_bare_no(found) and by_version else _severity(found),
        fix=fix,
        help="" if hint or fix is not None else f"write {mistake.allowed}",
    )


def _severity(found: FoundMistake) -> Severity:
    """Information where the library does not check a value, and nobody knows whether it does any harm."""
    told = found.mistake.refused or found.mistake.coerced or found.tuned or found.mistake.schema.get("x-warned")
    return found.severity if told or found.fails_later else Severity.INFO


def _meant(found: FoundMistake) -> str | None:
    value = found.mistake.node.value
    if not isinstance(value, str):
        return None
    return nearest(value, (one for one in found.mistake.schema.get("enum", ()) if isinstance(one, str)))


def _spelling(found: FoundMistake, meant: str | None) -> Fix | None:
    if meant is None or not is_typo(str(found.mistake.node.value), meant):
        return None
    return assigned(found.document, f'write "{meant}"', Applicability.UNSAFE, {found.mistake.path: meant})


def _quoted(found: FoundMistake) -> Fix | None:
    """Quote a word of YAML that PyYAML takes for a truth value (``no``) and that the key knows as a word."""
    node, document = found.mistake.node, found.document
    text = document.slice(node.span)
    if document.kind is not Kind.YAML or not isinstance(node.value, bool):
        return None
    if text not in found.mistake.schema.get("enum", ()):
        return None
    return spliced(document, f"write '{text}'", Applicability.SAFE, [Edit(node.span, f"'{text}'")])


def _block(found: FoundMistake) -> Fix | None:
    """Write a section out that is one bare value; safe, because DeepSpeed stops at it as it stands."""
    key = _BLOCKS.get(tuple(map(str, found.mistake.path)))
    node = found.mistake.node
    if found.dialect != "deepspeed" or key is None or node.shape != "scalar" or not _fits(key, node.value):
        return None
    written = {key: node.value}
    text = str(written).replace("'", '"').replace("True", "true").replace("False", "false")
    return assigned(found.document, f"write it as {text}", Applicability.SAFE, {found.mistake.path: written})


def _fits(key: str, value: Any) -> bool:
    match key:
        case "enabled":
            return isinstance(value, bool) or value == "auto"
        case "stage":
            return type(value) is int and value in _STAGES
        case "device":
            return value in _DEVICES
    return isinstance(value, str)
