"""How an ms-swift run is spread over GPUs: processes, a device_map, and the DeepSpeed and FSDP configs of the package.

Read in ms-swift 2.0 to 4.6: ``swift/cli/main.py`` (torchrun where ``NPROC_PER_NODE`` or ``NNODES`` is set, else one
process), ``swift/ray/base.py`` (a worker on each GPU of ``device_groups``, with ``use_ray``),
``swift/utils/env.py:is_mp`` and ``swift/model/utils.py:get_default_device_map`` (``device_map="auto"`` where a process
sees several GPUs), ``swift/config`` and the older ``swift/llm/ds_config``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.documents.model import DataDocument
from lintfit.frozen import frozen
from lintfit.settings.model import AUTO, UNKNOWN, Provenance, Setting, is_count
from lintfit.settings.values import Fsdp
from lintfit.sources.recipes.base import OpenFile
from lintfit.sources.recipes.swift_arguments import SwiftArguments, as_mapping
from lintfit.sources.training_words import trainer_fsdp

STAGES: Mapping[str, tuple[int, str, str]] = {
    "zero0": (0, "none", "none"),
    "zero1": (1, "none", "none"),
    "zero2": (2, "none", "none"),
    "zero3": (3, "none", "none"),
    "zero2_offload": (2, "cpu", "none"),
    "zero3_offload": (3, "cpu", "cpu"),
}
"""ZeRO's stage, and where optimizer and parameters go, of each of the package's files (``swift/config/*.json``)."""

OLDER: Mapping[str, tuple[int, str, str]] = {
    "default-zero2": (2, "none", "none"),
    "default-zero3": (3, "none", "none"),
    "zero2-offload": (2, "cpu", "none"),
    "zero3-offload": (3, "none", "cpu"),
}
"""The same of ms-swift 2 (``swift/llm/ds_config/*.json`` of 2.0 to 2.6)."""

_BUCKET = 200_000_000
_LAUNCHERS = frozenset({"torchrun", "torch.distributed.launch", "deepspeed", "accelerate"})
"""Programs that start ``swift/cli/sft.py`` themselves."""
FSDP2 = "fsdp2"
"""The name of the package's FSDP config: FSDP 2, sharded fully, with activation checkpointing (``fsdp2.json``)."""


def config_of(name: str, arguments: SwiftArguments) -> dict[str, Any] | None:
    """What is in the file of the package that ``--deepspeed`` names, as far as it decides memory; None for no name."""
    found = (STAGES if arguments.since(3) else OLDER).get(name)
    if found is None:
        return None
    stage, optimizer, parameters = found
    zero: dict[str, Any] = {"stage": stage, "overlap_comm": not arguments.since(3, 2), "contiguous_gradients": True}
    if stage == 3:
        zero |= {
            "sub_group_size": 1e9,
            "reduce_bucket_size": "auto",
            "stage3_prefetch_bucket_size": "auto",
            "stage3_param_persistence_threshold": "auto",
            "stage3_max_live_parameters": 1e9,
            "stage3_max_reuse_distance": 1e9,
            "stage3_gather_16bit_weights_on_model_save": True,
        }
    else:
        zero |= {"allgather_bucket_size": _BUCKET, "reduce_bucket_size": _BUCKET, "reduce_scatter": True}
    for key, device in (("offload_optimizer", optimizer), ("offload_param", parameters)):
        if device != "none":
            zero[key] = {"device": device, "pin_memory": True}
    own = {"optimizer": {"type": "AdamW"}} if not arguments.since(3) else {}
    return {
        **own,
        "bf16": {"enabled": "auto"},
        "fp16": {"enabled": "auto"},
        "zero_optimization": zero,
        "gradient_clipping": "auto",
        "gradient_accumulation_steps": "auto",
        "train_micro_batch_size_per_gpu": "auto",
        "train_batch_size": "auto",
    }


def name_of(stage: int, optimizer: str, parameters: str, arguments: SwiftArguments) -> str | None:
    """The package's file for a stage and its offload; None where there is none."""
    names = STAGES if arguments.since(3) else OLDER
    wanted = (stage, optimizer, parameters)
    return next((name for name, found in names.items() if found == wanted), None)


def deepspeed(arguments: SwiftArguments) -> dict[str, Setting]:
    """What ``--deepspeed`` comes to: a config of the package, JSON in a word, or a file's name."""
    stated = arguments.stated("deepspeed", "deepspeed_config_path")
    if stated is None or stated.value in (None, "", False):
        return {}
    value = stated.value
    config = as_mapping(value) if value is not UNKNOWN else None
    if isinstance(value, str) and config is None:
        config = config_of(value, arguments)
    if config is None:
        return {"deepspeed": stated.setting("deepspeed", value)}
    section = config.get("zero_optimization")
    zero = section if isinstance(section, Mapping) else {}
    found = {"deepspeed": stated.setting("deepspeed", dict(config))}
    found["zero_stage"] = stated.setting("zero_stage", zero.get("stage", 0) if zero is section else UNKNOWN)
    for name in ("offload_optimizer", "offload_param"):
        block = zero.get(name)
        device = block.get("device", "none") if isinstance(block, Mapping) else "none"
        found[name] = stated.setting(name, device)
    for block in ("optimizer",):
        kind = config.get(block)
        if isinstance(kind, Mapping) and isinstance(kind.get("type"), str):
            found[block] = stated.setting(block, AUTO if kind["type"] == "auto" else kind["type"])
    return found


def fsdp(arguments: SwiftArguments, open_file: OpenFile) -> dict[str, Setting]:
    """What ``--fsdp`` comes to: the package's FSDP 2, or a JSON with ``fsdp`` and ``fsdp_config``."""
    stated = arguments.stated("fsdp")
    if stated is None or not stated.value or not arguments.since(3, 12):
        return {}
    found = {"engine": stated.setting("engine", "fsdp")}
    if stated.value == FSDP2:
        found["fsdp"] = stated.setting("fsdp", Fsdp(2, "FULL_SHARD", False))
        found["gradient_checkpointing"] = stated.setting("gradient_checkpointing", True)
        return found
    config = as_mapping(stated.value) if stated.value is not UNKNOWN else None
    if config is None and isinstance(stated.value, str):
        document = open_file(stated.value)
        root = document.root if isinstance(document, DataDocument) else None
        read = root.plain() if root is not None else None
        config = read if isinstance(read, Mapping) else None
    section = config.get("fsdp_config", {}) if config is not None else None
    if config is None or not isinstance(section, Mapping):
        found["fsdp"] = stated.setting("fsdp", UNKNOWN)
        return found
    told = {"fsdp_version": 2, **section}
    value, by_layer = trainer_fsdp(config.get("fsdp", "full_shard auto_wrap"), told, arguments.versions)
    found["fsdp"] = stated.setting("fsdp", value)
    if by_layer is not None:
        found["fsdp_auto_wrap"] = stated.setting("fsdp_auto_wrap", by_layer)
    if section.get("activation_checkpointing"):
        found["gradient_checkpointing"] = stated.setting("gradient_checkpointing", True)
    return found


@frozen(eq=False)
class Spread:
    """How a run is spread: its GPUs over all nodes, its processes, and how many GPUs share the layers of one model.

    ``processes`` and ``stages`` are None where they are not known. ``distributed`` says that torchrun or another
    launcher starts the processes.
    """

    gpus: Setting
    processes: int | None
    stages: int | None
    distributed: bool


def spread(arguments: SwiftArguments, world: Any) -> Spread:
    """The GPUs of a run: one for each process, or all that are visible where a process has several."""
    by_ray = arguments.stated("use_ray")
    if by_ray is not None and by_ray.value not in (False, None):
        workers = by_ray.setting("gpus", UNKNOWN)
        after = world(workers)
        return Spread(workers, after.value if after is not None and is_count(after.value) else None, 1, True)
    launched, visible = arguments.keys.launch.launcher, _visible(arguments)
    started = world(None) if launched in _LAUNCHERS else _started(arguments)
    if launched in _LAUNCHERS and started is None:
        started = Setting("gpus", UNKNOWN, Provenance("derived", f"{launched} says how many processes there are"))
    if started is not None:
        processes = started.value if is_count(started.value) else None
        nodes = _nodes(arguments)
        seen = visible.value if visible is not None else None
        shared = 1
        if processes is not None and is_count(nodes) and is_count(seen) and not _single_device(arguments):
            local = processes // nodes
            shared = seen // local if local and seen % local == 0 else 1
        if shared > 1 and processes is not None and visible is not None:
            return Spread(Setting("gpus", processes * shared, visible.provenance), processes, shared, True)
        after = world(started)
        ranks = after.value if after is not None and is_count(after.value) else processes
        return Spread(started, ranks, 1, True)
    why = "one process without NPROC_PER_NODE, with the model over all GPUs that it sees"
    gpus = visible or Setting("gpus", UNKNOWN, Provenance("derived", why))
    after = world(gpus)
    count = after.value if after is not None and is_count(after.value) else None
    return Spread(gpus, 1, count if count is not None else 1, False)


def _started(arguments: SwiftArguments) -> Setting | None:
    """The processes that a launcher starts; None where the program is started once, without torchrun."""
    launch = arguments.keys.launch
    stated = launch.settings.get("gpus")
    if stated is not None and (stated.provenance.kind != "default" or "nodes" in launch.settings):
        return stated
    per_node, nodes = (arguments.environment.get(name) for name in ("NPROC_PER_NODE", "NNODES"))
    if per_node is None and nodes is None:
        return None
    counts = [_count(each.value) if each is not None else 1 for each in (per_node, nodes)]
    product = counts[0] * counts[1] if counts[0] is not None and counts[1] is not None else UNKNOWN
    told = per_node or nodes
    assert told is not None
    return Setting("gpus", product, told.provenance)


def _nodes(arguments: SwiftArguments) -> int | None:
    stated = arguments.keys.launch.settings.get("nodes")
    if stated is not None:
        return stated.value if is_count(stated.value) else None
    nodes = arguments.environment.get("NNODES")
    return _count(nodes.value) if nodes is not None else 1


def nodes(arguments: SwiftArguments) -> Setting | None:
    """The machines, where the file's ``ENV`` says how many."""
    stated = arguments.environment.get("NNODES")
    if stated is None or "nodes" in arguments.keys.launch.settings:
        return None
    return Setting("nodes", _count(stated.value) or UNKNOWN, stated.provenance)


def _visible(arguments: SwiftArguments) -> Setting | None:
    """How many GPUs a process sees, where somebody says so."""
    stated = arguments.keys.launch.settings.get("visible_devices") or arguments.environment.get("CUDA_VISIBLE_DEVICES")
    if stated is None:
        return None
    if not isinstance(stated.value, str):
        return Setting("gpus", UNKNOWN, stated.provenance)
    devices = [one for one in stated.value.split(",") if one.strip()]
    return Setting("gpus", len(devices) if devices else UNKNOWN, stated.provenance)


def _single_device(arguments: SwiftArguments) -> bool:
    """``SWIFT_SINGLE_DEVICE_MODE``: each process sees one GPU."""
    stated = arguments.environment.get("SWIFT_SINGLE_DEVICE_MODE")
    return stated is not None and stated.value == "1"


def _count(text: str) -> int | None:
    return int(text) if text.isdigit() and int(text) > 0 else None


def spreads_layers(found: Spread) -> bool:
    """Whether a process has several GPUs (``is_mp``), over which device_map spreads the layers of the model."""
    return found.stages is not None and found.stages > 1
