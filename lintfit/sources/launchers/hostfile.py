"""DeepSpeed's hostfiles: one machine a line with its number of GPUs (``worker-1 slots=8``)."""

from __future__ import annotations

from collections.abc import Mapping

from lintfit.documents.numerals import whole
from lintfit.documents.patterns import lazy_pattern

_HOST = lazy_pattern(r"^(?P<host>\S+)\s+slots=(?P<slots>\d+)\s*$")


def read_hosts(text: str) -> Mapping[str, int] | None:
    """GPUs by host; None for a file that DeepSpeed refuses (``launcher/runner.py:_parse_hostfile``, 0.19.8)."""
    hosts: dict[str, int] = {}
    for line in text.splitlines():
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        match = _HOST.match(stripped)
        slots = whole(match["slots"]) if match is not None else None
        if match is None or slots is None or match["host"] in hosts:
            return None
        hosts[match["host"]] = slots
    return hosts or None
