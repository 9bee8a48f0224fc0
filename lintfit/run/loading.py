"""How a run's model gets onto the GPUs: partitioned while it loads, or whole first."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from lintfit.documents.patterns import lazy_pattern
from lintfit.run.model import Run
from lintfit.run.precedence import Sources
from lintfit.run.processes import available
from lintfit.settings.model import UNKNOWN, Setting
from lintfit.sources.script.model import Argument, Call
from lintfit.versions import before

CASTS_ALL = "0.3"
"""The first PEFT whose ``prepare_model_for_int8_training`` casts all 16-bit parameters to fp32; 0.2 casts the norms of
a model in eight bits (``utils/other.py``)."""
_PREPARES = ("prepare_model_for_kbit_training", "prepare_model_for_int8_training")


def loading(values: dict[str, Any], sources: Sources, versions: Mapping[str, str], gpus: int | None) -> None:
    """What a script's own calls decide, put to the spec's values."""
    assert sources.script is not None
    script = sources.script.facts
    if values.get("zero_stage") == 3:
        values["zero3_init"] = not _whole(sources, versions)
    consumer = script.trainer or script.initialize
    load = script.trained_load
    fills = load is not None and values.get("engine") == "deepspeed" and gpus == 1 and _fills_its_gpu(load, sources)
    mapped = load is not None and values.get("quantization") is None and (fills or on_own_gpu(load) is not None)
    moved = any(
        move.call.taken is True and (consumer is None or move.call.order < consumer.order) for move in script.moves
    )
    values["placed_by_tensor"] = load is not None and _placed_by_tensor(load)
    # Of a model that is partitioned as it loads a rank has nothing whole that it could move (DeepSpeed's zero.Init);
    # transformers refuses a map for it, and the run is judged as it is without one (zero3-device-map).
    values["loaded_on_gpu"] = (mapped or moved) and not values.get("zero3_init", False)
    casts = values.get("quantization") is not None or before(versions.get("peft"), CASTS_ALL) is not True
    if casts and any(call.name in _PREPARES and call.taken is True for call in script.checkpointing):
        values.setdefault("kbit_upcast", "all")
    upcasts = [upcast for upcast in script.upcasts if upcast.call.taken is True]
    if upcasts and values.get("engine") == "deepspeed":
        values["full_load_dtype"] = "fp32"


SPREADS = frozenset({"auto", "balanced", "balanced_low_0", "sequential"})
"""Values of ``device_map`` that give each visible GPU a part of the layers (``accelerate.infer_auto_device_map``)."""
_BALANCED = ("auto", "balanced")
"""Those of them that give each about the same (``get_balanced_memory``)."""
_SPLITTERS = frozenset({"tensor_parallel", "TensorParallel", "TensorParallelPreTrainedModel"})


def _fills_its_gpu(load: Call, sources: Sources) -> bool:
    """Whether a ``device_map`` for all visible GPUs must find room for the whole model, as it is loaded, on the only
    one that a process of DeepSpeed sees.

    Where it puts layers on the host, nobody can move the model to the GPU any more, which the engine does: accelerate
    raises RuntimeError, "You can't move a model that has some modules offloaded to cpu or disk" (1.15
    ``big_modeling.py:dispatch_model``; DeepSpeed 0.19.8 ``engine.py:_configure_distributed_model``).
    DeepSpeed's launcher shows its processes the GPUs that it starts them on (``launcher/launch.py``).
    """
    argument, there = load.argument("device_map"), available(sources)
    alone = sources.launch is not None and sources.launch.launcher == "deepspeed"
    alone = alone or _sees_one(sources) or (there is not None and there.value == 1)
    spreads = argument is not None and isinstance(argument.value, str) and argument.value in SPREADS
    return load.taken is True and spreads and alone


_UNSLOTH_SPREADS = "2025.3"
"""The first Unsloth that leaves all GPUs visible to its process; before, ``unsloth/__init__.py`` set
``CUDA_VISIBLE_DEVICES`` to one (up to 2025.2.15)."""


def spread_by(sources: Sources, settings: Mapping[str, Setting], versions: Mapping[str, str]) -> str | None:
    """What splits the model of one process over several GPUs that the machine has, or may, where nobody can tell what
    ``device_map`` comes to; None where nothing does."""
    there, engine = available(sources), settings.get("engine")
    if sources.script is None or there is None or there.value is UNKNOWN or there.value < 2 or _sees_one(sources):
        return None
    script = sources.script.facts
    load = script.trained_load
    # Which of several loads is made may not be known: the model is spread where one of them spreads it, or may.
    sure = load is not None and load.taken is not None
    alike = [each for each in script.loads if load is None or each.assigned_to == load.assigned_to]
    loads = [load] if load is not None and sure else [each for each in alike if each.taken is not False]
    asked = [each.argument("device_map") if each.taken is not False else None for each in loads]
    found = [each for each in asked if each is not None]
    word = next((each.value for each in found if _spreads(each.value)), None)
    spreads = word is not None
    may = any(each.value is UNKNOWN and not _is_of_rank(each) for each in found)
    name = f'device_map="{word}"' if isinstance(word, str) and word in _BALANCED else "device_map"
    if sources.launch is None and spreads:
        return name  # nobody starts it as more than one process, which trainers refuse with such a map
    if engine is None or engine.value != "single":
        return None
    if load is not None and _spreads_by_itself(load, versions):
        return "device_map"
    for call in sources.script.calls(*_SPLITTERS):
        if call.taken is True and call.function.startswith("tensor_parallel."):
            return "tensor_parallel"
    return name if spreads or may else None


def _spreads_by_itself(load: Call, versions: Mapping[str, str]) -> bool:
    """Whether a load without a ``device_map`` fills one GPU after the other: Unsloth's ``from_pretrained`` has
    ``device_map = "sequential"`` (``models/loader.py``, 2024.8 to 2025.11)."""
    told = load.spreads or load.argument("device_map") is not None
    return (
        load.function.startswith("unsloth")
        and not told
        and before(versions.get("unsloth"), _UNSLOTH_SPREADS) is not True
    )


_PARALLEL = ("torch.nn.DataParallel", "torch.nn.parallel.DataParallel", "torch.nn.parallel.data_parallel.DataParallel")


def splits_batch(sources: Sources, settings: Mapping[str, Setting]) -> bool:
    """Whether a loop of the script's own gives each GPU that its process sees a part of the batch
    (``torch/nn/parallel/data_parallel.py:scatter``)."""
    there, engine = available(sources), settings.get("engine")
    if sources.script is None or there is None or there.value is UNKNOWN or there.value < 2 or _sees_one(sources):
        return False
    if engine is None or engine.value != "single" or sources.script.facts.trainer is not None:
        return False
    return any(call.function in _PARALLEL and call.taken is not False for call in sources.script.calls("DataParallel"))


_LEFT_OUT = lazy_pattern(
    r"^[ \t]*(?P<layers>[\w.]{1,200}\.(?:layers?|h|blocks?))[ \t]*=(?!=)[^\n]{0,80}?"
    r"(?:\b(?P=layers)\[[^\]\n]{0,80}:|\bin (?:enumerate\()?(?P=layers)\b[^\n]{0,20} if )",
    re.MULTILINE,
)


def leaves_layers_out(sources: Sources) -> bool:
    """Whether code of a run makes a part of a model's layers the layers: a slice, or those that a condition picks."""
    return sources.script is not None and sources.script.reading.calls.say(_LEFT_OUT)


