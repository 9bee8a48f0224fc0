"""Shorter sequences: what is cut off is not trained on."""

from __future__ import annotations

from collections.abc import Iterator

from lintfit.fit.options import Effect, Option, Subject

SHORTEST = 256
"""Tokens: no plan cuts sequences below this."""

LEAST_PART = 4
"""No plan leaves less than this part of a length: what is cut further is another training on other data."""


def options(subject: Subject) -> Iterator[Option]:
    """Half the tokens and a quarter, where somebody states how many there are."""
    spec = subject.spec
    shortest = max(SHORTEST, spec.seq_len // LEAST_PART)
    length = spec.seq_len // 2
    while length >= shortest and "seq_len" in spec.stated:
        note = f"samples are cut at {length:,} tokens"
        yield Option(f"{length} tokens", {"seq_len": length}, Effect.SHORTER, note, kind="shorter sequences")
        length //= 2
