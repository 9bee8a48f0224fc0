from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.fixes import related
from lintfit.checks.helpers.readers import older
from lintfit.checks.helpers.runs import place_of, stated_at
from lintfit.checks.helpers.zero3_loads import refused_loads
from lintfit.findings.model import Severity
from lintfit.run.model import Run

_NEEDED = (
    ("bitsandbytes", "0.43.3"),
    ("accelerate", "1.0.1"),
    ("transformers", "4.44.3"),
    ("trl", "0.11.5"),
    ("peft", "0.13.1"),
)
"""The oldest versions that peft's DeepSpeed guide asks for."""

OF_LAUNCHES = True


def check_run(context: RunContext) -> Iterator[Report]:
    run = context.run
    if run.training is None or run.value("engine") != "deepspeed" or run.value("zero_stage") != 3:
        return
    if run.value("quantization") not in ("nf4", "nf4-double"):
        return
    if any(True for _ in refused_loads(run)):
        return  # the load stops, and leaves no model on any rank (zero3-device-map)
    needed = [each for each in _NEEDED if each[0] != "trl" or run.training.uses_trl]
    old = [f"{library} before {bound}" for library, bound in needed if older((run,), library, bound)]
    if not old and _stored_as_floats(run):
        return
    why = ", ".join(old) if old else "packed weights stored as uint8 (no bnb_4bit_quant_storage)"
    yield Report(
        place_of(run, "quantization"),
        f"{why}: every rank loads the whole 4-bit model, which DeepSpeed shards at initialize",
        severity=Severity.INFO,
        related=related(stated_at(run, "zero_stage"), "ZeRO-3 is asked for here"),
        help="upgrade and set bnb_4bit_quant_storage to the compute dtype (peft's guide), or use ZeRO-2 or DDP",
    )


def _stored_as_floats(run: Run) -> bool:
    """Whether the packed weights are held as a floating-point tensor, or nobody can tell."""
    if run.recipe is not None:
        stored = run.recipe.argument("bnb_4bit_quant_storage")
        return stored is None or stored.value not in ("uint8", None)
    assert run.script is not None
    config = run.script.facts.quantization_config
    if config is None or config.spreads:
        return True
    storage = config.argument("bnb_4bit_quant_storage")
    return storage is not None and storage.value not in ("uint8", "torch.uint8", None)
