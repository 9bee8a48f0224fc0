"""Which liger-kernel first fuses the loss of which model types."""

from __future__ import annotations

from collections.abc import Mapping

_TYPES: Mapping[str, str] = {
    "0.3.0": "mixtral qwen2_vl",
    "0.4.0": "mllama mllama_text_model",
    "0.4.1": "gemma2",
    "0.5.4": "olmo2",
    "0.5.5": "qwen2_5_vl",
    "0.5.6": "llava paligemma",
    "0.5.7": "gemma3 gemma3_text",
    "0.5.9": "glm4 qwen3",
    "0.5.10": "qwen3_moe",
    "0.6.0": "llama4 llama4_text qwen2_5_vl_text qwen2_vl_text",
    "0.6.1": "smollm3",
    "0.6.2": "glm4v",
    "0.6.3": "falcon_h1 glm4v_moe internvl qwen3_next smolvlm",
    "0.6.4": "olmo3 qwen3_vl qwen3_vl_moe qwen3_vl_moe_text qwen3_vl_text",
    "0.6.5": "exaone4 gpt_oss",
    "0.8.0": "ministral nemotron qwen3_5 qwen3_5_moe qwen3_5_moe_text qwen3_5_text",
    "0.8.1": "deepseek_v4",
    "0.8.4": "deepseek_v3",
    "0.8.5": "deepseek_v2",
}
"""``MODEL_TYPE_TO_APPLY_LIGER_FN`` in the ``transformers/monkey_patch.py`` of the wheels from 0.2.0 to 0.8.5, where the
function has ``fused_linear_cross_entropy`` on by default: all that the catalogue has but those of 0.2.0."""

_SINCE: Mapping[str, str] = {name: version for version, names in _TYPES.items() for name in names.split()}


def fused_since(model_type: str) -> str:
    """The first liger-kernel that fuses the loss of a model type, of those that :attr:`.facts.Code.liger` has."""
    return _SINCE.get(model_type, "0.2.0")
