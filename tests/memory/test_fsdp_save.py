"""What saving a full state dict takes on the GPU under FSDP 1, by the version of transformers."""

from __future__ import annotations

import pytest

from lintfit.memory import estimate
from lintfit.memory.reading.parse import spec_from_mapping
from lintfit.memory.result import Verdict

VICUNA_13B_ON_FOUR = {
    "model": "huggyllama/llama-13b",
    "gpu": "A100-80GB",
    "gpus": 4,
    "engine": "fsdp",
    "fsdp": {"version": 1, "strategy": "FULL_SHARD"},
    "weights_dtype": "fp32",
    "mixed_precision": "bf16",
    "micro_batch_size": 1,
    "seq_len": 2048,
    "gradient_checkpointing": True,
}


@pytest.mark.parametrize(
    ("version", "verdict"),
    [("4.28.0", Verdict.DOES_NOT_FIT), ("4.30.0", Verdict.FITS), (None, Verdict.FITS)],
)
def test_a_run_that_trains_and_dies_as_it_saves(version: str | None, verdict: Verdict) -> None:
    """FastChat issue 256: Vicuna-13B on four A100-80GB, transformers 4.28."""
    versions = {"versions": {"transformers": version}} if version else {}
    found = estimate(spec_from_mapping({**VICUNA_13B_ON_FOUR, **versions}))
    assert found.verdict is verdict
    dies = verdict is Verdict.DOES_NOT_FIT
    assert (max(found.moments, key=lambda moment: moment.allocated).phase == "save") is dies
