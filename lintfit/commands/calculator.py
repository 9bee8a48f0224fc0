"""``lintfit estimate --model … --gpu …`` and no more: what the usual ways to train take, on one to eight GPUs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.commands.described import in_flags
from lintfit.commands.specs import Estimated, estimate_mapping
from lintfit.errors import LintfitError
from lintfit.findings.questions import Cell, Sweep
from lintfit.findings.results import RunResult
from lintfit.fit.options import run_of

GPUS = (1, 2, 4, 8)
METHODS: Mapping[str, Mapping[str, Any]] = {
    "full": {},
    "LoRA": {"method": "lora", "lora_rank": 16, "lora_targets": "all-linear"},
    "QLoRA": {"method": "lora", "lora_rank": 16, "lora_targets": "all-linear", "quantization": "nf4-double"},
}
ENGINES: Mapping[str, Mapping[str, Any]] = {
    "plain": {},
    "ZeRO-2": {"zero_stage": 2},
    "ZeRO-3": {"zero_stage": 3},
    "offload": {"zero_stage": 3, "offload_optimizer": "cpu", "offload_param": "cpu"},
}
USUAL: Mapping[str, Any] = {
    "mixed_precision": "bf16",
    "micro_batch_size": 1,
    "seq_len": 2048,
    "gradient_checkpointing": True,
}
"""What all of them have in common; the table says it."""


def table(hardware: Mapping[str, Any]) -> Sweep:
    """Every way on every number of GPUs. Raises LintfitError for a model or GPU that is not known."""
    common = {**USUAL, **hardware}
    first = estimate_mapping(common)
    if first.spec is None:
        raise LintfitError(in_flags(first.error))
    cells = tuple(
        _cell({"trained": f"{method}, {engine}", "GPUs": gpus}, {**common, "gpus": gpus, **what, **how})
        for method, what in METHODS.items()
        for engine, how in ENGINES.items()
        for gpus in GPUS
    )
    return Sweep(RunResult(run_of(first.spec)), ("trained", "GPUs"), cells)


def _cell(values: Mapping[str, Any], mapping: Mapping[str, Any]) -> Cell:
    result: Estimated = estimate_mapping(mapping)
    return Cell(values, result.estimate, result.error)
