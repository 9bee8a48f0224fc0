from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lintfit.checks.helpers.context import FileContext, Report
from lintfit.checks.helpers.moves import costs_nothing, hint, is_comment, is_foreign, moved, rename
from lintfit.checks.helpers.readers import installed, milder_by_the_tree, reader_of
from lintfit.checks.helpers.trees import asks_for_disk, data_of, dotted, without, zero_stage
from lintfit.documents.model import DataDocument, Node
from lintfit.findings.model import Applicability, Fix, Severity
from lintfit.frozen import replace
from lintfit.schema.sections import UnknownKey, load, newer_than, unknown_keys
from lintfit.settings.model import Place
from lintfit.versions import RECENT, before

if TYPE_CHECKING:
    from lintfit.run.key_reads import Read


def check_file(context: FileContext) -> Iterator[Report]:
    found = data_of(context, "deepspeed")
    if found is None:
        return
    document, root = found
    schema, older = load("deepspeed"), installed(context.runs, "deepspeed")
    beyond = newer_than(schema, older)
    piped = reader_of(context.runs) == "deepspeed"
    for unknown in unknown_keys(root, schema, older):
        if len(unknown.path) > 1 and _is_of_pipeline(unknown) and not piped:
            yield _of_pipeline(document, unknown)
        elif len(unknown.path) > 1:
            report = _report(document, root, _unmoved(root, unknown), beyond)
            if unknown.forbidden and unknown.forbidden_since is not None:
                report = milder_by_the_tree(context, report, unknown.forbidden_since)
            read = context.read_by(unknown.path) if is_foreign(unknown) and not unknown.never_read else None
            if read is None:
                yield report
            elif unknown.forbidden:
                yield _read_first(report, read)


_PIPELINE = "pipeline"
"""The section that DeepSpeed reads for a ``PipelineModule`` alone (``runtime/config.py:get_pipeline_config``), which
neither the Trainer nor accelerate makes: a value that stands there by mistake does nothing, and may do harm where it
counts (``prescale_gradients`` with ZeRO-3: ``stage3.py`` asserts that it is off). A section there went astray."""


def _is_of_pipeline(unknown: UnknownKey) -> bool:
    return unknown.path[0] == _PIPELINE and unknown.entry.value.shape == "scalar"


def _of_pipeline(document: DataDocument, unknown: UnknownKey) -> Report:
    return Report(
        Place(document, unknown.entry.key_span),
        f'"{dotted(unknown.path)}" is not a key of DeepSpeed, which reads "{_PIPELINE}" for a PipelineModule alone',
        severity=Severity.INFO,
        help="delete it",
    )


def _unmoved(root: Node, unknown: UnknownKey) -> UnknownKey:
    """The same without the place that it belongs at, where DeepSpeed would stop at it there (``stage3.py`` asserts that
    gradients are not scaled before they are reduced)."""
    prescales = unknown.entry.key == "prescale_gradients" and unknown.entry.value.value is True
    return replace(unknown, home=None) if prescales and zero_stage(root) == 3 else unknown


def _report(document: DataDocument, root: Node, unknown: UnknownKey, beyond: bool) -> Report:
    key = dotted(unknown.path)
    place = Place(document, unknown.entry.key_span)
    # What all recent releases do is said of DeepSpeed.
    recent = not unknown.forbidden_since or not before(RECENT["deepspeed"], unknown.forbidden_since)
    gate = "" if recent else f" {unknown.forbidden_since} and later"
    if unknown.since is not None:
        fate = "stops with a ValidationError" if unknown.forbidden else "ignores it"
        return Report(
            place,
            f'"{key}" is a key of DeepSpeed {unknown.since} and later; the one that the project asks for {fate}',
            severity=_severity(root, unknown, sure=True, beyond=False),
            help=f"ask for deepspeed>={unknown.since}, or delete the key",
        )
    if not unknown.forbidden and is_comment(root, unknown):
        message = f'"{key}" is not a key of DeepSpeed, which ignores it: it reads like a comment'
        return Report(place, message, severity=Severity.INFO)
    meant = "" if unknown.never_read else hint(unknown)
    stop = "stop" if gate else "stops"
    fate = f"{stop} with a ValidationError (extra inputs are not permitted)" if unknown.forbidden else "ignores it"
    fix = _fix(document, root, unknown)
    taken = fix is None and unknown.home is not None
    return Report(
        place,
        f'"{key}" is not a key of DeepSpeed: DeepSpeed{gate if unknown.forbidden else ""} {fate}{meant}',
        severity=_severity(root, unknown, sure=bool(meant) or unknown.never_read, beyond=beyond),
        fix=fix,
        help="" if meant and not taken else "delete it",
    )


def _read_first(report: Report, read: Read) -> Report:
    """A key that the library refuses and code reads: right where that code takes it out before the library sees it."""
    message = f"{report.message}; {read.where} {'takes it out' if read.takes else 'reads it'}"
    if read.takes:
        return replace(report, message=message, severity=Severity.INFO, help="")
    return replace(report, message=message, help="take it out before DeepSpeed gets the config")


def _severity(root: Node, unknown: UnknownKey, *, sure: bool, beyond: bool) -> Severity:
    """A key that nobody knows may be one of a release after the schema's. A loss scale that bf16 has no use for is
    missed by nobody, and neither is what asks for nothing, or stands where it belongs as well."""
    unneeded = unknown.path[0] == "bf16" and unknown.home == ("fp16",)
    missed = not (unneeded or is_foreign(unknown) or costs_nothing(root, unknown) or _is_of_no_use(root, unknown))
    if not unknown.forbidden and not missed:
        return Severity.INFO
    return Severity.ERROR if unknown.forbidden and (sure or not beyond) else Severity.WARNING


_PRINTS = "flops_profiler"
"""The section that is read key by key and says no more than what is printed."""


def _is_of_no_use(root: Node, unknown: UnknownKey) -> bool:
    """Whether a slip of the pen stands in a section that does nothing for the training: it is switched off, it only
    prints, or it is ``aio`` where nothing goes to NVMe. A key of another section is missed there all the same."""
    name = str(unknown.path[0])
    switch = root.get(name, "enabled")
    off = switch is not None and switch.value is False
    idle = off or name == _PRINTS or (name == "aio" and not asks_for_disk(root))
    return idle and unknown.home is None


def _fix(document: DataDocument, root: Node, unknown: UnknownKey) -> Fix | None:
    if unknown.never_read:
        return without(document, "delete it: it never had an effect there", Applicability.SAFE, unknown.path)
    if unknown.home is not None:
        return moved(document, root, unknown)
    section = root.get(*unknown.path[:-1])
    if unknown.suggestion is None or section is None:
        return None
    return rename(document, section, unknown.entry, unknown.suggestion)
