from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.readers import one_load
from lintfit.run.model import Run
from lintfit.sources.script.source import ScriptSource

_WRAPPERS = ("torch.nn.DataParallel", "torch.nn.parallel.DataParallel")
_OWN_CLASS = "transformers.PreTrainedModel.from_pretrained"
"""A load by a class of the script's own, of which only the base class is known."""
_WHY = "it copies the model in every step and gathers all logits on the first GPU"


def check_run(context: RunContext) -> Iterator[Report]:
    run = context.run
    if run.script is None or not run.script.facts.trains:
        return
    yield from _wrapped(run, run.script)
    yield from _by_the_trainer(run)


def _wrapped(run: Run, script: ScriptSource) -> Iterator[Report]:
    """``nn.DataParallel(model)`` in the script, where there is no other way to use several GPUs in it."""
    if script.calls("DistributedDataParallel", "DDP", "initialize", "prepare", "init_process_group"):
        return
    if run.launch is not None and run.launch.launcher != "python":
        return
    if not _of_language(run, script):
        return
    for call in script.calls("DataParallel"):
        if call.function in _WRAPPERS:
            yield Report(
                call.place,
                f"nn.DataParallel: {_WHY}",
                help="DistributedDataParallel, one process for each GPU (torchrun)",
            )


def _of_language(run: Run, script: ScriptSource) -> bool:
    """Whether the script trains a language model, as far as is known: of a small net of its own nothing is large."""
    loads = (load for load in script.facts.loads if load.taken is not False)
    return run.facts is not None or any(load.function != _OWN_CLASS for load in loads)


def _by_the_trainer(run: Run) -> Iterator[Report]:
    """A Trainer in one plain process that sees several GPUs."""
    launch = run.launch
    if launch is None or launch.launcher != "python" or run.script is None or run.script.facts.trainer is None:
        return
    visible = launch.settings.get("visible_devices")
    if visible is None or not isinstance(visible.value, str) or run.value("engine") != "single":
        return
    cards = [part for part in visible.value.split(",") if part.strip()]
    if len(cards) < 2 or not all(part.strip().isdecimal() for part in cards) or not _one_device(run):
        return
    yield Report(
        visible.provenance.place or launch.place,
        f"one process that sees {len(cards)} GPUs makes the Trainer use nn.DataParallel: {_WHY}",
        help=f"torchrun --nproc_per_node {len(cards)}",
    )


def _one_device(run: Run) -> bool:
    """Whether the model is certainly not spread over the GPUs, and the Trainer is transformers' own or TRL's."""
    assert run.script is not None and run.script.facts.trainer is not None
    if not run.script.facts.trainer.function.startswith(("transformers.", "trl.")):
        return False
    handed = run.script.facts.trainer.argument("model")
    if handed is not None and isinstance(handed.value, str):
        return False  # TRL's trainer loads it, from 0.26 on over all GPUs (``create_model_from_path``)
    load = one_load(run)
    if load is None or load.spreads or not load.function.startswith("transformers."):
        return False
    spread = load.argument("device_map")
    return (spread is None or spread.value is None) and "parallel" not in run.script.document.text
