"""Where a run stops with an error, whatever its memory: such a run has no verdict that it fits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath
from typing import TYPE_CHECKING

from lintfit.frozen import frozen
from lintfit.run.model import Run
from lintfit.settings.model import Place
from lintfit.versions import COMMIT, FLOOR, before

if TYPE_CHECKING:
    from lintfit.catalog.dating import Taken
    from lintfit.sources.script.model import Argument, Call

_MAPPED = "4.50"
"""transformers up to 4.49 hands every ``device_map`` to accelerate's ``dispatch_model``, which leaves the map on the
model (``hf_device_map``); of later versions this has not been looked up."""

_OF_BITSANDBYTES = frozenset({"nf4", "nf4-double", "int8"})


@frozen
class Stop:
    """An error that a run ends with: the call it comes from, why there is no verdict, and what to do.

    ``loads`` are the models that each process loads, where it is loading that ends it."""

    place: Place
    reason: str
    help: str
    loads: int = 0


def refuses_its_command(run: Run) -> bool:
    """Whether the parser refuses a flag of the command, so that the run stops before it loads a model."""
    surely = (each for each in run.refused if each.stops and not each.ignored and not each.newer and not each.fork)
    return any(not each.decided_by for each in surely)


def refused_keywords(run: Run) -> Iterator[tuple[Call, Argument, Taken]]:
    """Keywords of the trainer and of its config that no version takes which the project may have: their constructors
    have no ``**kwargs`` and stop with TypeError.

    Unsloth puts classes of its own into their places, which take some of them still (``max_seq_length``).
    """
    if run.script is None or run.mentions("unsloth"):
        return
    from lintfit.catalog.dating import taken_by_config, taken_by_trainer

    facts = run.script.facts
    for call, takes in ((facts.training_arguments, taken_by_config), (facts.trainer, taken_by_trainer)):
        if call is None or call.taken is not True or not call.function.startswith(("transformers.", "trl.")):
            continue
        for argument in call.arguments.values():
            taken = takes(call.name, argument.name) if argument.is_written else None
            if taken is not None and _is_past(run, taken) and run.script.makes_as_it_is(call):
                yield call, argument, taken


def takes_no_arguments(run: Run) -> Stop | None:
    """A trainer or its config that is made with a keyword which it no longer has. Its memory is judged all the same, as
    that of the run without the keyword: one line mends it."""
    for call, argument, _ in refused_keywords(run):
        return Stop(argument.whole, f"{call.name} no longer takes {argument.name}", "take it out")
    return None


def _is_past(run: Run, taken: Taken) -> bool:
    """Whether every version that a run may have is one that no longer takes an argument."""
    if taken.gone is None or taken.library + COMMIT in run.versions:
        return False
    known = (run.versions.get(taken.library), run.versions.get(taken.library + FLOOR))
    return any(before(version, taken.gone) is False for version in known)


def evaluates_nothing(run: Run) -> Stop | None:
    """A trainer that is to evaluate as it trains, and has no data for that."""
    call = run.script.evaluates_nothing if run.script is not None else None
    if call is None:
        return None
    why = f"what it evaluates: it is to evaluate as it trains, and the trainer at {call.place} has no eval_dataset"
    return Stop(call.place, why, "pass one, or turn evaluation off")


def imports_from_no_package(run: Run) -> Place | None:
    """A relative import of a script that the command starts by its path: it is ``__main__`` then, in no package, and
    Python stops with ImportError (``importlib._bootstrap._sanity_check``; PEP 366). torchrun, accelerate and deepspeed
    start a script like Python itself where they are not asked for a module."""
    launch, script = run.launch, run.script
    if launch is None or script is None or launch.module or launch.assumed or not launch.script:
        return None
    return script.relative_import if PurePath(launch.script).name == script.document.path.name else None


def stops_at_import(run: Run) -> str | None:
    """What a run stops at before it comes to its parser, as a clause."""
    if imports_from_no_package(run) is not None:
        return "its relative import has no package"
    lacking = run.script.stops_at_import if run.script is not None else None
    if lacking is not None:
        return f"{lacking[0]} has no {lacking[1]} to import"
    refused = run.script.stops_at_field if run.script is not None else None
    return f"the metadata of {refused[0]}.{refused[1]} is no mapping" if refused is not None else None


def lacks_a_key(run: Run) -> Stop | None:
    """A dict of the script's own that is asked for what the command, or a default, says and that has no such key:
    whoever starts the script has another value there."""
    place = run.script.lacks_a_key if run.script is not None and run.launch is not None else None
    if place is None:
        return None
    why = f"another value for {place.text}, at {place}: the dict has no such key, and the script stops with KeyError"
    return Stop(place, why, "pass one of its keys")


def asks_for_two_engines(run: Run) -> Stop | None:
    """A Trainer whose arguments ask for FSDP in a run with DeepSpeed: ``Trainer.__init__`` refuses both together
    (``trainer.py`` of transformers 4.26 to 5.24), also where the field is set after the arguments are made."""
    if run.script is None or run.training is None or not run.training.uses_trainer:
        return None
    trainer, asked = run.script.facts.trainer, run.script.settings.get("fsdp")
    if run.value("engine") != "deepspeed" or trainer is None or trainer.taken is not True:
        return None
    if asked is None or not asked.known or not asked.value or asked.provenance.kind != "file":
        return None
    place = asked.provenance.place
    if place is None:
        return None
    return Stop(place, "FSDP is asked for beside DeepSpeed, and the Trainer takes one", "drop one")


def loads_on_one_gpu(run: Run) -> Stop | None:
    """A quantized model that each of several processes loads onto GPU 0.

    accelerate refuses to train it on another GPU (``Accelerator.prepare_model``: "You can't train a model that has been
    loaded in 8-bit precision on a different device than the one you're training on"), if GPU 0 has room for so many.
    """
    ranks = run.settings.get("gpus")
    if run.script is None or ranks is None or ranks.provenance.kind in ("option", "assumed") or run.launch is None:
        return None
    if not isinstance(ranks.value, int) or ranks.value < 2 or run.value("engine") != "ddp":
        return None
    if run.value("quantization") not in _OF_BITSANDBYTES or not before(run.versions.get("transformers"), _MAPPED):
        return None
    calls = run.script.loads_on_current_gpu
    if not calls:
        return None
    why = f"all {ranks.value} processes load the model onto GPU 0, for want of a device_map"
    return Stop(calls[0].place, why, 'device_map={"": PartialState().process_index}', len(calls))
