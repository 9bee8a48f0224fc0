"""The names of the modules that write the layers of each model type; :mod:`.families` imports them."""

from __future__ import annotations

from lintfit.catalog.architectures import ALIASES
from lintfit.catalog.facts import ModelFacts
from lintfit.catalog.language import language
from lintfit.memory.tensors.fused_experts import named

_MODULES = {
    "afmoe": "afmoe",
    "albert": "albert",
    "axk1": "moe",
    "baichuan": "fused",
    **dict.fromkeys(("bart", "blenderbot", "m2m_100", "marian", "mbart", "pegasus"), "bart"),
    "bamba": "bamba",
    "bert": "bert",
    "biogpt": "biogpt",
    "bitnet": "bitnet",
    "bloom": "alibi",
    "chameleon": "chameleon",
    "chatglm": "fused",
    "codegen": "gptj",
    "cohere": "layernorm",
    "cohere2": "layernorm",
    "cohere2_moe": "cohere2_moe",
    "data2vec-text": "bert",
    "dbrx": "dbrx",
    "deberta-v2": "deberta",
    "deepseek_v2": "moe",
    "diffllama": "diffllama",
    "deepseek_v3": "moe",
    "deepseek_v32": "dsa",
    "distilbert": "distilbert",
    "doge": "doge",
    "dots1": "moe",
    "ernie": "bert",
    "ernie4_5_moe": "moe",
    "esm": "esm",
    "exaone4": "postnorm",
    "exaone_moe": "moe",
    "falcon": "alibi",
    "falcon_h1": "falcon_h1",
    "falcon_mamba": "mamba",
    "flex_olmo": "postnorm",
    "gemma": "gemma",
    "gemma2": "gemma",
    "gemma3": "gemma",
    "gemma3_text": "gemma",
    "gemma3n_text": "gemma3n",
    "gemma4_text": "gemma4",
    "glm": "postnorm",
    "glm4": "postnorm",
    "glm4_moe": "moe",
    "glm4_moe_lite": "moe",
    "glm_moe_dsa": "dsa",
    "glm4v_moe_text": "moe",
    "glm4v_text": "postnorm",
    "glm_ocr_text": "postnorm",
    "gpt2": "gpt2",
    "gpt_bigcode": "gpt2",
    "gpt_neo": "gptj",
    "gpt_neox": "gpt_neox",
    "gpt_oss": "gpt_oss",
    "gptj": "gptj",
    "granite_swa": "granite_swa",
    "granitemoe": "moe",
    "granitemoe_swa": "granitemoe_swa",
    "granitemoehybrid": "granitemoehybrid",
    "granitemoeshared": "granitemoeshared",
    "helium": "helium",
    "hunyuan_v1_moe": "moe",
    "hy_v3": "moe",
    "hyperclovax": "hyperclovax",
    "internlm2": "fused",
    "jais2": "layernorm",
    "jamba": "jamba",
    "jetmoe": "jetmoe",
    "kimi_linear": "kimi_linear",
    "laguna": "laguna",
    "lfm2": "lfm2",
    "lfm2_moe": "lfm2",
    "lfm3": "lfm3",
    "llama4_text": "llama4",
    "mamba": "mamba",
    "mamba2": "mamba",
    "mellum": "moe",
    "mimo_v2_flash": "mimo_v2_flash",
    "minicpm3": "moe",
    "minimax": "minimax",
    "minimax_m2": "moe",
    "minimax_m3_vl_text": "minimax_m3",
    "mistral4": "moe",
    "mixtral": "moe",
    "mllama": "mllama",
    "modernbert": "modernbert",
    "modernbert-decoder": "modernbert",
    "mpnet": "mpnet",
    "mpt": "alibi",
    "mt5": "t5",
    "nanochat": "nanochat",
    "nemotron": "layernorm",
    "nemotron_h": "nemotron_h",
    "olmo": "layernorm",
    "olmoe": "moe",
    "olmo_hybrid": "olmo_hybrid",
    "olmo2": "postnorm",
    "olmo3": "postnorm",
    "openai-gpt": "openai_gpt",
    "opt": "opt",
    "persimmon": "persimmon",
    "phi": "layernorm",
    "phi3": "phi3",
    "phi4_multimodal": "phi3",
    "phimoe": "moe",
    "qwen": "fused",
    "qwen2_moe": "moe",
    "qwen3_5_moe_text": "qwen3_next",
    "qwen3_5_text": "qwen3_next",
    "qwen3_moe": "moe",
    "qwen3_next": "qwen3_next",
    "recurrent_gemma": "recurrent_gemma",
    "roberta": "bert",
    "solar_open": "moe",
    "stablelm": "layernorm",
    "starcoder2": "layernorm",
    "t5": "t5",
    "vaultgemma": "gemma",
    "xglm": "xglm",
    "youtu": "moe",
    "zamba": "zamba",
    "zamba2": "zamba2",
}

_LLAMA = frozenset(
    {
        "apertus",
        "arcee",
        "cwm",
        "ernie4_5",
        "eurobert",
        "granite",
        "hunyuan_v1_dense",
        "internlm",
        "internlm3",
        "llama",
        "llava",
        "llava_next",
        "minicpmv",
        "ministral3",
        "mistral",
        "paddleocr_vl_text",
        "qwen2",
        "qwen2_5_omni_text",
        "qwen2_5_vl",
        "qwen2_vl",
        "qwen3",
        "qwen3_vl",
        "seed_oss",
        "smollm3",
    }
)
"""Model types whose text layers are Llama's to the operation, or to a few bytes a token."""

_PROJECTIONS = frozenset({"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"})
_NEAREST = {
    "llama": _PROJECTIONS,
    "moe": _PROJECTIONS,
    "gpt_neox": frozenset({"query_key_value", "dense", "dense_h_to_4h", "dense_4h_to_h"}),
}
"""The modules of the layers that stand in for those of a model without a family."""


def module_name(facts: ModelFacts) -> str:
    """The family's module, as :mod:`.families` says."""
    kind = _kind(facts)
    return _MODULES.get(kind) or _nearest(facts, kind)


def has_own(facts: ModelFacts) -> bool:
    """Whether a model's layers are those of its family, not of the nearest one."""
    kind = _kind(facts)
    return kind in _MODULES or kind in _LLAMA


def _kind(facts: ModelFacts) -> str:
    """The type whose layers a model has: its own, or the one that the catalogue says for it."""
    kind = ALIASES.get(facts.model_type, facts.model_type)
    return kind if kind in _MODULES or kind in _LLAMA else facts.code.layers or kind


def _nearest(facts: ModelFacts, kind: str) -> str:
    like_llama = facts.gated or kind in _LLAMA
    return "moe" if facts.moe else "llama" if like_llama else "gpt_neox"


def has_module(facts: ModelFacts, targets: tuple[str, ...]) -> bool:
    """Whether a layer has a module of these names: its family's surely, the nearest family's where they are its own."""
    text = language(facts)
    if has_own(text):
        return True
    return any(named(module, targets) for module in _NEAREST[_nearest(text, _kind(text))])
