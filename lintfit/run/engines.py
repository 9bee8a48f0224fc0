"""Which engine trains a run (one process, DDP, DeepSpeed, FSDP) and how it shards."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from lintfit.documents.patterns import lazy_pattern
from lintfit.frozen import replace
from lintfit.run.model import OF_THE_MACHINE
from lintfit.run.precedence import Sources, default, derived, first
from lintfit.settings import registry
from lintfit.settings.model import UNKNOWN, Provenance, Setting

if TYPE_CHECKING:
    from lintfit.sources.accelerate import AccelerateSource
    from lintfit.sources.launchers.launch import Launch

_OF_DEEPSPEED = lazy_pattern(r"deepspeed|(?<!\w)ds[-_.]|(?<![a-z])zero[-_]?[0-3](?!\d)", re.IGNORECASE)
"""A flag, or the name of a file, that speaks of DeepSpeed's config."""
ALL = "all"
"""Of a number of ranks: as many as there are."""

_UNSAID = {name: registry.default(name) for name in registry.ZERO}
"""What DeepSpeed does where its file does not say."""


def engine(sources: Sources, settings: Mapping[str, Setting]) -> Setting:
    """The engine that the script, the launcher or a config asks for, else what the number of processes leaves."""
    in_script, stated = sources.said("script", "engine"), sources.first("engine", "script", "launch", "accelerate")
    if stated is not None and (stated.value in ("deepspeed", "fsdp") or in_script is not None):
        return stated
    handed = sources.first("deepspeed", "script", "launch")
    if handed is not None and handed.value not in (None, False, ""):
        # A run is not made one of DeepSpeed's by the name of a file that is not there.
        unread = isinstance(handed.value, str) and sources.deepspeed is None
        return Setting("engine", UNKNOWN if unread else "deepspeed", handed.provenance)
    if sources.deepspeed is not None:
        return derived("engine", "deepspeed", f"{sources.deepspeed.document.path} configures DeepSpeed")
    sharded = sources.said("script", "fsdp")
    if sharded is not None and sharded.value not in (None, False, "", UNKNOWN):
        return Setting("engine", "fsdp", sharded.provenance)
    launched_with = sources.named_yaml
    if sources.accelerate is None and launched_with is not None and stated is None:
        return Setting("engine", UNKNOWN, launched_with.provenance)
    gpus = settings.get("gpus")
    if sources.launch is not None and not sources.training_is_read:
        return derived("engine", UNKNOWN, "the script that is launched decides it")
    by_hand = _loads_by_config(sources)
    if by_hand is not None:
        return by_hand
    in_config = sources.said("script", "optimizer_in_config")
    if in_config is not None:
        return Setting("engine", UNKNOWN, in_config.provenance)
    not_seen = _not_seen_to_be_handed_on(sources)
    if not_seen is not None:
        return not_seen
    if gpus is not None and isinstance(gpus.value, int) and gpus.value > 1:
        if sharded is not None and sharded.value is UNKNOWN:
            return Setting("engine", UNKNOWN, sharded.provenance)  # a Trainer is given something to shard by, or not
        found = derived("engine", "ddp", f"{gpus.value} processes without DeepSpeed or FSDP", stated)
    elif _starts_all(sources, gpus):
        why = "one process on each GPU without DeepSpeed or FSDP, where there are several"
        found = Setting("engine", "ddp", Provenance("assumed", why))
    else:
        found = derived("engine", "single", "one process")
    if handed is not None and handed.provenance.kind == "assumed":
        return Setting("engine", found.value, handed.provenance)
    return replace(found, provenance=OF_THE_MACHINE) if _configured_by_machine(sources) else found


def _loads_by_config(sources: Sources) -> Setting | None:
    """An ``HfDeepSpeedConfig`` that the script keeps while it loads the model, where nothing else speaks of DeepSpeed.

    The load is partitioned where it says ZeRO-3 (transformers ``is_deepspeed_zero3_enabled``), which the Trainer's
    arguments know nothing of: what then trains such weights, if anything, is not known.
    """
    facts = sources.script.facts if sources.script is not None else None
    load = facts.trained_load if facts is not None else None
    for call in facts.partitioning if facts is not None else ():
        kept = call.name != "Init" and call.taken is True and call.assigned_to is not None
        if kept and load is not None and call.order < load.order:
            why = f"{call.name} has the model loaded for DeepSpeed, and nothing says that DeepSpeed trains it"
            return Setting("engine", UNKNOWN, Provenance("file", why, call.place))
    return None


def _not_seen_to_be_handed_on(sources: Sources) -> Setting | None:
    """A flag of the script's own that names a JSON of DeepSpeed's, where its launcher starts a script whose Trainer is
    handed what is not known: nobody names such a file for a run without DeepSpeed."""
    launch = sources.launch
    if launch is None or launch.launcher != "deepspeed" or sources.script is None:
        return None
    made = sources.script.facts.training_arguments
    if made is None or not made.spreads:
        return None
    for flag in launch.flags:
        file = (flag.value or "").rpartition("/")[2]
        if file.endswith(".json") and _OF_DEEPSPEED.search(f"{flag.name} {file}"):
            why = f"--{flag.name} names a DeepSpeed config that the script is not seen to hand on"
            return Setting("engine", UNKNOWN, Provenance("file", why, flag.origin))
    return None


