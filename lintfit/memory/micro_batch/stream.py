"""What goes from layer to layer: how many sequences of what length, and in which dtype."""

from __future__ import annotations

from typing import NamedTuple

from lintfit.catalog.facts import ModelFacts
from lintfit.memory.activations.families import traits
from lintfit.memory.activations.frames import ends_with_norm, frame
from lintfit.memory.activations.recipe import Recipe


class Shape(NamedTuple):
    """A micro-batch on one rank: sequences, tokens of each, and bytes of an element of the residual stream."""

    batch: int
    seq: int
    stream: int


def stream_bytes(facts: ModelFacts, recipe: Recipe) -> int:
    """Bytes of an element of the residual stream.

    A quantised linear layer gives back the dtype that it was given: where the norms are fp32, or run in fp32 because
    autocast has LayerNorm do so, what the MLP adds to the stream is fp32, and the stream with it (bitsandbytes
    ``Linear4bit.forward``, ``out.to(inp_dtype)``). So do experts, whose sum is cast to what they were given, and a norm
    at the end of a layer (OPT-350m, BERT), or T5's projection in fp32.
    """
    how = frame(facts)
    torchs = facts.norm == "layernorm" and not how.casts_norms
    fp32_norms = recipe.autocast and torchs
    behind = fp32_norms and (recipe.quantized or ends_with_norm(facts) or how.opens or facts.moe is not None)
    apart = recipe.autocast and traits(facts).streams is not None  # the sizes that its streams share are fp32
    kept = how.fp32_stream and facts.config.get("residual_in_fp32", True)
    wide = recipe.fp32_out and not recipe.autocast
    upcast = recipe.upcast_norms or behind or apart or kept or wide
    return 4 if upcast else recipe.weights


def embedding_bytes(recipe: Recipe) -> int:
    """Bytes of an element of the embeddings' output, which the first layer takes."""
    return 4 if recipe.upcast_head else recipe.weights