_OF_RANK = lazy_pattern(r"rank|process_index|current_device|kbit_device_map|\bdevice\b|torch\.device|cuda:")
"""What a value is written with that is the process's own GPU: TRL's ``get_kbit_device_map``, ``local_rank``."""


_SPREADING = lazy_pattern(rf"""["'](?:{"|".join(sorted(SPREADS))})["']""")
"""The words that spread it, as they are written."""


def _is_of_rank(argument: Argument) -> bool:
    """Whether an argument that is not statically known names the process's own GPU by the words that it is written
    with, and none that spreads the model (``"auto" if device != "cpu" else None``)."""
    written = [place.text for place in (argument.place, argument.provenance.place) if place is not None]
    return any(map(_OF_RANK.search, written)) and not any(map(_SPREADING.search, written))


def spreads_model(run: Run) -> bool:
    """Whether the one process of a run gives parts of its model to all GPUs that it sees, however many these are."""
    if run.script is None or run.value("engine") != "single":
        return False
    loads = (load.argument("device_map") for load in run.script.facts.loads if load.taken is not False)
    return any(each is not None and _spreads(each.value) for each in loads)


def _spreads(place: object) -> bool:
    """Whether a ``device_map`` gives parts of the model to several GPUs."""
    return _names_several(place) or (isinstance(place, str) and place in SPREADS)


