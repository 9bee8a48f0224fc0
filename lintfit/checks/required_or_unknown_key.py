from __future__ import annotations

from collections.abc import Iterator, Sequence

from lintfit.catalog.arguments import is_launch_option
from lintfit.checks.helpers.context import FileContext, Report
from lintfit.checks.helpers.fixes import spliced
from lintfit.checks.helpers.moves import DTYPES, hint, is_default, is_held, is_nothing, only_prints, rename, switch_of
from lintfit.checks.helpers.readers import changed_by_script, flag_given, installed, older, reader_of
from lintfit.checks.helpers.trees import assigned, data_of, dotted, without
from lintfit.checks.helpers.wording import listed
from lintfit.documents.model import DataDocument, Edit, KeyPath, Kind, Node, Span
from lintfit.findings.model import Applicability, Fix, Severity
from lintfit.frozen import replace
from lintfit.run.model import Run
from lintfit.schema.sections import (
    Older,
    OutdatedKey,
    UnknownKey,
    load,
    newer_than,
    outdated_keys,
    resolved,
    unknown_keys,
)
from lintfit.settings.model import Place
from lintfit.suggest import nearest

_NVME_PATHS = ("offload_optimizer_nvme_path", "offload_param_nvme_path")


def check_file(context: FileContext) -> Iterator[Report]:
    found = data_of(context, "accelerate")
    if found is not None:
        document, root = found
        than = installed(context.runs, "accelerate")
        yield from _distributed_type(document, root, than)
        yield from _keys(context, document, root, than)
        yield from _required(document, root)
        yield from _not_handed_on(document, root)
        yield from _processes(context, document, root)
        yield from _gpu_ids(context, document, root)
    found = data_of(context, "deepspeed")
    if found is not None:
        yield from _nvme(*found)
        yield from _no_zero(context, *found)
        yield from _no_batch(context, *found)


def _distributed_type(document: DataDocument, root: Node, than: Older) -> Iterator[Report]:
    kind = root.entry("distributed_type")
    if kind is None:
        yield _no_type(document, root, than)
        return
    sagemaker = _is_sagemaker(root)
    if sagemaker and kind.value.value == "NO":
        yield Report(
            Place(document, kind.value.span),
            '"distributed_type": "NO" in a SageMaker file: accelerate adds "num_processes" itself, which this kind of '
            'file lacks, and stops with ValueError "had unknown keys"',
            fix=_unquoted(document, kind.value),
            help="write NO without quotes, which YAML reads as false and accelerate as no distribution",
        )
    whole = load("accelerate")
    types = resolved(whole, whole, root)["properties"]["distributed_type"]["enum"]
    allowed = [name for name in types if isinstance(name, str)]
    if isinstance(kind.value.value, str) and kind.value.value not in allowed:
        near = nearest(kind.value.value, allowed)
        hint = f"; did you mean {near}?" if near else ""
        yield Report(
            Place(document, kind.value.span),
            f'"{kind.value.value}" is not a distributed_type: accelerate stops with a ValueError{hint}',
            fix=assigned(document, f"write {near}", Applicability.UNSAFE, {("distributed_type",): near})
            if near
            else None,
        )


def _no_type(document: DataDocument, root: Node, than: Older) -> Report:
    """Without a type accelerate stops before it compares the other keys (``config_args.py:process_config``, 1.14)."""
    foreign = [key.entry.key for key in unknown_keys(root, load("accelerate"), than) if _stops_at(key)]
    deepspeeds = bool(foreign) and all(key in load("deepspeed")["properties"] for key in foreign)
    what = "; this is a DeepSpeed config" if deepspeeds else ""
    return Report(
        Place(document, root.entries[0].key_span if root.entries else root.span),
        '"distributed_type" is missing: accelerate stops with ValueError '
        f'"A `distributed_type` must be specified in the config file."{what}',
        fix=_certain_type(document, root),
        help="name it as --deepspeed_config_file beside --use_deepspeed, or as deepspeed_config_file in a config of "
        "accelerate's own"
        if deepspeeds
        else 'add "distributed_type"' + (f", and delete {listed(foreign)}" if foreign else ""),
    )


def _stops_at(key: UnknownKey) -> bool:
    return key.forbidden and len(key.path) == 1


def _unquoted(document: DataDocument, node: Node) -> Fix | None:
    if document.kind is not Kind.YAML or document.slice(node.span) not in ("'NO'", '"NO"'):
        return None
    return spliced(document, "write NO without quotes", Applicability.UNSAFE, [Edit(node.span, "NO")])


