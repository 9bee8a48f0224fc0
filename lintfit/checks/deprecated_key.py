from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from lintfit.checks.helpers.context import FileContext, Report
from lintfit.checks.helpers.readers import installed, reader_of
from lintfit.checks.helpers.trees import asks_for_disk, assigned, data_of, dotted, renamed, without, zero_stage
from lintfit.documents.model import DataDocument, Entry, KeyPath, Node
from lintfit.findings.model import Applicability, Fix, Severity
from lintfit.schema.sections import Older, OutdatedKey, keys, load, outdated_keys
from lintfit.settings.model import Place

if TYPE_CHECKING:
    from lintfit.run.model import Run

_ZERO = "zero_optimization"
_OFFLOAD = {
    "cpu_offload": "offload_optimizer",
    "cpu_offload_param": "offload_param",
    "cpu_offload_params": "offload_param",
}
"""Old switches of ``zero_optimization`` and the sections that replaced them."""
_MODELS_SINCE = "0.7"
"""The first DeepSpeed whose ``zero_optimization`` is a pydantic model, which warns of old names and refuses both;
before, they were read without a word (``runtime/zero/config.py``, 0.6.7: its warning looks for names no file has)."""
_BF16_SINCE = "0.6"
"""DeepSpeed up to 0.5.10 knows bf16 by its old name alone (``runtime/constants.py``: ``BFLOAT16 = "bfloat16"``)."""
_GATHERED = "allgather_size"
"""Read only by ``read_zero_config_deprecated``, as the bucket size of a section that is a bare truth value."""


def check_file(context: FileContext) -> Iterator[Report]:
    found = data_of(context, "deepspeed")
    if found is not None:
        document, root = found
        older = installed(context.runs, "deepspeed")
        for outdated in outdated_keys(root, load("deepspeed"), older):
            yield from _deepspeed(document, root, outdated, older, context.runs)
        yield from _two_names(document, root, older)
        section = root.entry(_ZERO)
        if section is not None and isinstance(section.value.value, bool):
            yield _boolean(document, root, section)
    found = data_of(context, "accelerate")
    if found is not None:
        older = installed(context.runs, "accelerate")
        for outdated in outdated_keys(found[1], load("accelerate"), older):
            yield from _accelerate(*found, outdated, older, context.runs)


def _deepspeed(
    document: DataDocument, root: Node, outdated: OutdatedKey, older: Older, runs: Sequence[Run]
) -> Iterator[Report]:
    if outdated.removed_in is not None and older(outdated.removed_in):
        return
    if outdated.path[0] == _ZERO and not outdated.stops and older(_MODELS_SINCE):
        return
    if outdated.stops:
        yield _removed(document, root, outdated)
    elif outdated.path == ("bfloat16",):
        if older(_BF16_SINCE) is True and not root.states("bf16"):
            return
        yield _alias(document, root, outdated.entry, runs)
    elif outdated.path[-1] != "max_grad_norm":  # that one has a rule of its own
        section = root.get(*outdated.path[:-1]) or root
        yield _deprecated(document, root, section, outdated, runs)


def _removed(document: DataDocument, root: Node, outdated: OutdatedKey) -> Report:
    path, new = outdated.path, outdated.renamed_to
    if new is not None and (section := root.get(*path[:-1])) is not None:
        return Report(
            Place(document, outdated.entry.key_span),
            f'"{dotted(path)}" is no key of DeepSpeed {outdated.removed_in} and later, which stop with a '
            f'ValidationError (extra inputs are not permitted); "{new}" replaced it',
            severity=Severity.ERROR,
            fix=_successor(document, outdated, new) if section.entry(new) is None else None,
            help=f'delete it and keep "{new}"',
        )
    error = "a ValidationError" if len(path) > 1 and path[0] != _ZERO else "DeepSpeedConfigError"
    return Report(
        Place(document, outdated.entry.key_span),
        f'"{dotted(path)}" was removed: DeepSpeed {outdated.removed_in} and later stop with {error} '
        "as soon as the key is there",
        severity=Severity.ERROR,
        fix=without(document, "delete it: it is switched off", Applicability.SAFE, path)
        if _is_off(str(path[-1]), outdated.entry.value)
        else None,
        help="delete it, or keep DeepSpeed below that version",
    )


