"""The rule required-or-unknown-key: see its page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lintfit.catalog.accelerate_keys import (
    AFTER,
    CLUSTER,
    DISTRIBUTED_TYPES,
    NOT_EXPORTED,
    PREFIXES,
    REMOVED,
    SAGEMAKER,
    SECTIONS,
)
from lintfit.checks.context import FileContext, Report
from lintfit.checks.readers import older, reader_of
from lintfit.checks.spelling import is_typo, nearest
from lintfit.checks.trees import assigned, data_of, renamed, without
from lintfit.documents.model import DataDocument, Entry, Node, Span
from lintfit.findings import Applicability, Fix, Severity
from lintfit.run.model import Run
from lintfit.settings import Place


def check_file(context: FileContext) -> Iterator[Report]:
    found = data_of(context, "accelerate")
    if found is not None:
        document, root = found
        yield from _distributed_type(document, root)
        yield from _unknown(document, root, context.runs)
        for section in SECTIONS:
            yield from _ignored(document, root, section)
    found = data_of(context, "deepspeed")
    if found is not None:
        yield from _nvme(*found)
        yield from _no_zero(context, *found)


def _distributed_type(document: DataDocument, root: Node) -> Iterator[Report]:
    kind = root.entry("distributed_type")
    if kind is None:
        yield Report(
            Place(document, root.entries[0].key_span if root.entries else root.span),
            '"distributed_type" is missing: accelerate stops with ValueError '
            '"A `distributed_type` must be specified in the config file."',
            fix=_certain_type(document, root),
            help='add "distributed_type"',
        )
        return
    sagemaker = _is_sagemaker(root)
    if isinstance(kind.value.value, str) and not sagemaker and kind.value.value not in DISTRIBUTED_TYPES:
        near = nearest(kind.value.value, DISTRIBUTED_TYPES)
        hint = f"; did you mean {near}?" if near else ""
        yield Report(
            Place(document, kind.value.span),
            f'"{kind.value.value}" is not a distributed_type: accelerate stops with a ValueError{hint}',
            fix=assigned(document, f"write {near}", Applicability.UNSAFE, {("distributed_type",): near})
            if near
            else None,
        )


def _certain_type(document: DataDocument, root: Node) -> Fix | None:
    deepspeed, fsdp = (bool(root.get(name)) for name in ("deepspeed_config", "fsdp_config"))
    if deepspeed == fsdp:
        return None
    kind = "DEEPSPEED" if deepspeed else "FSDP"
    return assigned(document, f"add distributed_type: {kind}", Applicability.UNSAFE, {("distributed_type",): kind})


def _is_sagemaker(root: Node) -> bool:
    environment = root.get("compute_environment")
    return environment is not None and environment.value == "AMAZON_SAGEMAKER"


def _unknown(document: DataDocument, root: Node, runs: Sequence[Run]) -> Iterator[Report]:
    known = SAGEMAKER if _is_sagemaker(root) else CLUSTER
    for entry in root.entries:
        if entry.key in known:
            continue
        place = Place(document, entry.key_span)
        since = REMOVED.get(entry.key)
        if since is not None:
            spared = older(runs, "accelerate", since)
            if not spared:
                yield Report(
                    place,
                    f'"{entry.key}" was removed: accelerate {since} and later stop with ValueError "had unknown keys"',
                    severity=Severity.WARNING if spared is None else Severity.ERROR,
                    fix=without(document, "delete it", Applicability.UNSAFE, (entry.key,)),
                )
            continue
        near = nearest(entry.key, known)
        covered = older(runs, "accelerate", AFTER)
        yield Report(
            place,
            f'"{entry.key}" is not a key of an Accelerate config: accelerate stops with ValueError "had unknown keys"'
            + (f'; did you mean "{near}"?' if near else ""),
            severity=Severity.ERROR if covered or (covered is None and near) else Severity.WARNING,
            fix=_rename(document, root, entry, near),
            help="" if near else "delete it, or upgrade accelerate if a newer one knows it",
        )


def _ignored(document: DataDocument, root: Node, section: str) -> Iterator[Report]:
    node = root.get(section)
    known = SECTIONS[section]
    prefix = PREFIXES.get(section, "")
    for entry in node.entries if node is not None else ():
        place = Place(document, entry.key_span)
        if entry.key in NOT_EXPORTED:
            if entry.value.value not in (None, "none"):
                yield Report(
                    place,
                    f'accelerate never hands "{entry.key}" to DeepSpeed: an nvme device then fails without a path',
                    help="put the nvme path into a DeepSpeed JSON and name that as deepspeed_config_file",
                )
            continue
        full = entry.key if entry.key.startswith(prefix) else prefix + entry.key
        if full in known or (f"{section}_{entry.key}" in known and section in PREFIXES):
            continue
        near = nearest(full, known)
        yield Report(
            place,
            f'nothing reads "{section}.{entry.key}": accelerate copies it aside and ignores it'
            + (f'; did you mean "{near}"?' if near else ""),
            severity=Severity.WARNING,
            fix=_rename(document, node, entry, near) if node is not None else None,
            help="" if near else "delete it",
        )


def _rename(document: DataDocument, mapping: Node, entry: Entry, near: str | None) -> Fix | None:
    if near is None or not is_typo(entry.key, near) or mapping.entry(near) is not None:
        return None
    return Fix(f'rename it to "{near}"', Applicability.UNSAFE, renamed(document, entry.key_span, near))


def _nvme(document: DataDocument, root: Node) -> Iterator[Report]:
    for name in ("offload_optimizer", "offload_param"):
        device = root.get("zero_optimization", name, "device")
        path = root.get("zero_optimization", name, "nvme_path")
        if device is not None and device.value == "nvme" and (path is None or path.value is None):
            yield Report(
                Place(document, device.span),
                f'"{name}" on nvme needs "nvme_path": DeepSpeed stops while it sets up ZeRO',
                help='add "nvme_path" with a folder on the local disk',
            )


def _no_zero(context: FileContext, document: DataDocument, root: Node) -> Iterator[Report]:
    if root.entry("zero_optimization") is None and reader_of(context.runs) in ("transformers", "accelerate"):
        yield Report(
            Place(document, Span(root.span.start, min(root.span.start + 1, len(document.text)))),
            '"zero_optimization" is missing: accelerate stops with ValueError '
            '"Please specify the ZeRO optimization config in the DeepSpeed config."',
            help='add "zero_optimization": {"stage": …}',
        )
