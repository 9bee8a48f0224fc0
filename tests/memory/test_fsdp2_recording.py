"""FSDP 2 as ``bench/ranks/fsdp2.py`` recorded it on two ranks (torch 2.13, gloo, fp32 shards, bf16 for compute)."""

from __future__ import annotations

import importlib.util
from pathlib import Path

RECORDED = {"parameters": 5_377_536, "gradients": 5_377_536, "optimizer_states": 10_755_072}


def test_a_rank_holds_what_lintfit_says() -> None:
    path = Path(__file__).parents[2] / "bench/ranks/fsdp2.py"
    spec = importlib.util.spec_from_file_location("bench_fsdp2", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.expected() == RECORDED