def _names_several(place: object) -> bool:
    """Whether a ``device_map`` is a mapping that gives modules to more than one GPU."""
    return isinstance(place, Mapping) and len({str(gpu) for gpu in place.values() if gpu not in ("cpu", "disk")}) > 1


def _sees_one(sources: Sources) -> bool:
    """Whether the process sees one GPU of the machine (``CUDA_VISIBLE_DEVICES=0``)."""
    visible = sources.said("launch", "visible_devices")
    return visible is not None and isinstance(visible.value, str) and "," not in visible.value


def on_own_gpu(load: Call) -> Argument | None:
    """The argument by which ``from_pretrained`` puts the whole model on the rank's own GPU, if it surely does.

    ``device_map={"": local_rank}``: a rank that nobody can tell without running the script is one all the same.
    """
    argument = load.argument("device_map")
    if load.taken is not True or argument is None:
        return None
    place = argument.value
    if isinstance(place, Mapping):
        place = place[""] if set(place) == {""} else None
        if place is UNKNOWN:
            return argument
    placed = type(place) is int or (isinstance(place, str) and place.partition(":")[0] == "cuda")
    return argument if placed else None


def _placed_by_tensor(load: Call) -> bool:
    """Whether ``from_pretrained`` gets a ``device_map`` of GPUs, by which each tensor goes to its place as it is read
    (transformers 4.30 to 4.57 ``_load_state_dict_into_meta_model``, 5.0 ``core_model_loading.py``)."""
    argument = load.argument("device_map")
    if load.taken is not True or argument is None:
        return False
    spreads = isinstance(argument.value, str) and argument.value in SPREADS
    unknown = argument.value is UNKNOWN and _is_of_rank(argument)
    return spreads or unknown or on_own_gpu(load) is not None


def _whole(sources: Sources, versions: Mapping[str, str]) -> bool:
    """Whether every rank surely loads a whole model, because nobody has told transformers of ZeRO-3 by then.

    The arguments and the ``Accelerator`` tell it of their config, accelerate before 1.0 only with ``zero3_init_flag``;
    a script may do so by hand (``HfDeepSpeedConfig``) or call ``zero.Init`` itself.
    """
    assert sources.script is not None
    script = sources.script.facts
    load = script.trained_load
    if load is None or load.taken is not True:
        return False
    tell: list[Call] = list(script.partitioning)
    if not _init_is_off(sources, versions):
        named = script.training_arguments is not None and sources.said("script", "deepspeed") is not None
        accelerator = None if named else script.accelerator  # which knows nothing of the Trainer's own config
        tell += [call for call in (script.training_arguments, script.parse_call, accelerator) if call]
        tell += sources.script.told_by_parsers
    trains = script.training_arguments or script.accelerator or script.initialize
    return trains is not None and all(call.order > load.order for call in tell)


def _init_is_off(sources: Sources, versions: Mapping[str, str]) -> bool:
    """Whether accelerate is told to partition nothing, and heeds it (before 1.0); the Trainer's own config does not."""
    flag = sources.said("launch", "zero3_init_flag") or sources.said("accelerate", "zero3_init_flag")
    if flag is None or flag.value is not False or sources.said("script", "deepspeed") is not None:
        return False
    return before(versions.get("accelerate"), "1.0") is True
