"""Shorter sequences: what is cut off is not trained on."""

from __future__ import annotations

from collections.abc import Iterator

from lintfit.fit.options import Effect, Option, Subject
from lintfit.settings.model import is_count

SHORTEST = 256
"""Tokens: no plan cuts sequences below this."""

LEAST_PART = 4
"""No plan leaves less than this part of a length: what is cut further is another training on other data."""


def options(subject: Subject) -> Iterator[Option]:
    """Half the tokens and a quarter, where somebody states how many there are.

    Not where a prompt may be as long, which leaves nothing of an answer, and not where pictures take words of it, which
    no processor cuts (transformers stops where a sample has fewer of them than its image).
    """
    spec = subject.spec
    if spec.facts.vision is not None:
        return
    prompt = subject.run.value("max_prompt_length")
    shortest = max(SHORTEST, spec.seq_len // LEAST_PART)
    length = spec.seq_len // 2
    while length >= shortest and "seq_len" in spec.stated and not (is_count(prompt) and prompt >= length):
        note = f"samples are cut at {length:,} tokens"
        yield Option(f"{length} tokens", {"seq_len": length}, Effect.SHORTER, note, kind="shorter sequences")
        length //= 2
