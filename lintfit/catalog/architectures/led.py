"""LED (Longformer): BART, whose encoder attends within windows, and everywhere by projections of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures import _bart
from lintfit.catalog.architectures._blocks import Shape, embedding, linear, norm, plain_mlp
from lintfit.catalog.architectures._fairseq import layers_of
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import NEVER, Code, Tensor
from lintfit.frozen import replace

REQUIRED = _bart.REQUIRED
DEFAULTS = defaults("led")
CODE = Code(sdpa=NEVER, flash_attention_2=NEVER)

POSITIONS = {"encoder": "max_encoder_position_embeddings", "decoder": "max_decoder_position_embeddings"}


def normalised(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """The longest text under the name that BART has for it."""
    longest = given.get("max_encoder_position_embeddings", DEFAULTS["max_encoder_position_embeddings"])
    return {**given, "max_position_embeddings": longest}


def shape(config: Config) -> Shape:
    return _bart.shape(config)


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers = shape(config)
    hidden, layers, width = numbers.hidden, config.size("encoder_layers", kind="layers"), numbers.intermediate
    layer, attention = "led.encoder.layers.{}", "led.encoder.layers.{}.self_attn"
    found = embedding("led.shared", numbers.vocab, hidden)
    if not numbers.tied:
        found += embedding("led.encoder.embed_tokens", numbers.vocab, hidden)
        found += embedding("led.decoder.embed_tokens", numbers.vocab, hidden)
        found += linear("lm_head", numbers.vocab, hidden, role="lm_head", where="head")
    for half in ("encoder", "decoder"):
        positions = config.size(POSITIONS[half], kind="positions")
        found += embedding(f"led.{half}.embed_positions", positions, hidden)
        found += norm(f"led.{half}.layernorm_embedding", hidden, bias=True, where="embedding")
    for which in ("query", "key", "value", "query_global", "key_global", "value_global"):
        found += linear(f"{attention}.longformer_self_attn.{which}", hidden, hidden, layers, bias=True)
    own = replace(numbers, layers=config.size("decoder_layers", kind="layers"))
    wide = config.size("decoder_ffn_dim", kind="intermediate")
    return (
        *found,
        *linear(f"{attention}.output", hidden, hidden, layers, bias=True),
        *norm(f"{layer}.self_attn_layer_norm", hidden, layers, bias=True),
        *plain_mlp(layer, hidden, width, layers, up="fc1", down="fc2"),
        *norm(f"{layer}.final_layer_norm", hidden, layers, bias=True),
        *layers_of("led.decoder.layers.{}", own, own.layers, wide, ("self_attn", "encoder_attn")),
    )
