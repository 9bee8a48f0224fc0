"""Which releases of one library go with which of another, as they ask for each other when they are installed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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


_FRONT_ENDS_ASK: Mapping[str, Sequence[tuple[str, str]]] = {
    # from the first release with llamafactory-cli on
    "llamafactory": (("0.7.0", "4.37.2"), ("0.8.0", "4.41.2"), ("0.9.3", "4.45"), ("0.9.4", "4.51"), ("0.9.5", "4.55")),
    "axolotl": (("0.4.0", "4.37"), ("0.5.0", "4.46.1")),
    "swift": (("2.0", "4.33"),),
    "trl": _TRL_ASKS,
}
"""Releases of front ends from which on they ask for a transformers no older than this (``requirements.txt`` and
``pyproject.toml`` of LLaMA-Factory 0.7.0 to 0.9.5 and of axolotl 0.4.0 and 0.5.0, ``requirements/framework.txt`` of
ms-swift 2.0.0 to 4.5.2)."""


def oldest_transformers(front_end: str, version: str | None) -> str | None:
    """The oldest transformers that a release of a front end is installed beside, or any of the known releases where
    ``version`` names none; None where nothing is known of it."""
    steps = _FRONT_ENDS_ASK.get(front_end, ())
    past = [asked for since, asked in steps if version is not None and before(version, since) is False]
    return past[-1] if past else steps[0][1] if steps else None