_WITHOUT_SWITCH = "sparse_attention"
"""A block that is on wherever it is there."""


def _is_off(key: str, node: Node) -> bool:
    """Whether a removed feature did nothing here even while it existed.

    A block without a switch of its own (``compression_training``) has one in each of its parts.
    """
    if node.shape != "mapping":
        return node.value in (False, None)
    own = node.get("enabled")
    if own is not None:
        return own.value in (False, None)
    parts = (below.value for path, below in node.walk() if path and path[-1] == "enabled")
    return key != _WITHOUT_SWITCH and all(value in (False, None) for value in parts)


def _boolean(document: DataDocument, root: Node, section: Entry) -> Report:
    from lintfit.sources.data_writer import REMOVE

    stage = 1 if section.value.value else 0
    written: dict[str, Any] = {"stage": stage}
    changes: dict[KeyPath, Any] = {(_ZERO,): written}
    size = root.get(_GATHERED)
    if stage and size is not None:
        written["allgather_bucket_size"] = size.value
        changes[(_GATHERED,)] = REMOVE
    return Report(
        Place(document, section.value.span),
        f'"{_ZERO}": {str(section.value.value).lower()} is the form of 2020: it means stage {stage}, '
        "and accelerate and transformers cannot read a stage from it",
        fix=assigned(document, f"write it as {json.dumps(written)}", Applicability.SAFE, changes),
    )


def _deprecated(
    document: DataDocument, root: Node, section: Node, outdated: OutdatedKey, runs: Sequence[Run]
) -> Report:
    key, new = outdated.path[-1], outdated.renamed_to
    place = Place(document, outdated.entry.key_span)
    zero = section.get(_ZERO)
    if key == _GATHERED and zero is not None and zero.value is True:
        return Report(
            place,
            f'"{key}" is the form of 2020: DeepSpeed reads it only beside a bare "{_ZERO}": true; '
            f'"allgather_bucket_size" inside "{_ZERO}" replaced it',
            help=f'write "{_ZERO}" out: --fix takes it along',
        )
    if new is None:
        return Report(
            place,
            f'"{key}" is deprecated and has no effect today',
            fix=without(document, "delete it", Applicability.SAFE, outdated.path),
        )
    if key == "cpu_offload_use_pin_memory":
        return Report(
            place,
            f'"{key}" is deprecated and its value is dropped; "pin_memory" inside "offload_…" replaces it',
            fix=without(document, "delete it: it has no effect", Applicability.SAFE, (_ZERO, str(key))),
        )
    if section.entry(new) is not None:
        return _both(document, outdated, new)
    off = outdated.removed_in is None and outdated.entry.value.value in (False, None)
    fate = f"deprecated{' and off' if off else ''}: DeepSpeed warns at every start"
    if outdated.removed_in is not None:
        fate = f"ignored by DeepSpeed {outdated.removed_in} and later"
    missed = not off and _is_missed(root, str(key), runs)
    message = f'"{key}" is {fate}; "{new}" replaced it' + (_MISSED if missed else "")
    # An old name that DeepSpeed reads still costs a line of the log.
    idle = (outdated.removed_in is None and not missed) or (outdated.path[0] == "aio" and not asks_for_disk(root))
    return Report(place, message, Severity.INFO if idle else None, fix=_successor(document, outdated, new))


_MISSED = (
    ", and accelerate, which looks for that alone, leaves the script's optimizer as it is: "
    "DeepSpeed stops with ZeRORuntimeException"
)


