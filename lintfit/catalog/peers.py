"""Which releases of one library go with which of another, as they ask for each other when they are installed."""

from __future__ import annotations

from lintfit.versions import before

_TRL_ASKS = (
    ("0.7.5", "4.31"), ("0.11", "4.40"), ("0.12", "4.46"), ("0.18", "4.50"), ("0.19", "4.51"), ("0.20", "4.53.2"),
    ("0.21", "4.55"), ("0.23", "4.56.1"), ("0.27", "4.56.2"),
)  # fmt: skip
"""Releases of TRL from which on it asks for a transformers no older than this (``setup.py``, ``setup.cfg`` and
``pyproject.toml`` of TRL 0.2 to 1.9)."""


def first_trl_beyond(transformers: str) -> str | None:
    """The first release of TRL that is not installed beside a version of transformers, or one before ``<4.50``; None
    where none is known."""
    return next((trl for trl, asked in _TRL_ASKS if before(transformers, asked) is True), None)
