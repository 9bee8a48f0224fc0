"""Which attention kernels transformers' own classes run, by version: what the facts' ``code`` says of them, applied.

Where nobody states a kernel, a class with SDPA runs it and one without runs eager scores.
"""

from __future__ import annotations

from lintfit.catalog.facts import NEVER, Code, Span, Version

CHOOSES: Version = (4, 36)
"""The first version that is told of a kernel (``_autoset_attn_implementation``); before, classes write scores out."""

SDPA_TORCH: tuple[int, ...] = (2, 1, 1)
"""The first torch with which transformers takes SDPA (``is_torch_sdpa_available``: contiguity, pytorch#112577)."""


def has_sdpa(code: Code, version: Version | None = None, torch: tuple[int, ...] | None = None) -> bool:
    """Whether transformers' class takes SDPA in this version, in any where None, with this torch."""
    if version is None:
        return code.sdpa != NEVER
    if not code.sdpa_at_first and (version < CHOOSES or (torch is not None and torch < SDPA_TORCH)):
        return False
    return _within(code.sdpa, version)


def has_flash(code: Code, version: Version) -> bool:
    """Whether transformers' class has FlashAttention 2."""
    return _within(code.flash_attention_2, version)


def runs_sdpa(code: Code, version: Version, torch: tuple[int, ...] | None = None) -> bool:
    """Whether SDPA is what a model runs where nobody states a kernel."""
    return has_sdpa(code, version, torch) and _within(code.sdpa_unasked, version)


def _within(span: Span, version: Version) -> bool:
    return span[0] <= version < span[1]