def _starts_all(sources: Sources, gpus: Setting | None) -> bool:
    """Whether a launcher, or the front end of a recipe, starts a process on each GPU, of however many there are."""
    if gpus is None:
        return sources.launch is None and sources.recipe is not None
    by_python = sources.launch is not None and sources.launch.launcher == "python"
    return not gpus.known and not by_python and (sources.launch is not None or sources.recipe is not None)


def _configured_by_machine(sources: Sources) -> bool:
    """Whether ``accelerate launch`` is given nothing that configures it.

    The file that ``accelerate config`` wrote on the machine then decides, if there is one (accelerate 1.15,
    ``commands/launch.py:_validate_launch_command``).
    """
    if sources.launch is None or sources.launch.launcher != "accelerate" or sources.accelerate is not None:
        return False
    if sources.said("launch", "deepspeed_config_file") is not None and sources.launched_deepspeed_file is None:
        return True  # it counts if that file says DEEPSPEED
    said = (
        sources.said("launch", name) for name in ("accelerate_config", "engine", "gpus", "nodes", "mixed_precision")
    )
    return all(setting is None or not setting.known for setting in said)


def zero(sources: Sources, settings: Mapping[str, Setting]) -> Iterator[Setting]:
    """ZeRO's stage and what is offloaded: the JSON, then the script, then the launcher; nothing without DeepSpeed."""
    chosen = settings["engine"]
    if chosen.value not in ("deepspeed", UNKNOWN):
        return
    inline = sources.said("script", "deepspeed")
    if sources.deepspeed is None and inline is not None and inline.provenance.kind != "derived" and _is_inline(inline):
        for name, fallback in _UNSAID.items():
            yield first(name, sources.said("script", name)) or default(name, fallback, "DeepSpeed's default")
        return
    missing = chosen if chosen.value is UNKNOWN else _missing_file(sources)
    if missing is not None:
        # An engine of the script's own may still be known to have no ZeRO.
        own = chosen.value is UNKNOWN and sources.said("script", "engine") is not None
        for name in _UNSAID:
            said = sources.said("script", name) if own else None
            yield said or Setting(name, UNKNOWN, missing.provenance)
        return
    for name, fallback in _UNSAID.items():
        candidates = [sources.said(dialect, name) for dialect in ("deepspeed", "script", "launch", "accelerate")]
        if sources.deepspeed is not None and candidates[0] is None:
            # A file that is silent means DeepSpeed's own default; the launcher's values fill "auto" only.
            candidates.insert(0, default(name, fallback, "DeepSpeed's default"))
        found = first(name, *candidates)
        if found is None and _set_up_elsewhere(sources):
            found = Setting(name, UNKNOWN, OF_THE_MACHINE)
        plugin = 2 if name == "zero_stage" else "none"
        yield found or default(name, plugin, "Accelerate's DeepSpeedPlugin default")


def _set_up_elsewhere(sources: Sources) -> bool:
    """Whether ``accelerate launch`` is told of DeepSpeed by a variable alone: what ``accelerate config`` wrote on the
    machine says how then, as where it is told nothing."""
    launch = sources.launch
    if launch is None or launch.launcher != "accelerate" or sources.accelerate is not None:
        return False
    engine = sources.said("launch", "engine")
    return engine is not None and engine.value == "deepspeed" and "use_deepspeed" not in launch.invocation.options


def without_stage_3(settings: Mapping[str, Setting]) -> Setting | None:
    """``offload_param`` is read by stage 3 alone (DeepSpeed 0.19.8, ``DeepSpeedEngine._configure_zero_optimizer``)."""
    stage, offload = settings.get("zero_stage"), settings.get("offload_param")
    if stage is None or offload is None or stage.value not in (0, 1, 2) or offload.value not in ("cpu", "nvme"):
        return None
    return derived("offload_param", "none", f"ZeRO-{stage.value} offloads no parameters", offload)


def _is_inline(handed: Setting) -> bool:
    return isinstance(handed.value, Mapping)


def _missing_file(sources: Sources) -> Setting | None:
    """What names a config that was not found where nothing but that config could tell of ZeRO."""
    if sources.deepspeed is not None:
        return None
    named = (
        sources.said("script", "deepspeed"),
        sources.said("launch", "deepspeed"),
        sources.launched_deepspeed_file,
        sources.said("accelerate", "deepspeed_config_file"),
    )
    said = (setting for setting in named if setting is not None and not _is_inline(setting))
    return next((setting for setting in said if setting.value not in (None, False, "")), None)


