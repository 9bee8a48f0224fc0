"""Whole steps of small models with SGD, as ``bench.fake_tensors`` counts them, and dtypes that their specs share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.memory import estimate
from lintfit.memory.reading.parse import spec_from_mapping
from lintfit.memory.result import Estimate

MIB = 2**20
BF16 = {"weights_dtype": "bf16"}
FP32 = {"weights_dtype": "fp32"}
AMP = {"weights_dtype": "fp32", "mixed_precision": "bf16"}
HALF_AMP = {"weights_dtype": "bf16", "mixed_precision": "bf16"}


def step(config: Mapping[str, Any], batch: int, seq: int, more: Mapping[str, Any]) -> Estimate:
    """A step of ``batch`` x ``seq`` tokens as transformers 5.23 takes it."""
    base = {"model_config": config, "optimizer": "sgd", "versions": {"transformers": "5.23.0"}}
    return estimate(spec_from_mapping({**base, "micro_batch_size": batch, "seq_len": seq, **more}))
