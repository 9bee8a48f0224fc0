"""Buffers over all positions that the classes of some models hold (:attr:`.Frame.buffers`). Sizes are bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from lintfit.catalog.architectures import ALIASES
from lintfit.catalog.architectures._fairseq import POSITION_OFFSET
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import ModelFacts
from lintfit.memory.activations.families import traits
from lintfit.memory.activations.frames import frame
from lintfit.memory.activations.tape import rounded
from lintfit.memory.micro_batch.around import Around, Feature
from lintfit.memory.micro_batch.model import Model
from lintfit.memory.micro_batch.stream import Shape


def buffers(facts: ModelFacts, item: int) -> int:
    """What the class has, where its weights take ``item`` bytes an element."""
    return _SIZES[frame(facts).buffers](facts, item)


def _of_sound(facts: ModelFacts) -> int:
    """The positions of an encoder of sound, in fp32 (``modeling_qwen2_5_omni.py:SinusoidsPositionEmbedding``)."""
    name = ALIASES.get(facts.model_type, facts.model_type)
    sound = {**defaults(f"{name}.audio_config"), **(facts.config.get("audio_config") or {})}
    return rounded(int(sound["max_source_positions"]) * int(sound["d_model"]) * 4)


def _triangle(facts: ModelFacts, item: int) -> int:
    """A causal mask, one byte an element."""
    return rounded((facts.max_positions or 0) ** 2)


def _triangles(facts: ModelFacts, item: int) -> int:
    return facts.layers * _triangle(facts, item)


def _wide_triangles(facts: ModelFacts, item: int) -> int:
    return facts.layers * rounded((facts.max_positions or 0) ** 2 * item)


def _tables(facts: ModelFacts, item: int) -> int:
    """Rotary tables in every layer."""
    return facts.layers * rounded((facts.max_positions or 0) * facts.rotary_dim * 4)


def _sinusoids(facts: ModelFacts, item: int) -> int:
    """Of the decoder, and of the encoder where there is one."""
    stacks = 2 if traits(facts).halves is not None else 1
    rows = (facts.max_positions or 0) + POSITION_OFFSET
    return stacks * rounded(rows * facts.hidden * item)


def _decays(facts: ModelFacts, item: int) -> int:
    """What lightning attention multiplies a block with, in every layer that has it: a slope, the decays of queries and
    keys, and those of all pairs."""
    size, lightning = int(facts.config["block_size"]), facts.config["layer_types"].count("linear_attention")
    return int(lightning * sum(rounded(facts.heads * each * item) for each in (1, size, size, size**2)))


_CACHED: Mapping[str, tuple[int, int]] = {
    "mistral": (4, 42),
    "mixtral": (4, 48),
    "phi": (4, 45),
    "qwen2": (4, 45),
    "qwen2_moe": (4, 45),
    "stablelm": (4, 45),
    "starcoder2": (4, 45),
}
"""The first transformers whose layers make rotary tables of a batch; before, each has cosines and sines of all
positions (``cos_cached``, ``sin_cached``): half a gigabyte of Mistral's 32,768."""


def _cached_tables(model: Model, shape: Shape) -> Around:
    facts = model.facts
    table = rounded((facts.max_positions or 0) * facts.rotary_dim * model.recipe.weights)
    return Around(buffers=2 * facts.layers * table)


CACHED_TABLES = Feature(
    lambda model: model.recipe.transformers < _CACHED.get(model.facts.model_type, (0, 0)), _cached_tables
)

_SIZES: Mapping[str, Callable[[ModelFacts, int], int]] = {
    "decays": _decays,  # modeling_minimax.py:MiniMaxLightningAttention
    "sinusoids": _sinusoids,  # modeling_xglm.py:XGLMSinusoidalPositionalEmbedding
    "tables": _tables,  # modeling_gptj.py:GPTJAttention.embed_positions
    "triangle": _triangle,  # modeling_gpt_bigcode.py:GPTBigCodeModel.bias
    "triangles": _triangles,  # modeling_gpt_neo.py:GPTNeoSelfAttention.bias
    "wide triangles": _wide_triangles,  # modeling_openai.py:Attention.bias
}

BUFFERS = Feature(
    lambda model: bool(model.how.buffers),
    lambda model, shape: Around(buffers=buffers(model.facts, model.recipe.weights)),
)
OF_SOUND = Feature(lambda model: frame(model.whole).hears, lambda model, shape: Around(buffers=_of_sound(model.whole)))


def _architecture(facts: ModelFacts) -> Any:
    return import_module(f"lintfit.catalog.architectures.{ALIASES.get(facts.model_type, facts.model_type)}")
