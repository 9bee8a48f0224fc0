"""How many processes a run has, on how many nodes and on which GPUs."""

from __future__ import annotations

import re
from pathlib import Path

from lintfit.frozen import replace
from lintfit.run.precedence import Sources, first
from lintfit.settings.kinds import LARGEST_COUNT
from lintfit.settings.model import AUTO, UNKNOWN, Provenance, Setting, is_count


def number_of_gpus(sources: Sources, recipe: Setting | None) -> Setting | None:
    """All processes of a run: what the files say, else one on each GPU that there is."""
    asked, alone = sources.what_if("gpus"), _one_process(sources, recipe)
    if asked is not None:
        return asked.over(_stated(sources, recipe))
    if alone is not None:
        return alone
    if sources.kernel and recipe is None:
        return _of_kernel(sources)
    stated = _stated(sources, recipe)
    if stated is not None and stated.known:
        return stated
    found = _by_file_name(sources) or seen(sources) or available(sources)
    return found.over(stated) if found is not None else stated


_ONE_GPU = re.compile(r"(?<![a-z0-9])(?:single|one|1)[-_ ]?(?:gpu|card|device)(?![a-z0-9])", re.IGNORECASE)


def _by_file_name(sources: Sources) -> Setting | None:
    """One GPU, where a file that starts, states or configures a run says so by its name, or by its folder's
    (``lora_single_gpu/``, ``ds_z0_single_gpu.json``), and nothing else says how many."""
    there = available(sources)
    if there is not None and there.value == 1:
        return None
    for source in (sources.launch, sources.recipe, sources.accelerate, sources.deepspeed):
        path = source.document.path if source is not None else Path()
        if _ONE_GPU.search(path.stem) or _ONE_GPU.search(path.parent.name):
            return Setting("gpus", 1, Provenance("assumed", f"one GPU, by the name of {path.as_posix()}"))
    return None


def seen(sources: Sources) -> Setting | None:
    """The GPUs that the launch line sees on all of its machines, where it or its batch job says so; None where there
    are not so many."""
    shown, there = sources.launch.seen_gpus if sources.launch is not None else None, available(sources)
    nodes = _nodes_of_files(sources)
    machines = nodes.value if nodes is not None else 1
    if shown is None or not is_count(machines, LARGEST_COUNT):
        return None
    count = shown.value * machines
    return replace(shown, value=count) if there is None or count <= there.value else None


def _stated(sources: Sources, recipe: Setting | None) -> Setting | None:
    """What the files say."""
    launch, config = sources.said("launch", "gpus"), sources.said("accelerate", "gpus")
    if launch is not None and launch.provenance.kind == "default" and _by_plain_python(sources) and _spawns(sources):
        launch = Setting("gpus", UNKNOWN, launch.provenance)  # the script starts as many as it likes
    return first("gpus", recipe, _started_by_script(sources), launch, config)


def available(sources: Sources) -> Setting | None:
    """The GPUs that there are: on all machines where lintfit's options count these too, else on each that is used."""
    stated = sources.option("gpus")
    if stated is None:
        return _by_name(sources) or sources.machine.get("gpus")
    nodes = _nodes_of_files(sources) if sources.option("nodes") is None else None
    machines = nodes.value if nodes is not None and is_count(nodes.value, LARGEST_COUNT) else 1
    return replace(stated, value=stated.value * machines)


def _by_name(sources: Sources) -> Setting | None:
    """The count that the GPU's name states (``8x3090``, ``p4d.24xlarge``), on every machine of the run."""
    named, nodes = kind_of_gpu(sources), number_of_nodes(sources, None)
    if named is None or not isinstance(named.value, str):
        return None
    from lintfit.catalog.gpus import stated_count

    count = stated_count(named.value)
    if count is None or (nodes is not None and not isinstance(nodes.value, int)):
        return None
    return Setting("gpus", count * (1 if nodes is None else nodes.value), named.provenance)


def all_there_are(sources: Sources, gpus: Setting | None) -> str | None:
    """Says that a run is taken to use every GPU that there is, that it sees, or the one that a name speaks of, where
    nothing tells how many it has."""
    if gpus is None or sources.what_if("gpus") is not None:
        return None
    named = _by_file_name(sources)
    if named is not None and gpus.provenance.detail == named.provenance.detail:
        return named.provenance.detail
    if gpus.value == 1:
        return None
    silent = "nothing says how many the run uses" if sources.launch is None else "the launch line does not say how many"
    shown = seen(sources)
    if shown is not None and gpus.provenance == shown.provenance:
        return f"{gpus.value} GPUs: all that the command sees, by {shown.provenance.place} ({silent})"
    if gpus.provenance.kind != "option":
        return None
    return f"{gpus.value} GPUs: all that the machine has ({silent})"


def _one_process(sources: Sources, recipe: Setting | None) -> Setting | None:
    """``--gpus 4`` over a launch by plain python: it starts one process, however many GPUs there are.

    A Trainer that sees several then copies the model to each of them in every step (``nn.DataParallel``,
    transformers 5.23 ``Trainer._wrap_model``) where ``device_map`` has not spread it.
    """
    asked, launch = sources.flag("gpus"), sources.launch
    if asked is None or asked.value == 1 or recipe is not None:
        return None
    if launch is None and _joins_no_other(sources):
        why = f"a loop that joins no other process: one GPU of {asked.value}"
        return Setting("gpus", 1, Provenance("derived", why), (asked,))
    if launch is None or launch.launcher != "python":
        return None
    own = launch.settings.get("gpus")
    if own is None or own.provenance.kind != "default" or own.value != 1 or launch.by_mpi:
        return None
    if "nodes" in launch.settings or _started_by_script(sources) is not None or _spawns(sources):
        return None
    there = seen(sources) or asked
    if there.value == 1:
        return None
    why = f"python starts one process, which is judged on its first GPU of {there.value}"
    return Setting("gpus", 1, Provenance("assumed", why), (asked,))


