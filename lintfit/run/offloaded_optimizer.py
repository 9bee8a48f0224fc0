"""An optimizer that a run asks for and does not get, because DeepSpeed offloads the states to its own."""

from __future__ import annotations

from lintfit.documents.patterns import lazy_pattern
from lintfit.run.model import Run
from lintfit.settings.model import Setting

_BITSANDBYTES = lazy_pattern(r"8bit$|^paged_|_bnb")


def is_bitsandbytes(optimizer: str) -> bool:
    """Whether an optimizer of this name is bitsandbytes', which steps on a GPU only."""
    return _BITSANDBYTES.search(optimizer) is not None


def asked_in_vain(run: Run) -> Setting | None:
    """The optimizer of bitsandbytes that a file asks for; None where it trains, or nothing is offloaded."""
    if run.training is None or run.value("engine") != "deepspeed":
        return None
    if run.value("offload_optimizer") not in ("cpu", "nvme") or not _forced(run):
        return None
    asked = run.training.settings.get("optimizer")
    if asked is None or not isinstance(asked.value, str) or asked.provenance.kind != "file":
        return None
    return asked if is_bitsandbytes(asked.value) else None


def _forced(run: Run) -> bool:
    """Whether DeepSpeed insists on its own CPU optimizer, and the JSON has none that is used instead."""
    if run.deepspeed is None:
        return True
    insists = run.deepspeed.node("zero_force_ds_cpu_optimizer")
    return run.deepspeed.node("optimizer") is None and (insists is None or insists.value is True)
