"""Adapters where transformers 5 has fused a layer's experts into one parameter, and made its router no linear layer.

PEFT 0.21 maps the names of old onto these parameters (``transformers_weight_conversion.py``), for the model types that
it knows to have had them: ``gate_proj`` then means the experts', and a dense MLP or a shared expert gets no adapter.
"""

from __future__ import annotations

from typing import NamedTuple

MAPPED = frozenset(
    {
        "afmoe",
        "cohere2_moe",
        "deepseek_v2",
        "deepseek_v3",
        "deepseek_v32",
        "dots1",
        "ernie4_5_moe",
        "exaone_moe",
        "flex_olmo",
        "glm4_moe",
        "glm4_moe_lite",
        "glm_moe_dsa",
        "glm4v_moe",
        "hunyuan_v1_moe",
        "kimi_k2",
        "mellum",
        "minimax",
        "minimax_m2",
        "mixtral",
        "olmoe",
        "qwen3_moe",
        "qwen3_next",
        "qwen3_omni_moe",
        "qwen3_omni_moe_thinker",
        "solar_open",
    }
)
"""Those of ``_MODEL_TO_CONVERSION_PATTERN`` that have a pattern of ``_MOE_FUSED_TARGETS``."""

LIKE_MIXTRAL = frozenset({"minimax", "minimax_m2", "mixtral"})

WITHOUT_GATE = frozenset({"nemotron_h"})
"""Model types whose experts are MLPs of two matrices."""

LINEAR_ROUTERS = frozenset({"phimoe"})
"""Model types whose router is a linear layer still (``PhimoeTopKRouter``)."""


class Names(NamedTuple):
    """What a layer's projections were called."""

    gate_up: tuple[str, ...]
    down: tuple[str, ...]
    router: str = "gate"


def names(model_type: str) -> Names:
    """The names of old of a model type's experts."""
    if model_type in LIKE_MIXTRAL:
        return Names(("w1", "w3"), ("w2",))
    if model_type in WITHOUT_GATE:
        return Names(("up_proj",), ("down_proj",))
    return Names(("gate_proj", "up_proj"), ("down_proj",))


class Fused(NamedTuple):
    """How many of the projections of old are adapted in either parameter, whether the router is, and which linear
    layers are not although they have the name."""

    gate_up: int
    down: int
    router: bool
    never: frozenset[str]


def fused(model_type: str, targets: tuple[str, ...] | None) -> Fused:
    """What PEFT adapts in a layer of experts; ``targets`` None for all linear layers."""
    if model_type not in MAPPED:
        linear = model_type in LINEAR_ROUTERS and (targets is None or named("router", targets))
        return Fused(0, 0, linear, frozenset() if linear else frozenset({"gate", "router"}))
    old = names(model_type)
    gate_up, down = (sum(targets is None or named(name, targets) for name in part) for part in (old.gate_up, old.down))
    router = targets is None or named(old.router, targets)
    return Fused(gate_up, down, router, frozenset({*old.gate_up, *old.down, old.router}))


def named(name: str, targets: tuple[str, ...]) -> bool:
    """Whether one of the targets is the module whose name ends so (``q_proj``), as PEFT matches suffixes."""
    return any(target == name or target.endswith(f".{name}") for target in targets)