def _is_missed(root: Node, key: str, runs: Sequence[Run]) -> bool:
    """Whether the old name is one that accelerate does not know where it has to: it puts DeepSpeedCPUAdam in place of
    an optimizer that the config does not build only under the new one (1.15 ``accelerator.py:_prepare_deepspeed``),
    and DeepSpeed offloads no other (``engine.py:_configure_optimizer``)."""
    forced = root.get("zero_force_ds_cpu_optimizer")
    if key != "cpu_offload" or root.states("optimizer") or (forced is not None and forced.value is False):
        return False
    own = any(run.mentions("DeepSpeedCPUAdam") for run in runs)
    return not own and zero_stage(root) in (1, 2, 3) and reader_of(runs) in ("transformers", "accelerate")


def _both(document: DataDocument, outdated: OutdatedKey, new: str) -> Report:
    key = outdated.path[-1]
    place = Place(document, outdated.entry.key_span)
    if outdated.removed_in is not None:
        return Report(
            place,
            f'"{key}" is the old name of "{new}", which is there, too; the old one is ignored',
            fix=without(document, f'delete "{key}"', Applicability.SAFE, outdated.path),
        )
    return Report(
        place,
        f'"{key}" is the old name of "{new}", and both are there: DeepSpeed stops with an AssertionError',
        severity=Severity.ERROR,
        help=f'keep "{new}" and delete "{key}"',
    )


def _successor(document: DataDocument, outdated: OutdatedKey, new: str) -> Fix | None:
    entry = outdated.entry
    old = outdated.path
    if entry.key not in _OFFLOAD:
        return renamed(document, entry.key_span, new)
    if entry.value.value is False:
        return without(document, "delete it: it has no effect", Applicability.SAFE, old)
    if entry.value.value is True:
        from lintfit.sources.data_writer import REMOVE

        changes: dict[KeyPath, Any] = {old: REMOVE, (*old[:-1], new): {"device": "cpu"}}
        return assigned(document, f'write it as "{new}": {{"device": "cpu"}}', Applicability.SAFE, changes)
    return None


def _alias(document: DataDocument, root: Node, entry: Entry, runs: Sequence[Run]) -> Report:
    place = Place(document, entry.key_span)
    if root.states("bf16"):
        return Report(
            place,
            '"bfloat16" is the old name of "bf16"; both are there, and "bfloat16" is ignored',
            fix=without(document, 'delete "bfloat16"', Applicability.SAFE, ("bfloat16",)),
        )
    enabled = root.get("bfloat16", "enabled")
    word = enabled is not None and enabled.value == "auto"
    by_itself = reader_of(runs) == "deepspeed" and not word  # who knows both names (``get_bfloat16_config``)
    # Since 0.17.1 it is a pydantic model, which drops "auto" (``config_utils.py:DeepSpeedConfigModel.__init__``).
    left = ', and leave "auto": DeepSpeed takes that for true, or drops it (0.17.1 and later)' if word else ""
    return Report(
        place,
        f'"bfloat16" is the old name of "bf16"; transformers and accelerate only look for "bf16"{left}',
        Severity.INFO if runs and (by_itself or _is_bf16_anyway(document, word, runs)) else None,
        fix=renamed(document, entry.key_span, "bf16") if root.entry("bf16") is None else None,
    )


_DROPPED_SINCE = "0.17.1"
"""The first DeepSpeed that drops the word "auto" under the old name; before, it is true like any other."""


def _is_bf16_anyway(document: DataDocument, word: bool, runs: Sequence[Run]) -> bool:
    """Whether all runs are in bf16 as they ask for it: accelerate adds it, or DeepSpeed takes the word for true."""
    if all(_asks_for_bf16(run, document) for run in runs):
        return True
    taken = word and installed(runs, "deepspeed")(_DROPPED_SINCE) is True
    return taken and all(_has_flag_of_bf16(run) for run in runs)


