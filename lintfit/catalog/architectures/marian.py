"""Marian's models of translation (opus-mt): BART with positions by sines and no norm but those of its layers."""

from __future__ import annotations

from lintfit.catalog.architectures import _bart
from lintfit.catalog.architectures._blocks import Shape, embedding, linear
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Code, Tensor, since
from lintfit.frozen import replace

REQUIRED = _bart.REQUIRED
DEFAULTS = defaults("marian")
CODE = Code(sdpa=since(4, 53), flash_attention_2=since(4, 53))


def shape(config: Config) -> Shape:
    numbers = _bart.shape(config)
    if config.flag("share_encoder_decoder_embeddings"):
        return numbers
    return replace(numbers, vocab=config.size("decoder_vocab_size", kind="vocab", default=numbers.vocab))


def tensors(config: Config) -> tuple[Tensor, ...]:
    style = _bart.BartStyle(offset=0, first=False, last=False)
    if config.flag("share_encoder_decoder_embeddings"):
        return _bart.tensors(config, style.offset, style.first, style.last)
    numbers = shape(config)
    found = [
        *embedding("model.encoder.embed_tokens", config.size("vocab_size", kind="vocab"), numbers.hidden),
        *embedding("model.decoder.embed_tokens", numbers.vocab, numbers.hidden),
        *_bart.half(config, numbers, "encoder", style),
        *_bart.half(config, numbers, "decoder", style),
    ]
    if not numbers.tied:
        found += linear("lm_head", numbers.vocab, numbers.hidden, role="lm_head", where="head")
    return tuple(found)
