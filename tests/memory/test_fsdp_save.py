"""What saving a full state dict takes on the GPU under FSDP 1, by the version of transformers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lintfit.memory import estimate
from lintfit.memory.reading.parse import spec_from_mapping
from lintfit.memory.result import Verdict
from lintfit.memory.tensors.parameters import inventory
from lintfit.settings.values import Fsdp

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


def test_a_script_that_takes_the_whole_state_dict_itself_copies_it() -> None:
    """``trainer.model.state_dict()`` outside of ``FSDP.state_dict_type``: as transformers before 4.30 did."""
    spec = spec_from_mapping({**VICUNA_13B_ON_FOUR, "versions": {"transformers": "4.46.3"}})
    told, whole = estimate(spec), estimate(replace(spec, saves_on_gpu=True))
    before = estimate(spec_from_mapping({**VICUNA_13B_ON_FOUR, "versions": {"transformers": "4.28.0"}}))
    assert told.verdict is Verdict.FITS
    assert whole.verdict is Verdict.DOES_NOT_FIT
    saved = [next(moment for moment in each.moments if moment.phase == "save") for each in (told, whole, before)]
    assert saved[1].allocated == saved[2].allocated
    assert saved[1].allocated - saved[0].allocated == inventory(spec).bytes
    second = replace(spec, saves_on_gpu=True, fsdp=Fsdp(version=2))
    assert estimate(second).peak == estimate(replace(second, saves_on_gpu=False)).peak
