"""The rule unknown-nested-key: see its page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from lintfit.catalog.deepspeed_keys import AFTER, FORBIDS_SINCE, REMOVED_ZERO, SECTIONS, TOP_LEVEL
from lintfit.checks.context import FileContext, Report
from lintfit.checks.readers import milder, older
from lintfit.checks.spelling import is_typo, nearest
from lintfit.checks.trees import assigned, data_of, dotted, renamed, without
from lintfit.documents.model import DataDocument, Entry, KeyPath, Node
from lintfit.findings import Applicability, Fix, Severity
from lintfit.run.model import Run
from lintfit.settings import Place
from lintfit.sources.detect import is_megatron

_NEVER_DID_ANYTHING = {
    ("bf16",): SECTIONS["fp16",],
    ("fp16",): frozenset({"opt_level", "loss_scaler", "initial_loss_scale"}),
    ("zero_optimization", "offload_optimizer"): frozenset({"buffer_size", "max_in_cpu"}),
}
"""Keys that stand in many copied configs and that no release read in that section."""


def check_file(context: FileContext) -> Iterator[Report]:
    found = data_of(context, "deepspeed")
    if found is None or is_megatron(entry.key for entry in found[1].entries):
        return
    document, root = found
    for path, known in SECTIONS.items():
        section = root.get(*path)
        for entry in section.entries if section is not None else ():
            if entry.key not in known and not (path == ("zero_optimization",) and entry.key in REMOVED_ZERO):
                report = _report(document, root, path, entry, context.runs)
                if report is not None:
                    yield report


def _report(
    document: DataDocument, root: Node, path: tuple[str, ...], entry: Entry, runs: Sequence[Run]
) -> Report | None:
    since = FORBIDS_SINCE.get(path)
    if since and older(runs, "deepspeed", since):
        return None
    near = nearest(entry.key, SECTIONS[path])
    never = entry.key in _NEVER_DID_ANYTHING.get(path, ())
    plain = bool(near or never or entry.key in TOP_LEVEL) and not since
    covered = older(runs, "deepspeed", AFTER)
    severity = Severity.ERROR if covered or (covered is None and plain) else milder(Severity.ERROR)
    gate = f" {since} and later" if since else ""
    hint = f'; did you mean "{near}"?' if near and not never else ""
    return Report(
        Place(document, entry.key_span),
        f'"{dotted((*path, entry.key))}" is not a key of DeepSpeed: '
        f"DeepSpeed{gate} stops with a ValidationError (extra inputs are not permitted){hint}",
        severity=severity,
        fix=_fix(document, root, path, entry, near, never),
        help="" if hint else "delete it",
    )


def _fix(
    document: DataDocument, root: Node, path: tuple[str, ...], entry: Entry, near: str | None, never: bool
) -> Fix | None:
    whole = (*path, entry.key)
    if never:
        return without(document, "delete it: it never had an effect there", Applicability.SAFE, whole)
    if entry.key in TOP_LEVEL and root.entry(entry.key) is None:
        from lintfit.sources.data_writer import REMOVE

        moved: dict[KeyPath, Any] = {whole: REMOVE, (entry.key,): entry.value.plain()}
        return assigned(document, "move it to the top level", Applicability.SAFE, moved)
    section = root.get(*path)
    if near and is_typo(entry.key, near) and section is not None and section.entry(near) is None:
        return Fix(f'rename it to "{near}"', Applicability.UNSAFE, renamed(document, entry.key_span, near))
    return None
