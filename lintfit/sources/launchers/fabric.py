"""Lightning Fabric's words for engines and precisions, the same in ``Fabric(...)`` and behind ``fabric run``.

They are those of ``lightning.fabric`` 2.x: ``strategies/deepspeed.py``, ``strategies/fsdp.py``, ``cli.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.documents.numerals import natural
from lintfit.settings.model import UNKNOWN

MIXED: Mapping[str, str] = {
    "bf16-mixed": "bf16",
    "16-mixed": "fp16",
    "bf16": "bf16",
    "16": "fp16",
    "bf16-true": "no",
    "16-true": "no",
    "32-true": "no",
    "32": "no",
}
"""The mixed precision that a ``precision`` means, by name."""

WEIGHTS: Mapping[str, str] = {"bf16-true": "bf16", "16-true": "fp16"}
"""The dtype that a ``precision`` casts the module to; the others leave the weights as they are."""


def engine_precision(name: str) -> str | None:
    """What DeepSpeed is told for a ``precision``: its 16-bit block goes on for the true kind, too."""
    kind = name.partition("-")[0]
    return {"bf16": "bf16", "16": "fp16", "32": "no"}.get(kind)


def strategy(name: str) -> Mapping[str, Any]:
    """The settings that a strategy's name stands for; nothing for ``auto``."""
    if name == "auto":
        return {}
    if name.startswith("deepspeed"):
        offload = ("nvme" if name.endswith("nvme") else "cpu") if "offload" in name else "none"
        # DeepSpeedStrategy: stage 2 unless the name says another; "_offload" offloads all that the stage can.
        stage = next((number for part in name.split("_") if (number := natural(part)) is not None), 2)
        return {
            "engine": "deepspeed",
            "zero_stage": stage,
            "offload_optimizer": offload,
            "offload_param": offload if stage == 3 else "none",
        }
    if name.startswith("ddp"):
        return {"engine": "ddp"}
    if name in ("fsdp", "fsdp_cpu_offload"):
        from lintfit.settings.values import Fsdp

        return {"engine": "fsdp", "fsdp": Fsdp(1, "FULL_SHARD", name.endswith("offload"))}
    return {"engine": UNKNOWN}
