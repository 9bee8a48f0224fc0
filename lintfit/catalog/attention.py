"""Which attention kernels transformers' own classes have, by ``model_type`` and version.

``_supports_sdpa`` and ``_supports_flash_attn`` (``_supports_flash_attn_2`` up to 4.52) of the ``PreTrainedModel`` of
each architecture, read in the releases from 4.36 to 5.23. Where nobody states a kernel, a class with SDPA runs it and
one without runs eager scores.
"""

from __future__ import annotations

Version = tuple[int, int]
"""``(major, minor)`` of transformers."""

Span = tuple[Version, Version]
"""From the first version on, and before the second."""

_EVER: Version = (1000, 0)
_NOWHERE: Span = ((0, 0), (0, 0))


def _since(major: int, minor: int) -> Span:
    return (major, minor), _EVER


def _before(major: int, minor: int) -> Span:
    return (0, 0), (major, minor)


SDPA: dict[str, Span] = {
    **dict.fromkeys(("bloom", "codegen", "gpt_neo", "gpt_oss", "gptj", "mpt"), _NOWHERE),
    **dict.fromkeys(("falcon_mamba", "mamba", "mamba2"), _NOWHERE),
    **dict.fromkeys(("deberta-v2", "granite_swa", "granitemoe_swa", "led", "mimo_v2_flash"), _NOWHERE),
    **dict.fromkeys(("mpnet", "openai-gpt", "xglm"), _NOWHERE),
    **dict.fromkeys(("mistral", "mixtral"), _since(4, 37)),
    **dict.fromkeys(("phi", "stablelm"), _since(4, 39)),
    "bart": _since(4, 36),
    "bert": _since(4, 41),
    **dict.fromkeys(("gpt2", "gpt_neox"), _since(4, 42)),
    **dict.fromkeys(("albert", "m2m_100", "mbart", "phi3", "roberta"), _since(4, 45)),
    **dict.fromkeys(("distilbert", "opt"), _since(4, 46)),
    **dict.fromkeys(("blenderbot", "marian", "pegasus"), _since(4, 53)),
    "esm": _since(4, 56),
    **dict.fromkeys(("data2vec-text", "electra", "ernie"), _since(5, 0)),
    **dict.fromkeys(("mt5", "t5", "umt5"), _since(5, 15)),
    **dict.fromkeys(("gemma2", "vaultgemma"), _before(5, 21)),
}
"""The versions whose class has SDPA; every version's where a model type is not here."""

CHOOSES: Version = (4, 36)
"""The first version that is told of a kernel (``_autoset_attn_implementation``); before, classes write scores out."""

SDPA_BEFORE = frozenset({"falcon"})
"""Model types whose class called ``scaled_dot_product_attention`` before that."""

SDPA_TORCH: tuple[int, ...] = (2, 1, 1)
"""The first torch with which transformers takes SDPA (``is_torch_sdpa_available``: contiguity, pytorch#112577)."""

FLASH: dict[str, Span] = {
    **dict.fromkeys(("blip-2", "bloom", "codegen", "deepseek_v32", "gpt_oss", "mpt", "mt5", "t5", "umt5"), _NOWHERE),
    **dict.fromkeys(("falcon_mamba", "glm_moe_dsa", "granite_swa", "granitemoe_swa", "mamba", "mamba2"), _NOWHERE),
    **dict.fromkeys(("deberta-v2", "led", "mpnet", "openai-gpt"), _NOWHERE),
    **dict.fromkeys(
        ("deberta-v2", "doge", "llama4", "llama4_text", "mimo_v2_flash", "minimax_m3_vl_text", "xglm"), _NOWHERE
    ),
    "distilbert": _since(4, 39),
    "esm": _since(4, 52),
    **dict.fromkeys(("gpt2", "m2m_100"), _since(4, 40)),
    "mllama": ((4, 52), (5, 23)),
    **dict.fromkeys(("bart", "mbart"), _since(4, 36)),
    **dict.fromkeys(("blenderbot", "marian", "pegasus"), _since(4, 53)),
    **dict.fromkeys(("albert", "bert", "data2vec-text", "electra", "ernie", "roberta"), _since(5, 0)),
}
"""The versions whose class has FlashAttention 2; every version's where a model type is not here.

gpt-oss and Granite Swash have ``_supports_flash_attn``, but FlashAttention 2 knows no sinks: 5.12 and later take
another kernel in its place (``_compatible_flash_implementations``)."""

GEMMA2_CHOOSES_SDPA: Version = (4, 48)
"""The first version whose Gemma 2 runs SDPA where nobody states a kernel.

Up to 4.47 ``Gemma2PreTrainedModel._check_and_enable_sdpa`` goes over to eager by itself, because SDPA leaves the soft
cap of the scores out; from 5.21 on the class has no SDPA for that reason."""

EAGER_ADVISED = frozenset({"gemma2", "gemma3", "gemma3_text"})
"""Model types whose code asks for eager attention in training ("strongly recommended", 4.42 and 4.50 to 4.56)."""


def has_sdpa(kind: str, version: Version | None = None, torch: tuple[int, ...] | None = None) -> bool:
    """Whether transformers' class of this model type takes SDPA in this version, in any where None, with this torch."""
    if version is None:
        return SDPA.get(kind) != _NOWHERE
    if kind not in SDPA_BEFORE and (version < CHOOSES or (torch is not None and torch < SDPA_TORCH)):
        return False
    return _within(SDPA.get(kind), version)


def has_flash(kind: str, version: Version) -> bool:
    """Whether transformers' class of this model type has FlashAttention 2."""
    return _within(FLASH.get(kind), version)


def runs_sdpa(kind: str, version: Version, torch: tuple[int, ...] | None = None) -> bool:
    """Whether SDPA is what a model of this type runs where nobody states a kernel."""
    return has_sdpa(kind, version, torch) and (kind != "gemma2" or version >= GEMMA2_CHOOSES_SDPA)


def _within(span: Span | None, version: Version) -> bool:
    return span is None or span[0] <= version < span[1]
