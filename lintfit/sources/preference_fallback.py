"""Where TRL's trainers of preferences cut a pair whose length is None."""

from __future__ import annotations

from collections.abc import Mapping

from lintfit.sources.training_words import at_least

_FALLS_BACK = 512
"""``max_length`` where it is None: of DPO's trainer up to 0.11, of KTO's up to 0.24, of CPO's, ORPO's and BCO's to
this day (TRL 0.8.6, 0.11.4, 0.24 and 1.9, ``trl/trainer`` and ``trl/experimental``)."""
_WHOLE_SINCE: Mapping[str, tuple[int, int]] = {"DPOTrainer": (0, 12), "KTOTrainer": (0, 25)}
"""Since when these cut nothing then."""
CONFIGS_SINCE = (0, 14)
"""Since when the configs have a length by default; None before."""


def where_none(trainer: str, versions: Mapping[str, str]) -> int | None:
    """The tokens at which a trainer cuts then, None where it leaves a pair as long as it is."""
    since = _WHOLE_SINCE.get(trainer)
    return None if since is not None and at_least(versions, "trl", *since) else _FALLS_BACK
