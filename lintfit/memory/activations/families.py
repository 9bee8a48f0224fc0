"""Which module writes a model's layers, and what else that module says of them.

A family is a module of this folder with ``layer(tape, x, index)``, and ``TRAITS`` where its layers differ among each
other or from Llama's.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from types import ModuleType

from lintfit.catalog.architectures import ALIASES
from lintfit.catalog.facts import ModelFacts
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.tape import Var
from lintfit.memory.activations.traits import Traits
from lintfit.memory.micro_batch.language import language
from lintfit.memory.tensors.fused_experts import named

Family = Callable[[Layer, Var, int], Var]

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

_UNREAD = frozenset({"chatglm"})
"""Model types that have a module, but whose several generations of remote code differ from it in details."""

_PROJECTIONS = frozenset({"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"})
_NEAREST = {
    "llama": _PROJECTIONS,
    "moe": _PROJECTIONS,
    "gpt_neox": frozenset({"query_key_value", "dense", "dense_h_to_4h", "dense_4h_to_h"}),
}
"""The modules of the layers that stand in for those of a model without a family."""

_ALIKE = Traits()


def family(facts: ModelFacts) -> Family:
    """The function that writes one layer of this model onto a tape."""
    layer: Family = _module(facts).layer
    return layer


def traits(facts: ModelFacts) -> Traits:
    """What sets this model's layers apart."""
    found: Traits = vars(_module(facts)).get("TRAITS", _ALIKE)
    return found


def _module(facts: ModelFacts) -> ModuleType:
    """The family's module; models without one take the nearest: MoE, Llama's for gated MLPs, GPT-NeoX's otherwise."""
    kind = ALIASES.get(facts.model_type, facts.model_type)
    return _imported(_MODULES.get(kind) or _nearest(facts, kind))


def _nearest(facts: ModelFacts, kind: str) -> str:
    like_llama = facts.gated or kind in _LLAMA
    return "moe" if facts.moe else "llama" if like_llama else "gpt_neox"


def has_module(facts: ModelFacts, targets: tuple[str, ...]) -> bool:
    """Whether a layer has a module of these names: its family's surely, the nearest family's where they are its own."""
    text = language(facts)
    kind = ALIASES.get(text.model_type, text.model_type)
    if kind in _MODULES or kind in _LLAMA:
        return True
    return any(named(module, targets) for module in _NEAREST[_nearest(text, kind)])


@cache
def _imported(name: str) -> ModuleType:
    return import_module(f"lintfit.memory.activations.{name}")


def known(facts: ModelFacts) -> bool:
    """Whether the layer follows the model's own code rather than the nearest family's."""
    text = language(facts)
    kind = ALIASES.get(text.model_type, text.model_type)
    if kind in _UNREAD or not (kind in _MODULES or kind in _LLAMA):
        return False
    if traits(text).halves is not None and text is not facts:  # inside of another model, which runs it in its own way
        return False
    unread = traits(text).unread
    return unread is None or not unread(text)