_JOINS = (
    "init_process_group", "init_distributed", "init_distributed_mode", "setup_distributed", "DistributedDataParallel",
    "DDP", "FullyShardedDataParallel", "FSDP", "fully_shard", "Fabric", "init_device_mesh",
)  # fmt: skip
"""Calls by which a process of plain PyTorch comes to be one of several."""


def _joins_no_other(sources: Sources) -> bool:
    """Whether a script that nothing launches trains by a loop of its own, which works on one GPU whatever starts it."""
    script = sources.script
    if script is None or sources.accelerate is not None or sources.deepspeed is not None or script.uses_trainer:
        return False
    facts = script.facts
    by_libraries = (facts.trainer, facts.training_arguments, facts.initialize, facts.accelerator)
    if not facts.trains or "engine" in script.settings or any(part is not None for part in by_libraries):
        return False
    return not script.calls(*_JOINS) and not _spawns(sources)


def _of_kernel(sources: Sources) -> Setting:
    """The one process of a notebook's kernel, or those that its cells start."""
    started = _started_by_script(sources)
    if started is not None or _spawns(sources):
        return started or Setting("gpus", UNKNOWN, Provenance("derived", "a cell starts processes of its own"))
    there = available(sources)
    more = f" of {there.value}" if there is not None and there.value != 1 else ""
    why = f"a notebook's kernel is one process, which is judged on its first GPU{more}"
    return Setting("gpus", 1, Provenance("assumed", why))


def _spawns(sources: Sources) -> bool:
    """Whether the script itself starts processes (``torch.multiprocessing.spawn``, ``notebook_launcher``)."""
    names = ("spawn", "notebook_launcher", "start_processes", "Process")
    return sources.script is not None and bool(sources.script.calls(*names))


def _by_plain_python(sources: Sources) -> bool:
    return sources.launch is not None and sources.launch.launcher == "python"


def _started_by_script(sources: Sources) -> Setting | None:
    """Processes that the script starts itself (Fabric's ``devices``), where no launcher starts more than one."""
    stated = sources.script.settings.get("gpus") if sources.script is not None else None
    launch = sources.launch
    if stated is None or (launch is not None and launch.launcher != "python"):
        return None
    if launch is not None and "nodes" in launch.settings:
        guessed = launch.settings["gpus"].provenance.kind == "assumed"
        return Setting("gpus", UNKNOWN, stated.provenance) if guessed else None
    if launch is not None and launch.settings["gpus"].provenance.kind != "default":
        return None
    if stated.value is not AUTO:
        return stated
    visible = launch.settings.get("visible_devices") if launch is not None else None
    if visible is not None and isinstance(visible.value, str):
        count = len([device for device in visible.value.split(",") if device.strip()])
        return Setting("gpus", count, visible.provenance).over(stated)
    return Setting("gpus", UNKNOWN, stated.provenance)


def kind_of_gpu(sources: Sources) -> Setting | None:
    """The kind of GPU: what a batch system calls ``a100`` comes in sizes, and a config that names one is meant."""
    launch, config = sources.said("launch", "gpu"), sources.config("gpu")
    machine = sources.machine.get("gpu")
    if launch is not None and config is not None and _bare(launch.value) in _bare(config.value):
        return first("gpu", sources.flag("gpu"), config, launch, machine)
    return first("gpu", sources.flag("gpu"), launch, config, machine)


def capability_of_gpu(sources: Sources) -> tuple[int, int] | None:
    """The compute capability of the GPUs, as far as is known before the script is read, which may ask for it."""
    named = kind_of_gpu(sources)
    if named is None or not isinstance(named.value, str):
        return None
    from lintfit.catalog import gpus

    gpu = gpus.lookup(named.value)
    return gpu.compute_capability if gpu is not None else None


def _bare(name: object) -> str:
    return "".join(letter for letter in str(name).lower() if letter.isalnum())


def number_of_nodes(sources: Sources, gpus: Setting | None) -> Setting | None:
    """The machines of a run: what the files say, else as many of those that there are as hold its processes."""
    asked, stated, there = sources.what_if("nodes"), _nodes_of_files(sources), sources.option("nodes")
    if asked is not None:
        return asked.over(stated)
    if stated is not None and stated.known:
        return stated
    return _enough_nodes(sources, there, gpus).over(stated) if there is not None else stated


def _nodes_of_files(sources: Sources) -> Setting | None:
    return sources.first("nodes", "recipe", "launch", "accelerate")


def _enough_nodes(sources: Sources, there: Setting, gpus: Setting | None) -> Setting:
    """The fewest machines that hold a run's processes, where they are told and so is how many GPUs a machine has."""
    on_all = sources.option("gpus")
    if gpus is None or not is_count(gpus.value, LARGEST_COUNT) or on_all is None or sources.what_if("gpus"):
        return there
    per_node = max(1, on_all.value // there.value)
    needed = -(-gpus.value // per_node)
    if needed >= there.value or gpus.value % needed:
        return there
    why = f"{gpus.value} processes on machines of {per_node} GPUs"
    return Setting("nodes", needed, Provenance("derived", why), (there,))
