"""What a run needs beyond what its settings say of a rank: frozen weights that an old FSDP does not free, and models
that every process loads onto the first GPU. Each is a lower bound of what is there."""

from __future__ import annotations

from lintfit.frozen import frozen, replace
from lintfit.memory import estimate
from lintfit.memory.result import Estimate, Moment, Range, Verdict
from lintfit.memory.spec import Spec
from lintfit.run.model import Run
from lintfit.run.stopping import loads_on_one_gpu
from lintfit.settings.values import Fsdp
from lintfit.versions import before

_FREED = "2.1"
"""torch up to 2.0 has FSDP 1 free a unit in the backward pass only where its flat parameter gets a gradient: with
adapters the whole frozen model is on every GPU when it ends (pytorch#95805). Since 2.1 the gradients of a unit's inputs
free it (pytorch#101982)."""


@frozen
class Beyond:
    """What is needed at least, of which spec, and why."""

    spec: Spec
    estimate: Estimate
    rank: Estimate
    """What the run's settings say of a rank, without it."""
    why: str
    help: str
    by_settings: bool = False
    """Whether other settings of the run do without it; else no plan for them changes it."""

    @property
    def reason(self) -> str:
        return f"{self.why} ({self.help})"


def beyond(run: Run, spec: Spec, result: Estimate) -> Beyond | None:
    """What decides beyond the estimate of a rank; None where nothing does."""
    return not_freed(spec, result) or on_first_gpu(run, spec, result)


def not_freed(spec: Spec, result: Estimate) -> Beyond | None:
    """The run with its weights whole on every GPU, where torch leaves the frozen ones there: beside them a rank has its
    shards."""
    if spec.engine != "fsdp" or spec.method != "lora" or (spec.fsdp or Fsdp()).version != 1 or spec.gpus < 2:
        return None
    torch = spec.versions.get("torch")
    if torch is None or not before(torch, _FREED):
        return None
    whole = replace(spec, engine="ddp", fsdp=None)
    why = f"FSDP of torch {torch} frees no frozen weights in the backward pass: each GPU has all of them at its end"
    return Beyond(whole, estimate(whole), result, why, f"torch {_FREED} frees them", by_settings=True)


def on_first_gpu(run: Run, spec: Spec, result: Estimate) -> Beyond | None:
    """The models of all processes of a machine on its first GPU, as they are loaded."""
    found = loads_on_one_gpu(run)
    if found is None or spec.capacity_bytes is None:
        return None
    from lintfit.memory.framework import CONTEXT

    ranks = max(spec.gpus // spec.nodes, 1)
    weights = ranks * found.loads * result.component("parameters")
    loading = Moment("loading on GPU 0", "load", {"parameters": weights, "framework": ranks * CONTEXT.likely})
    peak = Range(weights + ranks * CONTEXT.low, loading.total, weights + ranks * CONTEXT.high)
    verdict = Verdict.DOES_NOT_FIT if peak.low > spec.capacity_bytes else Verdict.UNKNOWN
    held = replace(result, peak=peak, moments=(loading, *result.moments), verdict=verdict)
    return Beyond(spec, held, result, found.reason, found.help)
