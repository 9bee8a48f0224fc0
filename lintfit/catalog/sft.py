"""What TRL's SFT trainer does where nobody says, by TRL's version; the newest where none is known.

Read in 0.12 to 1.16; the fields of its ``SFTConfig`` are in :mod:`.defaults`.
"""

from __future__ import annotations

from typing import Literal

from lintfit.catalog.defaults import default, version_key

FUSES_LOSS = (1, 16)
"""The first TRL whose SFT trainer fuses the loss with the head for every model, whatever its ``loss_type``."""
CHUNKS_LOSS = (1, 8)
"""The first whose default is the loss in chunks."""


def loss(version: str | None) -> Literal["full", "chunked"]:
    """How the loss is computed by default."""
    return "chunked" if version is None or version_key(version) >= CHUNKS_LOSS else "full"


def checkpoints(version: str | None) -> bool:
    """Whether gradient checkpointing is on by default."""
    return _of_config("gradient_checkpointing", version) is True


def in_bf16(version: str | None) -> bool:
    """Whether it trains in bf16 unless ``fp16`` is set (``bf16=None``)."""
    found = default("trl", "SFTConfig", "bf16", version)
    return found is not None and found.since.startswith("trl") and found.value is None


def length(version: str | None) -> int:
    """Tokens that a sequence is cut to (``max_length``)."""
    found = _of_config("max_length", version)
    assert isinstance(found, int)
    return found


def _of_config(field: str, version: str | None) -> object:
    found = default("trl", "SFTConfig", field, version)
    return found.value if found is not None else None
