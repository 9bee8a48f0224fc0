"""What the layers of a model keep in memory, by architecture family. See :mod:`.tape` for how it is counted."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import NamedTuple

from lintfit.catalog.architectures import ALIASES
from lintfit.catalog.facts import ModelFacts
from lintfit.memory.activations.attention import Heads
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.tape import Var
from lintfit.memory.memo import Memo
from lintfit.memory.micro_batch.language import language

Family = Callable[[Layer, Var, int], Var]

_MODULES = {
    "baichuan": "fused",
    "bloom": "alibi",
    "chatglm": "fused",
    "codegen": "gptj",
    "cohere": "layernorm",
    "cohere2": "layernorm",
    "deepseek_v2": "moe",
    "deepseek_v3": "moe",
    "dots1": "moe",
    "ernie4_5_moe": "moe",
    "exaone4": "postnorm",
    "falcon": "alibi",
    "falcon_h1": "falcon_h1",
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
    "gpt2": "gpt2",
    "gpt_bigcode": "gpt2",
    "gpt_neo": "gptj",
    "gpt_neox": "gpt_neox",
    "gpt_oss": "gpt_oss",
    "gptj": "gptj",
    "granitemoe": "moe",
    "granitemoehybrid": "granitemoehybrid",
    "hunyuan_v1_moe": "moe",
    "internlm2": "fused",
    "lfm2": "lfm2",
    "llama4_text": "llama4",
    "minicpm3": "moe",
    "minimax_m2": "moe",
    "mixtral": "moe",
    "mllama": "mllama",
    "mpt": "alibi",
    "nemotron": "layernorm",
    "nemotron_h": "nemotron_h",
    "olmo": "layernorm",
    "olmoe": "moe",
    "olmo2": "postnorm",
    "olmo3": "postnorm",
    "opt": "opt",
    "phi": "layernorm",
    "phi3": "phi3",
    "phimoe": "moe",
    "qwen": "fused",
    "qwen2_moe": "moe",
    "qwen3_5_moe_text": "qwen3_next",
    "qwen3_5_text": "qwen3_next",
    "qwen3_moe": "moe",
    "qwen3_next": "qwen3_next",
    "stablelm": "layernorm",
    "starcoder2": "layernorm",
}

_MIXERS = {
    "granitemoehybrid": "granitemoehybrid",
    "lfm2": "lfm2",
    "nemotron_h": "nemotron_h",
    "qwen3_next": "qwen3_next",
}
"""The modules of families whose layers mix their tokens in several ways, by the names of :data:`_MODULES`."""

_PACKAGED = {
    "falcon_h1": ("mamba_ssm", "causal_conv1d"),
    "granitemoehybrid": ("mamba_ssm", "causal_conv1d"),
    "nemotron_h": ("mamba_ssm", "causal_conv1d"),
    "qwen3_next": ("gated_delta_rule", "causal_conv1d"),
}
"""By the names of :data:`_MODULES`: of :data:`.spec.KERNELS`, those that keep less than plain torch."""

_LLAMA = frozenset(
    {
        "apertus",
        "arcee",
        "ernie4_5",
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
        "qwen2",
        "qwen2_5_vl",
        "qwen2_vl",
        "qwen3",
        "qwen3_vl",
        "seed_oss",
        "smollm3",
    }
)
"""Model types whose text layers are Llama's to the operation, or to a few bytes a token."""


def family(facts: ModelFacts) -> Family:
    """The function that writes one layer of this model onto a tape.

    Models without a module of their own take the nearest one: MoE, Llama's for gated MLPs, GPT-NeoX's otherwise.
    """
    kind = ALIASES.get(facts.model_type, facts.model_type)
    name = _MODULES.get(kind)
    if name is None:
        like_llama = facts.gated or kind in _LLAMA
        name = "moe" if facts.moe else "llama" if like_llama else "gpt_neox"
    return _layer(name)


@cache
def _layer(module: str) -> Family:
    layer: Family = import_module(f"lintfit.memory.activations.{module}").layer
    return layer


_UNREAD = frozenset({"chatglm"})
"""Model types that have a module, but whose several generations of remote code differ from it in details."""


LENDING = frozenset({"gemma3n_text", "gemma4_text"})
"""Model types whose last layers take keys and values of an earlier one."""


def stream_width(facts: ModelFacts) -> int:
    """Elements of what goes from layer to layer: the hidden size, of every stream where there are several."""
    if facts.model_type != "gemma3n_text":
        return facts.hidden
    from lintfit.memory.activations.gemma3n import streams

    return facts.hidden * streams(facts)


