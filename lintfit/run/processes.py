"""How many processes a run has, on how many nodes and on which cards."""

from __future__ import annotations

from lintfit.run.precedence import Sources, first
from lintfit.settings.model import AUTO, UNKNOWN, Provenance, Setting


def number_of_gpus(sources: Sources, recipe: Setting | None) -> Setting | None:
    """All processes of a run: lintfit's flag, else what the files say, else lintfit's config."""
    launch, config = sources.said("launch", "gpus"), sources.said("accelerate", "gpus")
    alone = _one_process(sources, recipe)
    if alone is not None:
        return alone
    stated = first("gpus", sources.flag("gpus"), recipe, _started_by_script(sources), launch, config)
    if stated is not None and stated.known:
        return stated
    configured = sources.config("gpus") or _by_name(sources)
    if configured is not None:
        return configured.over(stated)
    return stated


def _by_name(sources: Sources) -> Setting | None:
    """The count that the card's name states (``8x3090``, ``p4d.24xlarge``), on every machine of the run."""
    named, nodes = kind_of_gpu(sources), number_of_nodes(sources)
    if named is None or not isinstance(named.value, str):
        return None
    from lintfit.catalog.gpus import stated_count

    count = stated_count(named.value)
    if count is None or (nodes is not None and not isinstance(nodes.value, int)):
        return None
    return Setting("gpus", count * (1 if nodes is None else nodes.value), named.provenance)


def _one_process(sources: Sources, recipe: Setting | None) -> Setting | None:
    """``--gpus 4`` over a launch by plain python: it starts one process, however many GPUs there are.

    A Trainer that sees several then copies the model to each of them in every step (``nn.DataParallel``,
    transformers 5.23 ``Trainer._wrap_model``) where ``device_map`` has not spread it.
    """
    asked, launch = sources.flag("gpus"), sources.launch
    if asked is None or asked.value == 1 or recipe is not None or launch is None or launch.launcher != "python":
        return None
    own = launch.settings.get("gpus")
    if own is None or own.provenance.kind != "default" or own.value != 1 or launch.by_mpi:
        return None
    if "nodes" in launch.settings or _started_by_script(sources) is not None or _spawns(sources):
        return None
    why = f"python starts one process, which is judged on its first GPU of {asked.value}"
    return Setting("gpus", 1, Provenance("assumed", why), (asked,))


def _spawns(sources: Sources) -> bool:
    """Whether the script itself starts processes (``torch.multiprocessing.spawn``, ``notebook_launcher``)."""
    names = ("spawn", "notebook_launcher", "start_processes", "Process")
    return sources.script is not None and bool(sources.script.calls(*names))


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
    """The kind of card: what a batch system calls ``a100`` comes in sizes, and a config that names one is meant."""
    launch, config = sources.said("launch", "gpu"), sources.config("gpu")
    if launch is not None and config is not None and _bare(launch.value) in _bare(config.value):
        return first("gpu", sources.flag("gpu"), config, launch)
    return first("gpu", sources.flag("gpu"), launch, config)


def _bare(name: object) -> str:
    return "".join(letter for letter in str(name).lower() if letter.isalnum())


def number_of_nodes(sources: Sources) -> Setting | None:
    """The machines of a run: lintfit's flag, else what the files say, else lintfit's config."""
    files = (sources.said(dialect, "nodes") for dialect in ("recipe", "launch", "accelerate"))
    stated = first("nodes", sources.flag("nodes"), *files)
    if stated is not None and stated.known:
        return stated
    return sources.config("nodes") or stated
