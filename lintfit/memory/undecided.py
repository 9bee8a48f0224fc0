"""Ways of splitting a run of which nothing is known, so that no verdict but *does not fit* can be given."""

from __future__ import annotations

from lintfit.memory.spec import Spec
from lintfit.memory.tensor_parallel import undivided


def undecided(spec: Spec) -> tuple[str, ...]:
    """One line for every part of the run that the libraries would refuse, or split in a way that nobody has counted."""
    return tuple(line for line in (undivided(spec),) if line)
