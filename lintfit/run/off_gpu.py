"""Runs that use none of the machine's GPUs: they train on the CPU, on a Mac, or on a TPU, and no GPU's memory decides.

Accelerate 1.15: ``commands/launch.py`` starts the one process of its simple launcher wherever ``--cpu`` is given, and
``utils/launch.py:prepare_simple_launcher_cmd_env`` alone tells that process of the ``use_cpu`` of a file
(``ACCELERATE_USE_CPU``), which transformers 4.57 heeds as its own ``use_cpu`` (``training_args.py:_setup_devices``).
"""

from __future__ import annotations

from collections.abc import Collection

from lintfit.run.precedence import Sources
from lintfit.settings.model import Place
from lintfit.sources.values import truth

_TPU = frozenset({"tpu", "xla"})
_DEVICES = ("device", "accelerator", "tpu")
"""Words of a flag's name that says on what a script trains (``--distribution_device``)."""
_CPU_FLAGS = ("device", "accelerator", "device_type")
"""Names of flags that say so for all of a script, not for what it offloads."""
_CPU_SWITCHES = ("use_cpu", "no_cuda")
_APPLE = frozenset({"mps", "mlx"})
_APPLE_SWITCHES = ("use_mlx", "use_mps", "use_mps_device")
"""Words for Apple's chips, whose memory is that of the machine."""
_NO_GPU = ("", "none", "nodevfiles")
"""Values of ``CUDA_VISIBLE_DEVICES`` that name none; CUDA takes no GPU from the first number on that it lacks (-1)."""
_XLA_CALLS = ("xla_device", "device", "spawn", "launch", "use_spmd")
"""What a script takes from torch_xla to train on a TPU."""


def off_gpu(sources: Sources) -> str | None:
    """Why a run uses no GPU, as a clause; None where nothing says so."""
    where = _on_apple(sources)
    if where is not None:
        return f"a GPU: it trains on a Mac ({where})"
    where = _on_cpu(sources)
    if where is not None:
        return f"a GPU: it trains on the CPU ({where})"
    where = _on_tpu(sources)
    return f"a GPU: it trains on a TPU ({where})" if where is not None else None


def _on_cpu(sources: Sources) -> str | None:
    launch, training = sources.launch, sources.script or sources.recipe
    if launch is not None and launch.launcher in ("accelerate", "trl") and "cpu" in launch.invocation.options:
        return "--cpu"
    if (place := _by_file(sources)) is not None:
        return f"use_cpu at {place}"
    for name in _CPU_SWITCHES:
        said = training.argument(name) if training is not None else None
        if said is not None and said.value is True:
            at = f" at {said.provenance.place}" if said.provenance.place is not None else ""
            return f"{name}{at}"
    made = sources.script.facts.accelerator if sources.script is not None else None
    cpu = made.argument("cpu") if made is not None and made.taken is True else None
    if cpu is not None and cpu.value is True:
        return f"cpu=True at {cpu.place}"
    by_flag = _switch_of(sources, _CPU_SWITCHES) or _flag_of(sources, ("cpu",), _CPU_FLAGS)
    return by_flag or _by_hiding(sources) or _by_map(sources)


def _by_hiding(sources: Sources) -> str | None:
    """Where a launch hides all GPUs from what it starts (``export CUDA_VISIBLE_DEVICES=""``). The deepspeed launcher
    takes an empty value for none at all (``launcher/runner.py``); what a variable leaves empty is to be filled in."""
    launch = sources.launch
    shown = launch.settings.get("visible_devices") if launch is not None else None
    place = shown.provenance.place if shown is not None else None
    if launch is None or place is None or launch.launcher == "deepspeed" or "$" in place.text:
        return None
    value = launch.environment.get(_VISIBLE)
    hidden = value is not None and (value.strip().lower() in _NO_GPU or value.strip().startswith("-1"))
    return f"{_VISIBLE} at {place}" if hidden else None


_VISIBLE = "CUDA_VISIBLE_DEVICES"


def _on_apple(sources: Sources) -> str | None:
    return _switch_of(sources, _APPLE_SWITCHES) or _flag_of(sources, _APPLE, _CPU_FLAGS)


def _by_map(sources: Sources) -> str | None:
    """Where a script in one process, which has no word for CUDA, loads all of its model onto the CPU: a Trainer that
    finds a GPU moves it there, but whoever wrote that has none."""
    script, launch = sources.script, sources.launch
    if (launch is not None and launch.launcher != "python") or sources.accelerate or sources.deepspeed:
        return None
    load = script.facts.trained_load if script is not None else None
    given = load.argument("device_map") if load is not None and load.taken is True else None
    if script is None or given is None or given.value not in ("cpu", {"": "cpu"}) or "cuda" in script.document.text:
        return None
    return f"device_map at {given.place}"


def _by_file(sources: Sources) -> Place | None:
    """The ``use_cpu`` of an Accelerate file whose one process is told of it: those of other engines are not."""
    file = sources.accelerate
    node, kind = (file.node(key) if file is not None else None for key in ("use_cpu", "distributed_type"))
    if file is None or node is None or truth(node.value) is not True or sources.said("launch", "engine") is not None:
        return None
    alone = file.engine in (None, "single") or (kind is not None and kind.value == "MULTI_CPU")
    return Place(file.document, node.span) if alone else None


def _switch_of(sources: Sources, names: tuple[str, ...]) -> str | None:
    flags = sources.launch.flags if sources.launch is not None else ()
    said = (each for each in flags if each.name in names and each.is_on and not each.doubtful)
    return next((f"--{each.name}" for each in said), None)


def _flag_of(sources: Sources, devices: Collection[str], names: tuple[str, ...]) -> str | None:
    flags = sources.launch.flags if sources.launch is not None else ()
    said = (each for each in flags if each.name in names and (each.value or "").lower() in devices)
    return next((f"--{each.name} {each.value}" for each in said), None)


def _on_tpu(sources: Sources) -> str | None:
    launch, file, script = sources.launch, sources.accelerate, sources.script
    if launch is not None:
        if launch.launcher in ("accelerate", "trl") and "tpu" in launch.invocation.options:
            return "--tpu"
        if launch.environment.get("PJRT_DEVICE", "").upper() == "TPU":
            return "PJRT_DEVICE=TPU"
        for flag in launch.flags:
            value = (flag.value or "").lower()
            asked = flag.name in ("tpu", "use_tpu") and value in ("", "true", "1", "yes")
            if asked or (value in _TPU and any(word in flag.name.lower() for word in _DEVICES)):
                return f"--{flag.name}{f' {flag.value}' if flag.value is not None else ''}"
    kind = file.node("distributed_type") if file is not None and sources.said("launch", "engine") is None else None
    if file is not None and kind is not None and kind.value in ("XLA", "TPU") and file.chosen is None:
        return f"distributed_type {kind.value} at {Place(file.document, kind.span)}"
    if script is None:
        return None
    if script.trains_on_tpu:
        return "PJRT_DEVICE, which the script sets"
    made = (call for call in script.calls(*_XLA_CALLS) if call.taken is True and call.function.startswith("torch_xla."))
    return next((f"torch_xla at {call.place}" for call in made), None)