def split_over_ranks(sources: Sources, settings: Mapping[str, Setting]) -> Iterator[Setting]:
    """Ranks that share a sequence, a model's matrices or its layers, and FSDP's replicas, where there is more than one.

    DeepSpeed divides the world by those that share a sequence before it multiplies the batch sizes; FSDP's context
    parallelism counts among them here.
    """
    deepspeed = settings["engine"].value == "deepspeed"
    sequence, tensor = "sequence_parallel", "tensor_parallel"
    shared = sequence if deepspeed else "context_parallel"
    other = ("deepspeed", "script") if deepspeed else ("script",)
    layers = "pipeline_parallel"
    for name, asked in ((sequence, shared), (tensor, tensor), (layers, layers), ("replicas", "replicas")):
        said = first(name, *(sources.said(dialect, asked) for dialect in (*other, "accelerate")))
        if said is None or said.value in (None, 0, 1):
            continue
        if deepspeed and name == tensor and sources.said("script", tensor) is not None:
            # transformers' way of splitting matrices is not DeepSpeed's: what both come to together is not known.
            yield Setting(tensor, UNKNOWN, said.provenance)
        else:
            yield _over_these(said, settings.get("gpus"))


def _over_these(said: Setting, gpus: Setting | None) -> Setting:
    """The number of ranks as it holds for the run's processes; unknown where they cannot be divided so."""
    world = gpus.value if gpus is not None else UNKNOWN
    if said.value == ALL:
        return Setting(said.name, world if type(world) is int else UNKNOWN, said.provenance)
    whole = type(said.value) is int and (type(world) is not int or world % said.value == 0)
    return said if whole else Setting(said.name, UNKNOWN, said.provenance)


def fsdp(sources: Sources, settings: Mapping[str, Setting]) -> Setting | None:
    """How FSDP shards and wraps: a plugin or strategy of the script, else the launcher. A Trainer's own comes last."""
    in_script, launched = sources.said("script", "fsdp"), _launched_fsdp(sources)
    by_script = sources.said("script", "engine") is not None
    found = first("fsdp", in_script, launched) if by_script else first("fsdp", launched, in_script)
    if settings["engine"].value != "fsdp" or sources.recipe is not None:
        return found
    return _wrapped(sources, settings, found)


def _wrapped(sources: Sources, settings: Mapping[str, Setting], found: Setting | None) -> Setting | None:
    """The same with whether layers are units of their own.

    In a Trainer PEFT's policy takes the place of any other under FSDP 1 (``update_fsdp_plugin_peft``).
    """
    from lintfit.settings.values import Fsdp

    value, method = found.value if found is not None else Fsdp(), settings.get("method")
    if not isinstance(value, Fsdp) or _wraps(sources):
        return found
    if value.version == 1 and sources.uses_trainer and method is not None and method.value == "lora":
        return found
    if found is None:
        return derived("fsdp", replace(value, auto_wrap=False), "no policy wraps layers")
    return replace(found, value=replace(value, auto_wrap=False))


def _wraps(sources: Sources) -> bool:
    """Whether a policy wraps layers: where nobody states one Accelerate takes ``NO_WRAP`` (1.15
    ``FullyShardedDataParallelPlugin``), for a Trainer as for a loop."""
    said = sources.said("script", "fsdp_auto_wrap")
    if said is not None:
        return said.value is not False
    policy = wrap_policy(sources.launch, sources.accelerate)
    if policy is None:
        return sources.missing_yaml is not None
    return str(policy.value).upper() != "NO_WRAP"


def wrap_policy(launch: Launch | None, accelerate: AccelerateSource | None) -> Setting | None:
    """Accelerate's ``fsdp_auto_wrap_policy``: of the launch line, else of the file."""
    flag = launch.option("fsdp_auto_wrap_policy") if launch is not None else None
    return flag or (accelerate.settings.get("fsdp_auto_wrap_policy") if accelerate is not None else None)


def _launched_fsdp(sources: Sources) -> Setting | None:
    """Accelerate's file with the flags that were given beside it (``launch.py:_validate_launch_command``)."""
    file = sources.said("accelerate", "fsdp")
    if file is None:
        return sources.said("launch", "fsdp")
    given = {name: sources.said("launch", f"fsdp_{name}") for name in ("version", "strategy", "cpu_offload")}
    flags = {name: flag for name, flag in given.items() if flag is not None}
    if not flags:
        return file
    value = replace(file.value, **{name: flag.value for name, flag in flags.items()})
    return Setting("fsdp", value, next(iter(flags.values())).provenance).over(file)


def checkpointed_by_fsdp(sources: Sources) -> Setting | None:
    """FSDP's own activation checkpointing, asked for by the launcher: on where either side switches it on."""
    name = "gradient_checkpointing"
    launched, in_script = sources.first(name, "launch", "accelerate"), sources.said("script", name)
    if launched is None or launched.value is not True or (in_script is not None and in_script.value is True):
        return None
    return launched.over(in_script)