def _required(document: DataDocument, root: Node) -> Iterator[Report]:
    """What a SageMaker file cannot do without; the type of distribution is spoken of already."""
    whole = load("accelerate")
    for name in resolved(whole, whole, root).get("required", ()):
        if root.entry(name) is None and name != "distributed_type":
            yield Report(
                Place(document, root.entries[0].key_span if root.entries else root.span),
                f'"{name}" is missing: accelerate stops with TypeError "missing a required argument"',
                help=f'add "{name}"',
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


def _keys(context: FileContext, document: DataDocument, root: Node, than: Older) -> Iterator[Report]:
    schema = load("accelerate")
    compared = root.entry("distributed_type") is not None
    for outdated in outdated_keys(root, schema, than) if compared else ():
        if outdated.stops and outdated.removed_in is not None and not than(outdated.removed_in):
            yield _removed(document, outdated)
    beyond = newer_than(schema, than)
    for unknown in unknown_keys(root, schema, than):
        if unknown.path[0] == "deepspeed_config" and is_launch_option(unknown.entry.key):
            continue  # accelerate launch takes such keys for its own flags (``_validate_launch_command``)
        if (not compared and _stops_at(unknown)) or _is_said_beside(unknown, root):
            continue
        if not unknown.forbidden and _is_handed_on(context, unknown):
            continue
        yield (
            _refused(document, root, unknown, beyond)
            if unknown.forbidden
            else _ignored(document, root, unknown, context.runs)
        )


def _is_handed_on(context: FileContext, unknown: UnknownKey) -> bool:
    """Whether a script of the tree opens such files itself and takes the section for a use of its own, and no
    ``accelerate launch`` is given this one: the Trainer's ``fsdp_config`` has other keys (``xla_fsdp_v2``)."""
    launchers = {run.launch.launcher for run in context.runs if run.launch is not None and run.accelerate is not None}
    return len(unknown.path) > 1 and "accelerate" not in launchers and context.read_by(unknown.path[:1]) is not None


def _removed(document: DataDocument, outdated: OutdatedKey) -> Report:
    return Report(
        Place(document, outdated.entry.key_span),
        f'"{outdated.entry.key}" was removed: accelerate {outdated.removed_in} and later stop with ValueError '
        '"had unknown keys"',
        severity=Severity.ERROR,
        fix=without(document, "delete it", Applicability.UNSAFE, (outdated.entry.key,)),
    )


def _refused(document: DataDocument, root: Node, unknown: UnknownKey, beyond: bool) -> Report:
    key, place = unknown.entry.key, Place(document, unknown.entry.key_span)
    if unknown.since is not None:
        return Report(
            place,
            f'"{key}" is a key of accelerate {unknown.since} and later; the one that the project asks for stops '
            'with ValueError "had unknown keys"',
            help=f"ask for accelerate>={unknown.since}, or delete the key",
        )
    return Report(
        place,
        f'"{key}" is not a key of an Accelerate config: accelerate stops with ValueError "had unknown keys"'
        f"{hint(unknown)}",
        severity=Severity.WARNING if beyond and not unknown.suggestion else Severity.ERROR,
        fix=_rename(document, root, unknown),
        help="" if hint(unknown) else "delete it, or upgrade accelerate if a newer one knows it",
    )


def _ignored(document: DataDocument, root: Node, unknown: UnknownKey, runs: Sequence[Run]) -> Report:
    key, place = dotted(unknown.path), Place(document, unknown.entry.key_span)
    if _is_of_other_engine(unknown.home, root):
        unknown = replace(unknown, home=None)
    if unknown.since is not None:
        return Report(
            place,
            f'"{key}" is a key of accelerate {unknown.since} and later; the one that the project asks for ignores it',
            severity=Severity.INFO if _asks_for_nothing_new(unknown) else Severity.WARNING,
            help=f"ask for accelerate>={unknown.since}, or delete the key",
        )
    return Report(
        place,
        f'nothing reads "{key}": accelerate copies it aside and ignores it{hint(unknown)}',
        severity=Severity.INFO if _is_default(unknown, root) or is_held(runs, unknown) else Severity.WARNING,
        fix=_rename(document, root, unknown),
        help="" if hint(unknown) else _instead(unknown),
    )


_SECTION_OF = {"DEEPSPEED": "deepspeed_config", "FSDP": "fsdp_config"}
"""The section that accelerate reads by ``distributed_type``."""


def _is_of_other_engine(home: KeyPath | None, root: Node) -> bool:
    """Whether a section is for another engine than the file's: a key is of no use there either."""
    kind = root.get("distributed_type")
    own = _SECTION_OF.get(str(kind.value)) if kind is not None else None
    return bool(home) and home is not None and own is not None and home[0] in _SECTION_OF.values() and home[0] != own


def _instead(unknown: UnknownKey) -> str:
    """What to do with a key that nobody reads: DeepSpeed's own may stand in a JSON of DeepSpeed's."""
    known = load("deepspeed")["properties"]
    of_deepspeed = unknown.path[0] == "deepspeed_config" and unknown.entry.key in known
    return "delete it, or name a DeepSpeed JSON that has it as deepspeed_config_file" if of_deepspeed else "delete it"


_BOTH_WAYS = frozenset({"fsdp_reshard_after_forward", "reshard_after_forward"})
"""Switches that change something where they are off as well."""


def _asks_for_nothing_new(unknown: UnknownKey) -> bool:
    """Whether a key that is newer than the library asks for what that does anyway: a switch that is off leaves out what
    only later versions can do (0.23's ``FullyShardedDataParallelPlugin`` has every process load the weights, as
    ``fsdp_cpu_ram_efficient_loading: false`` does later), and FSDP's version 1 is the only one."""
    key, value = str(unknown.path[-1]), unknown.entry.value.value
    if key in ("fsdp_version", "version"):
        return str(value) == "1"
    return key not in _BOTH_WAYS and (value is False or str(value).lower() in ("false", "no"))


_SAME = {"max_grad_norm": "gradient_clipping", "stage": "zero_stage"}
"""Keys by which other files say what one of ``deepspeed_config`` says."""


def _is_said_beside(unknown: UnknownKey, root: Node) -> bool:
    """Whether a key that accelerate reads says the same in the same section."""
    said = root.get(*unknown.path[:-1], _SAME.get(unknown.entry.key, unknown.entry.key))
    return len(unknown.path) > 1 and said not in (None, unknown.entry.value) and said.value == unknown.entry.value.value


_UNSAID_STAGE = 2
"""The stage of ZeRO that accelerate takes where its file says none (``DeepSpeedPlugin.__post_init__``)."""


_AT_STAGE_3 = frozenset(
    {"zero3_init_flag", "zero3_save_16bit_model", "offload_param_device", "offload_param_nvme_path"}
)
"""Keys of accelerate's that do nothing below ZeRO's stage 3 (1.14 ``DeepSpeedPlugin.__post_init__``)."""


def _is_default(unknown: UnknownKey, root: Node) -> bool:
    """Whether nothing is lost by a key that nobody reads: it says what happens without it, waits to be filled in, tells
    what to print, or how to offload what stays where it is, or speaks of another stage of ZeRO than the file's."""
    section, key, value = unknown.path[0], str(unknown.path[-1]), unknown.entry.value.value
    meant = unknown.section.get("properties", {}).get(unknown.suggestion, {})
    if only_prints(unknown):
        return True
    if section == "fsdp_config":
        other = any(root.get(section, name) is not None for name in ("fsdp_sharding_strategy", "sharding_strategy"))
        whole = key == "fsdp" and value == "full_shard" and not other
        limits = key.removeprefix("fsdp_") == "limit_all_gathers"
        return whole or (value is True if limits else is_nothing(unknown.entry.value, meant))
    if section != "deepspeed_config":
        return False
    if value == "auto":
        return True
    if key.startswith("offload_"):
        device = root.get(section, f"{'_'.join(key.split('_')[:2])}_device")
        return device is None or device.value in ("none", None)
    if key in ("bf16_enabled", "fp16_enabled"):
        said = root.get("mixed_precision")
        return value is (said is not None and said.value == key.partition("_")[0])
    if key in DTYPES:  # what takes its place is mixed_precision
        said, enabled = root.get("mixed_precision"), switch_of(unknown.entry.value)
        asked = said is not None and said.value == DTYPES[key]
        return enabled is not None and (enabled.value == "auto" or enabled.value is asked)
    stage = root.get(section, "zero_stage")
    if key == "overlap_comm":
        return value is None or value is (stage is not None and stage.value == 3)
    whole = load("deepspeed")["properties"]
    known = whole["zero_optimization"]["properties"].get(key) or whole.get(key, {})
    at = stage.value if stage is not None else _UNSAID_STAGE
    if at in (0, 1, 2, 3) and at not in known.get("x-stages", (3,) if unknown.suggestion in _AT_STAGE_3 else (at,)):
        return True
    return is_nothing(unknown.entry.value, known or meant) or is_default(value, known)


def _rename(document: DataDocument, root: Node, unknown: UnknownKey) -> Fix | None:
    mapping = root.get(*unknown.path[:-1])
    if unknown.home is not None or unknown.suggestion is None or mapping is None:
        return None
    return rename(document, mapping, unknown.entry, unknown.suggestion)


def _not_handed_on(document: DataDocument, root: Node) -> Iterator[Report]:
    section = root.get("deepspeed_config")
    for name in _NVME_PATHS:
        entry = section.entry(name) if section is not None else None
        if entry is not None and entry.value.value not in (None, "none"):
            yield Report(
                Place(document, entry.key_span),
                f'accelerate never hands "{name}" to DeepSpeed: an nvme device then fails without a path',
                help="put the nvme path into a DeepSpeed JSON and name that as deepspeed_config_file",
            )


def _processes(context: FileContext, document: DataDocument, root: Node) -> Iterator[Report]:
    kind, count = root.entry("distributed_type"), root.get("num_processes")
    if kind is None or kind.value.value in ("NO", False) or _is_sagemaker(root) or root.entry("commands") is not None:
        return
    given = flag_given(context, "num_processes")
    stated = count is not None and count.value != -1
    misspelt = count is None and any(nearest(entry.key, ("num_processes",)) for entry in root.entries)
    if given or stated or misspelt or changed_by_script(context):
        return
    yield Report(
        Place(document, kind.key_span),
        '"num_processes" is missing: accelerate launch stops with ValueError "You need to manually pass in '
        '`--num_processes`"' + ("" if given is False else " unless the command gives it"),
        severity=Severity.INFO if given is None else Severity.ERROR,
        help='add "num_processes" or --num_processes',
    )


def _gpu_ids(context: FileContext, document: DataDocument, root: Node) -> Iterator[Report]:
    kind, ids, machines = (root.get(name) for name in ("distributed_type", "gpu_ids", "num_machines"))
    if kind is None or ids is None or not str(kind.value).startswith("MULTI_") or kind.value == "MULTI_CPU":
        return
    several = machines is not None and isinstance(machines.value, int) and machines.value > 1
    if isinstance(ids.value, str) and ids.value != "all" and "," not in ids.value and not several:
        if flag_given(context, "gpu_ids"):
            return
        yield Report(
            Place(document, ids.span),
            f'"gpu_ids": "{ids.value}" is one GPU for distributed_type {kind.value}: accelerate launch stops with '
            'ValueError "Less than two GPU ids were configured"',
            help="name two GPUs or more, all, or take distributed_type 'NO'",
        )


def _nvme(document: DataDocument, root: Node) -> Iterator[Report]:
    stage = root.get("zero_optimization", "stage")
    if stage is not None and stage.value in (0, 1, 2):
        return  # they take NVMe for the host, and ask for no folder (``stage_1_and_2.py``)
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
    """A file that accelerate's ``DeepSpeedPlugin`` refuses. The Trainer makes one since transformers 4.30; before, it
    gave the file to DeepSpeed itself (``transformers/deepspeed.py:deepspeed_init``)."""
    reader = reader_of(context.runs)
    if reader == "transformers" and older(context.runs, "transformers", "4.30"):
        return
    if root.entry("zero_optimization") is None and reader in ("transformers", "accelerate"):
        yield Report(
            _start(document, root),
            '"zero_optimization" is missing: accelerate stops with ValueError '
            '"Please specify the ZeRO optimization config in the DeepSpeed config."',
            help='add "zero_optimization": {"stage": …}',
        )


_BATCHES = ("train_batch_size", "train_micro_batch_size_per_gpu")


def _no_batch(context: FileContext, document: DataDocument, root: Node) -> Iterator[Report]:
    if reader_of(context.runs) != "deepspeed" or any(run.mentions(*_BATCHES) for run in context.runs):
        return  # a script that speaks of one may well put it in
    if all(root.entry(name) is None for name in _BATCHES):
        yield Report(
            _start(document, root),
            "there is no batch size: DeepSpeed stops with AssertionError "
            '"Either train_batch_size or train_micro_batch_size_per_gpu needs to be provided"',
            help='add "train_micro_batch_size_per_gpu"',
        )


def _start(document: DataDocument, root: Node) -> Place:
    return Place(document, Span(root.span.start, min(root.span.start + 1, len(document.text))))
