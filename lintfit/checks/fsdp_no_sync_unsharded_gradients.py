from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.readers import reader_of
from lintfit.checks.helpers.runs import breaks_or_strains, place_of
from lintfit.checks.helpers.wording import gib
from lintfit.findings.model import Severity
from lintfit.memory.engines.fsdp import accumulated, reduces_each, sharded, sharers, stored
from lintfit.run.model import Run

_WORTH_IT = 0.05
"""Share of the GPU that sharded gradients must give back to be mentioned."""
_WAYS = ("sync_each_batch", "set_requires_gradient_sync")
"""Words of code that reduces the gradients of every micro-batch."""


def check_run(context: RunContext) -> Iterator[Report]:
    run, spec = context.run, context.run.spec
    severity = breaks_or_strains(context)
    if severity is None or spec is None or spec.engine != "fsdp" or spec.capacity_bytes is None:
        return
    if spec.gradient_accumulation_steps < 2 or sharers(spec) == 1 or reduces_each(spec):
        return
    if spec.fsdp is not None and spec.fsdp.version == 1 and spec.fsdp.cpu_offload:
        return  # FSDP 1 cannot accumulate outside no_sync() then: a reduced gradient replaces the one before
    if not _holds_back(run) or run.mentions(*_WAYS):
        return
    held = stored(spec)
    whole = accumulated(spec, held, held)
    shard = sharded(held, sharers(spec)).trainable_bytes  # what is reduced has the dtype of the shards, fp32 if upcast
    if whole - shard < _WORTH_IT * spec.capacity_bytes:
        return
    by_trainer = reader_of((run,)) == "transformers"
    yield Report(
        place_of(run, "gradient_accumulation_steps"),
        f"{spec.gradient_accumulation_steps} micro-batches are accumulated under no_sync(), where FSDP keeps the "
        f"gradients whole on each GPU: {gib(whole)} instead of a shard of {gib(shard)}",
        severity=min(severity, Severity.WARNING),
        help="reduce the gradients of every micro-batch ("
        + (
            'accelerator_config={"gradient_accumulation_kwargs": {"sync_each_batch": True}}, which transformers heeds '
            "up to 4.46.1 and from 5.2 on)"
            if by_trainer
            else _PLUGIN
        ),
    )


_PLUGIN = "GradientAccumulationPlugin(num_steps=…, sync_each_batch=True)), or leave no_sync() out of a loop of your own"


def _holds_back(run: Run) -> bool:
    """Whether all but the last micro-batch surely run under ``no_sync``, as the Trainer and Accelerate have it."""
    if run.training is None or not run.training.trains:
        return False
    if run.script is None or run.training.uses_trainer:
        return run.training.uses_trainer
    return any(call.taken is True for call in run.script.calls("accumulate", "no_sync"))
