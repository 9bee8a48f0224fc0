"""How many processes a launch command starts, on how many machines, and on which GPUs.

Counts follow ``torch.distributed.run`` (torch 2.13), ``deepspeed.launcher.runner`` (DeepSpeed 0.19.8),
``accelerate.commands.launch`` (Accelerate 1.15.0), ``lightning.fabric.cli`` and sbatch's own page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from lintfit.documents.numerals import natural
from lintfit.documents.patterns import lazy_pattern
from lintfit.frozen import replace
from lintfit.settings.model import UNKNOWN, Provenance, Setting
from lintfit.sources.launchers import packaged
from lintfit.sources.launchers.command_line import Invocation, Option
from lintfit.sources.launchers.slurm import Count, Stated
from lintfit.sources.launchers.surroundings import Surroundings

_SLURM_VARIABLE = lazy_pattern(r"(?:^|=)[\"']?\$\{?(SLURM_[A-Z_]+)\}?[\"']?$")
"""An option's value that is nothing but one of SLURM's variables."""


_MPI = frozenset({"mpirun", "mpiexec"})
_MPI_COUNTS = frozenset({"-np", "--np", "-n", "-c"})
"""How many processes there are, in the words of Open MPI and MPICH."""
_RANKS = frozenset({"RANK", "LOCAL_RANK"})
"""What makes a process one of as many as ``WORLD_SIZE`` says (torch 2.13, ``env://`` of ``rendezvous.py``)."""


def process_settings(invocation: Invocation, around: Surroundings) -> Iterator[Setting]:
    """``gpus`` (processes over all nodes) and ``nodes``, as far as the command says or implies them."""
    settings = tuple(_LAUNCHERS.get(invocation.launcher, _said_by_recipe)(invocation, around))
    machines = _integer(invocation.machines, around)
    if machines is None or machines.value == 1 or any(setting.name == "nodes" for setting in settings):
        yield from settings
        return
    why = "the submitting script is taken to start the command's processes on each of its machines"
    assumed = Provenance("assumed", why, machines.provenance.place)
    for setting in settings:
        known = isinstance(setting.value, int) and isinstance(machines.value, int)
        value = setting.value * machines.value if known and isinstance(machines.value, int) else UNKNOWN
        yield Setting(setting.name, value, assumed, (setting,)) if setting.name == "gpus" else setting
    yield Setting("nodes", machines.value, assumed)


_DEVICES = lazy_pattern(r"\s*(-?\d+|(GPU|MIG)-[\w./-]+)(\s*,\s*(-?\d+|(GPU|MIG)-[\w./-]+))*\s*,?\s*")
"""Numbers of GPUs, or their names as ``nvidia-smi -L`` has them; anything else is to be filled in."""


def names_devices(value: str) -> bool:
    """Whether a value of ``CUDA_VISIBLE_DEVICES`` names GPUs, and not what is to be filled in."""
    return _DEVICES.fullmatch(value) is not None


def visible_devices(around: Surroundings) -> Setting | None:
    """The ``CUDA_VISIBLE_DEVICES`` that the command sees."""
    for name in ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"):
        if name in around.environment:
            value = around.environment[name]
            span = around.environment_places.get(name, around.command)
            known = value is not None and (not value or names_devices(value))
            return Setting("visible_devices", value if known else UNKNOWN, around.at(span, name))
    return None


def _visible(around: Surroundings) -> Stated | None:
    """How many GPUs ``CUDA_VISIBLE_DEVICES`` leaves, where that is set."""
    devices = visible_devices(around)
    if devices is None:
        return None
    if not isinstance(devices.value, str):
        return Stated(UNKNOWN, devices.provenance)
    return Stated(len([one for one in devices.value.split(",") if one.strip()]), devices.provenance)


def seen_gpus(around: Surroundings) -> Setting | None:
    """The GPUs of a node that the command sees, where it or its batch job says so."""
    found = _seen(around)
    if found is None or not isinstance(found.value, int) or not found.value:
        return None
    why = "all GPUs that the command sees, by its batch job or CUDA_VISIBLE_DEVICES"
    return Setting("gpus", found.value, replace(found.provenance, kind="assumed", detail=why))


def _seen(around: Surroundings) -> Stated | None:
    return _visible(around) or around.slurm.gpus


def _all_gpus(around: Surroundings, why: str) -> Stated:
    """All GPUs that a node shows: those left visible, else those the batch job asks for, else nobody knows."""
    found = _seen(around)
    return found if found is not None else Stated(UNKNOWN, around.at(around.command, why))


def _integer(option: Option | None, around: Surroundings) -> Stated | None:
    if option is None:
        return None
    text = option.value
    if text is None and option.words:
        variable = _SLURM_VARIABLE.search(option.words[0].text)
        stated = around.slurm.variable(variable[1]) if variable else None
        return stated or Stated(UNKNOWN, around.of(option))
    return Stated(_counted(text.strip() if text is not None else None), around.of(option))


def _counted(text: str | None) -> Count:
    number = natural(text)
    return number if number is not None else UNKNOWN


def _product(per_node: Stated, nodes: Stated) -> Iterator[Setting]:
    if isinstance(per_node.value, int) and isinstance(nodes.value, int):
        yield Setting("gpus", per_node.value * nodes.value, per_node.provenance)
    else:
        blamed = per_node if not isinstance(per_node.value, int) else nodes
        yield Setting("gpus", UNKNOWN, blamed.provenance)
    if nodes.provenance.kind != "default" or nodes.value != 1:
        yield Setting("nodes", nodes.value, nodes.provenance)


def _torchrun(invocation: Invocation, around: Surroundings) -> Iterator[Setting]:
    whose = f"{invocation.launcher}'s default"
    missing = UNKNOWN if invocation.opaque else 1
    per_node = _per_node(invocation, around) or Stated(missing, Provenance.default(f"{whose} (1 process per node)"))
    nodes = _torch_nodes(invocation, around) or Stated(missing, Provenance.default(f"{whose} (1 node)"))
    yield from _product(per_node, nodes)


def _per_node(invocation: Invocation, around: Surroundings) -> Stated | None:
    option = invocation.options.get("nproc_per_node")
    if option is None:
        text = around.environment.get("PET_NPROC_PER_NODE", "")
        if text == "":
            return None
        place = around.environment_places.get("PET_NPROC_PER_NODE", around.command)
        return Stated(_counted(text), around.at(place))
    if option.value in ("gpu", "auto"):
        return _all_gpus(around, "one process per GPU of the machine")
    return _integer(option, around)


def _torch_nodes(invocation: Invocation, around: Surroundings) -> Stated | None:
    option = invocation.options.get("nnodes")
    if option is None or option.value is None:
        return _integer(option, around)
    least, colon, most = option.value.partition(":")
    if colon and least != most:
        return Stated(UNKNOWN, around.of(option, "an elastic number of nodes"))
    return Stated(_counted(least), around.of(option))


def _deepspeed(invocation: Invocation, around: Surroundings) -> Iterator[Setting]:
    options = invocation.options
    include, exclude = options.get("include"), options.get("exclude")
    if include is not None:
        yield from _included(include, around)
        return
    if around.hosts is not None and exclude is None:
        yield from _listed(around.hosts, options, around)
        return
    per_node = _integer(options.get("num_gpus") or options.get("num_accelerators"), around)
    nodes = _integer(options.get("num_nodes"), around)
    hosts = options.get("hostfile")
    if per_node is None:
        # --num_nodes and --exclude make the runner drop CUDA_VISIBLE_DEVICES.
        kept = around if nodes is None and exclude is None else _without_visible(around)
        per_node = _all_gpus(kept, "deepspeed starts one process per GPU of the machine")
        if exclude is not None or invocation.opaque:
            per_node = Stated(UNKNOWN, around.of(exclude) if exclude else around.whole)
    if nodes is None:
        alone = Stated(1, Provenance.default("deepspeed's default (this machine alone, without a hostfile)"))
        named = hosts is not None and hosts.value != ""  # an empty name is no file: DeepSpeed goes on with this machine
        nodes = Stated(UNKNOWN, around.of(hosts, "the hostfile says")) if hosts is not None and named else alone
    yield from _product(per_node, nodes)


def _listed(hosts: Mapping[str, int], options: Mapping[str, Option], around: Surroundings) -> Iterator[Setting]:
    """The machines of a hostfile: the first ``--num_nodes`` of them, with ``--num_gpus`` on each."""
    nodes = _integer(options.get("num_nodes"), around)
    per_node = _integer(options.get("num_gpus") or options.get("num_accelerators"), around)
    hostfile = options["hostfile"]
    shown = around.of(hostfile, f"the hostfile lists {len(hosts)} hosts with {sum(hosts.values())} GPUs")
    slots = list(hosts.values())[: nodes.value if nodes is not None and isinstance(nodes.value, int) else None]
    if per_node is not None:
        slots = [per_node.value if isinstance(per_node.value, int) else 0 for _ in slots]
    unsure = any(one is not None and not isinstance(one.value, int) for one in (nodes, per_node))
    yield Setting("gpus", UNKNOWN if unsure else sum(slots), shown)
    yield Setting("nodes", UNKNOWN if unsure else len(slots), shown)


def _without_visible(around: Surroundings) -> Surroundings:
    return Surroundings(around.document, around.command, slurm=around.slurm)


def _included(option: Option, around: Surroundings) -> Iterator[Setting]:
    """``--include host:0,1@other:2``: named GPUs of named hosts; a host without GPUs stands for all of its own."""
    provenance = around.of(option)
    hosts = (option.value or "").split("@")
    slots = around.hosts or {}
    counts = [
        len([gpu for gpu in host.partition(":")[2].split(",") if gpu.strip()]) or slots.get(host.partition(":")[0], 0)
        for host in hosts
    ]
    named = [gpu.strip() for host in hosts for gpu in host.partition(":")[2].split(",")]
    known = option.value is not None and all(counts) and all(gpu.isdigit() for gpu in named if gpu)
    yield Setting("gpus", sum(counts) if known else UNKNOWN, provenance)
    if option.value is not None and len(hosts) > 1:
        yield Setting("nodes", len(hosts), provenance)


def _accelerate(invocation: Invocation, around: Surroundings) -> Iterator[Setting]:
    options = invocation.options
    processes = _integer(options.get("num_processes"), around)
    nodes = _integer(options.get("num_machines"), around)
    if processes is None and "config_file" not in options:
        counted = _visible(around) if not invocation.opaque else None
        # Without flags Accelerate asks for its default config in the home folder, then counts the visible GPUs.
        processes = counted or Stated(UNKNOWN, around.at(around.command, "one process per visible GPU"))
    if processes is not None:
        yield Setting("gpus", processes.value, processes.provenance)
    if nodes is not None:
        yield Setting("nodes", nodes.value, nodes.provenance)


def _fabric(invocation: Invocation, around: Surroundings) -> Iterator[Setting]:
    option = invocation.options.get("devices")
    one = Stated(1, Provenance.default("fabric run's default (1 device per node)"))
    per_node = _devices(option, around) if option is not None else one
    nodes = _integer(invocation.options.get("num_nodes"), around)
    yield from _product(per_node, nodes or Stated(1, Provenance.default("fabric run's default (1 node)")))


def _devices(option: Option, around: Surroundings) -> Stated:
    text = (option.value or "").strip().strip("[]")
    if text in ("auto", "-1"):
        return _all_gpus(around, "all GPUs of the machine")
    if "," in text:
        return Stated(len([one for one in text.split(",") if one.strip()]), around.of(option))
    return Stated(_counted(text), around.of(option))


def _python(invocation: Invocation, around: Surroundings) -> Iterator[Setting]:
    slurm = around.slurm
    by_mpi = _mpi(invocation, around)
    if by_mpi is not None:
        yield Setting("gpus", by_mpi.value, by_mpi.provenance)
        return
    ranked = _from_environment("WORLD_SIZE", around) if not _RANKS.isdisjoint(around.environment) else None
    if ranked is not None and not around.by_srun:
        yield Setting("gpus", ranked.value, ranked.provenance)
        return
    if not around.by_srun:
        yield Setting("gpus", 1, Provenance.default(f"{invocation.launcher} starts one process"))
        return
    nodes = slurm.nodes or Stated(1, Provenance.default("srun's default (1 node)"))
    if slurm.tasks is not None:
        yield Setting("gpus", slurm.tasks.value, slurm.tasks.provenance)
        if slurm.nodes is not None:
            yield Setting("nodes", nodes.value, nodes.provenance)
        return
    per_node = slurm.tasks_per_node or Stated(1, Provenance.default("srun's default (1 task per node)"))
    asked = slurm.gpus
    if per_node.value == 1 and asked is not None and isinstance(asked.value, int) and asked.value > 1:
        # Nobody asks for GPUs that stay idle: the one process starts others, or spreads the model over the GPUs.
        per_node = Stated(UNKNOWN, asked.provenance)
    yield from _product(per_node, nodes)


def _mpi(invocation: Invocation, around: Surroundings) -> Stated | None:
    """The processes that ``mpirun -np 8`` starts, on however many machines; without the option one on each slot."""
    words = [word.text for word in invocation.prefix]
    started = next((i for i, word in enumerate(words) if word.rpartition("/")[2] in _MPI), None)
    if started is None:
        return None
    option = next((i for i in range(started + 1, len(words)) if words[i] in _MPI_COUNTS), None)
    if option is None or option + 1 == len(words):
        return Stated(UNKNOWN, around.at(invocation.prefix[started].span, "one process on each of mpirun's slots"))
    count = words[option + 1]
    return Stated(int(count) if count.isdigit() else UNKNOWN, around.at(invocation.prefix[option + 1].span))


def _said_by_recipe(invocation: Invocation, around: Surroundings) -> Iterator[Setting]:
    """A front end that starts its processes itself, as many as its own settings say."""
    yield from ()


def _swift(invocation: Invocation, around: Surroundings) -> Iterator[Setting]:
    one = Stated(1, Provenance.default("swift starts one process without NPROC_PER_NODE"))
    per_node, nodes = _from_environment("NPROC_PER_NODE", around), _from_environment("NNODES", around)
    yield from _product(per_node or one, nodes or Stated(1, Provenance.default("one node without NNODES")))


def _llamafactory(invocation: Invocation, around: Surroundings) -> Iterator[Setting]:
    why = "llamafactory-cli starts one process per GPU of the machine"
    per_node, nodes = _from_environment("NPROC_PER_NODE", around), _from_environment("NNODES", around)
    yield from _product(per_node or _all_gpus(around, why), nodes or Stated(1, Provenance.default("one node")))


def _by_accelerate(invocation: Invocation, around: Surroundings) -> Iterator[Setting]:
    """axolotl and trl hand over to ``accelerate launch``, with its options among their own."""
    flags = {**invocation.options, **{option.name: option for option in invocation.arguments}}
    starter = _starter(invocation, flags)
    if starter == "python":
        yield from _python(invocation, around)
        return
    if "nproc_per_node" in flags or starter == "torchrun":
        # axolotl --launcher torchrun hands on what stands behind --.
        one = Stated(1, Provenance.default("torchrun's default (1 node)"))
        per_node = _per_node(replace(invocation, options=flags), around)
        yield from _product(per_node or one, _torch_nodes(replace(invocation, options=flags), around) or one)
        return
    processes = _integer(flags.get("num_processes"), around)
    config = flags.get("accelerate_config") or flags.get("config_file")
    if processes is None and config is not None:
        if config.value is not None and config.value in packaged.PROCESSES:
            yield Setting("gpus", packaged.PROCESSES[config.value], around.of(config))
        return
    found = processes or _all_gpus(around, "one process per visible GPU")
    yield Setting("gpus", found.value, found.provenance)


def _starter(invocation: Invocation, flags: Mapping[str, Option]) -> str | None:
    """What starts the processes of ``-m axolotl.cli.train``, or the ``--launcher`` of ``axolotl train``."""
    program = invocation.program.text.rpartition("/")[2].rstrip("0123456789.")
    asked = flags.get("launcher")
    return asked.value if asked is not None and program == "axolotl" else program


def _from_environment(name: str, around: Surroundings) -> Stated | None:
    if name not in around.environment:
        return None
    text = around.environment[name]
    place = around.environment_places.get(name, around.command)
    return Stated(_counted(text), around.at(place, name))


_LAUNCHERS: Mapping[str, Callable[[Invocation, Surroundings], Iterator[Setting]]] = {
    "torchrun": _torchrun,
    "torch.distributed.launch": _torchrun,
    "deepspeed": _deepspeed,
    "accelerate": _accelerate,
    "fabric": _fabric,
    "python": _python,
    "swift": _swift,
    # xtuner/entry_point.py reads NPROC_PER_NODE and NNODES as swift does.
    "xtuner": _swift,
    "llamafactory": _llamafactory,
    "torchtune": _torchrun,
    "axolotl": _by_accelerate,
    "trl": _by_accelerate,
    "megatron-swift": _swift,
}