def heads_of(facts: ModelFacts, index: int) -> Heads:
    """The heads and the window of one layer."""
    if facts.model_type in LENDING:
        from lintfit.memory.activations.gemma4 import heads as of_two_widths

        return of_two_widths(facts, index)
    if facts.model_type.startswith("gemma"):
        from lintfit.memory.activations.gemma import window

        return Heads(facts.heads, facts.kv_heads, facts.head_dim, window(facts, index))
    if facts.model_type == "llama4_text":
        from lintfit.memory.activations.llama4 import window as chunk

        return Heads(facts.heads, facts.kv_heads, facts.head_dim, chunk(facts, index))
    from lintfit.memory.activations.llama import heads

    return heads(facts, index)


class Kind(NamedTuple):
    """What tells a layer from the others of its model: its window, and whether it routes to experts.

    ``crosses``: how it attends to what stands beside the text (:func:`.mllama.crosses`), empty where it does not.
    ``shares``: whether it takes keys and values of an earlier layer.
    ``mixer``: what mixes its tokens in the place of attention, empty where nothing does. ``mlp``: the width of its MLP
    and whether that is sparse, where layers differ in it.
    """

    window: int | None
    routed: bool
    crosses: str = ""
    shares: bool = False
    mixer: str = ""
    mlp: tuple[int, bool] | None = None


_Alike = tuple[tuple[Kind, int, int], ...]

_KINDS: Memo[tuple[tuple[Kind, ...], _Alike]] = Memo()


def kinds(facts: ModelFacts) -> tuple[Kind, ...]:
    """The kind of every layer."""
    return _KINDS.get(facts, "", lambda: _kinds(facts))[0]


def stretches(facts: ModelFacts) -> _Alike:
    """Layers of a kind that follow one another: the kind, the first one's number, and how many they are."""
    return _KINDS.get(facts, "", lambda: _kinds(facts))[1]


def _kinds(facts: ModelFacts) -> tuple[tuple[Kind, ...], _Alike]:
    from lintfit.memory.activations.moe import has_experts

    layers = range(facts.layers)
    windows = (
        [heads_of(facts, index).window for index in layers]
        if facts.sliding_window is not None
        else [None] * len(layers)
    )
    routes = [facts.moe is not None and has_experts(facts, index) for index in layers]
    each = tuple(map(Kind, windows, routes, _crossing(facts), _sharing(facts), _mixing(facts), _mlps(facts)))
    starts = [index for index in range(facts.layers) if index == 0 or each[index] != each[index - 1]]
    ends = [*starts[1:], facts.layers]
    alike = tuple((each[start], start, end - start) for start, end in zip(starts, ends, strict=True))
    return each, alike


def packaged(facts: ModelFacts) -> tuple[str, ...]:
    """Kernels of other packages that transformers runs this model's layers with where they are installed."""
    return _PACKAGED.get(_MODULES.get(facts.model_type, ""), ())


def running(facts: ModelFacts, *, beside: bool = False) -> tuple[int, ...]:
    """The numbers of the layers that run; ``beside``: whether there is something beside the text to attend to."""
    return tuple([number for number, kind in enumerate(kinds(facts)) if beside or not kind.crosses])


def _crossing(facts: ModelFacts) -> list[str]:
    if facts.model_type != "mllama":
        return [""] * facts.layers
    from lintfit.memory.activations.mllama import crosses

    return [crosses(facts, index) for index in range(facts.layers)]


def _sharing(facts: ModelFacts) -> list[bool]:
    if facts.model_type not in LENDING:
        return [False] * facts.layers
    from lintfit.memory.activations.gemma4 import shares

    return [shares(facts, index) for index in range(facts.layers)]


def _mixing(facts: ModelFacts) -> list[str]:
    module = _MIXERS.get(_MODULES.get(facts.model_type, ""))
    if module is None:
        return [""] * facts.layers
    mixer = import_module(f"lintfit.memory.activations.{module}").mixer
    return [mixer(facts, index) for index in range(facts.layers)]


def _mlps(facts: ModelFacts) -> list[tuple[int, bool] | None]:
    if facts.model_type != "gemma3n_text":
        return [None] * facts.layers
    from lintfit.memory.activations.gemma3n import mlp_of

    return [mlp_of(facts, index) for index in range(facts.layers)]


def known(facts: ModelFacts) -> bool:
    """Whether the layer follows the model's own code rather than the nearest family's."""
    kind = language(facts).model_type
    kind = ALIASES.get(kind, kind)
    return kind not in _UNREAD and (kind in _MODULES or kind in _LLAMA)
