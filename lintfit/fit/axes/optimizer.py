"""AdamW's states in eight bits, or in pages that move to the host."""

from __future__ import annotations

from collections.abc import Iterator

from lintfit.fit.options import Effect, Option, Subject
from lintfit.fit.taken import takes

_CHOICES = (
    ("paged AdamW", "paged_adamw_32bit", "bitsandbytes' AdamW, fp32 states that move to the host when room is short"),
    ("8-bit AdamW", "adamw_8bit", "AdamW's states are rounded to eight bits (bitsandbytes)"),
    ("paged 8-bit AdamW", "paged_adamw_8bit", "AdamW's states are rounded to eight bits and paged (bitsandbytes)"),
)


def options(subject: Subject) -> Iterator[Option]:
    """bitsandbytes keeps states of whole tensors, which the flat partitions of ZeRO and FSDP are not."""
    spec = subject.spec
    if spec.engine not in ("single", "ddp") or not spec.optimizer.startswith("adamw_torch"):
        return
    for name, value, note in _CHOICES:
        if takes(subject.run, "optim", value):
            yield Option(name, {"optimizer": value}, Effect.NUMERICS, note, kind=name)