def _has_flag_of_bf16(run: Run) -> bool:
    """Whether ``bf16`` is on among the arguments, or on a command line whose script's arguments are not read."""
    stated = run.training.settings.get("bf16") if run.training is not None else None
    if stated is not None:
        return stated.value is True
    flags = run.launch.flags if run.launch is not None else ()
    return any(flag.name == "bf16" and flag.is_on and not flag.doubtful for flag in flags)


def _asks_for_bf16(run: Run, document: DataDocument) -> bool:
    """Whether a run is in bf16 by what another file or its command says: accelerate then adds ``bf16`` by itself."""
    setting = run.settings.get("mixed_precision")
    place = setting.provenance.place if setting is not None else None
    return place is not None and place.document is not document and run.value("mixed_precision") == "bf16"


def _two_names(document: DataDocument, root: Node, older: Older) -> Iterator[Report]:
    """A field of DeepSpeed under both names that it accepts, which it refuses."""
    for key in keys(root, load("deepspeed"), older):
        name = key.schema.get("x-alias-of") if key.schema is not None else None
        section = root.get(*key.path[:-1])
        if name is not None and section is not None and section.entry(name) is not None:
            yield Report(
                Place(document, key.entry.key_span),
                f'"{key.entry.key}" is another name of "{name}", and both are there: '
                "DeepSpeed stops with a ValidationError",
                severity=Severity.ERROR,
                help="keep one of them",
            )


def _accelerate(
    document: DataDocument, root: Node, outdated: OutdatedKey, older: Older, runs: Sequence[Run]
) -> Iterator[Report]:
    """Keys that accelerate still translates, and those that it has forgotten; refused ones are another rule's."""
    new = outdated.renamed_to
    if outdated.stops or new is None or (outdated.removed_in is not None and older(outdated.removed_in)):
        return
    place = Place(document, outdated.entry.key_span)
    if outdated.removed_in is not None:
        mapping = root.get(*outdated.path[:-1])
        yield Report(
            place,
            f'"{dotted(outdated.path)}" is ignored by accelerate {outdated.removed_in} and later; "{new}" replaced it',
            severity=Severity.INFO if _costs_nothing(root, outdated, runs) else None,
            fix=renamed(document, outdated.entry.key_span, new, Applicability.UNSAFE)
            if mapping is not None and mapping.entry(new) is None
            else None,
        )
        return
    yield Report(
        place,
        f'"{dotted(outdated.path)}" is the form of old files, which accelerate still translates; "{new}" replaced it',
        severity=Severity.INFO,
        fix=_translated(document, root, outdated),
    )


def _costs_nothing(root: Node, outdated: OutdatedKey, runs: Sequence[Run]) -> bool:
    """Whether nothing is lost by a forgotten key: it asks for nothing, or FSDP has nobody to share with."""
    asked = outdated.entry.value.value
    off = asked in (False, None) or str(asked).lower() in ("no_prefetch", "none", "auto")
    return off or (outdated.path[0] == "fsdp_config" and _has_one_process(root, runs))


def _has_one_process(root: Node, runs: Sequence[Run]) -> bool:
    """Whether FSDP shards nothing, so that nothing is lost by what it would do between processes."""
    count = root.get("num_processes")
    counts = {run.value("gpus") for run in runs} or {count.value if count is not None else None}
    return counts == {1}


def _translated(document: DataDocument, root: Node, outdated: OutdatedKey) -> Fix | None:
    """What accelerate makes of the old key (``BaseConfig.process_config``), written out."""
    from lintfit.sources.data_writer import REMOVE

    value = outdated.entry.value.value
    changes: dict[KeyPath, Any] = {outdated.path: REMOVE}
    if outdated.path == ("fp16",):
        if root.entry("mixed_precision") is None and value:
            changes["mixed_precision",] = "fp16"
    elif outdated.path == ("dynamo_backend",) and isinstance(value, str):
        if root.entry("dynamo_config") is not None:
            return None
        if value != "NO":
            changes["dynamo_config",] = {"dynamo_backend": value}
    else:
        return None
    return assigned(document, "write it in today's form", Applicability.SAFE, changes)
