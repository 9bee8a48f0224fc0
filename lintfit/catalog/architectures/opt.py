"""OPT and Galactica."""

from __future__ import annotations

from lintfit.catalog.architectures._blocks import Shape, attention, embedding, linear, norm, plain_mlp, plain_shape
from lintfit.catalog.architectures._fairseq import POSITION_OFFSET
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Code, Tensor, since

REQUIRED = ("hidden_size", "ffn_dim", "num_hidden_layers", "num_attention_heads", "vocab_size")
DEFAULTS = defaults("opt")
CODE = Code(sdpa=since(4, 46), layer="OPTDecoderLayer")


def shape(config: Config) -> Shape:
    return plain_shape(config, intermediate="ffn_dim", activation="activation_function")


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers = shape(config)
    hidden, layers = numbers.hidden, numbers.layers
    bias, affine = config.flag("enable_bias"), config.flag("layer_norm_elementwise_affine")
    width = config.size("word_embed_proj_dim", kind="hidden", default=hidden)
    layer = "model.decoder.layers.{}"
    found = [
        *embedding("model.decoder.embed_tokens", numbers.vocab, width),
        *embedding("model.decoder.embed_positions", (numbers.max_positions or 0) + POSITION_OFFSET, hidden),
        *attention(f"{layer}.self_attn", numbers, layers, bias=bias, out_bias=bias, out="out_proj"),
        *plain_mlp(layer, hidden, numbers.intermediate, layers, up="fc1", down="fc2", bias=bias),
    ]
    if width != hidden:
        found += linear("model.decoder.project_in", hidden, width, where="embedding")
        found += linear("model.decoder.project_out", width, hidden, where="final")
    if affine:
        found += norm(f"{layer}.self_attn_layer_norm", hidden, layers, bias=True)
        found += norm(f"{layer}.final_layer_norm", hidden, layers, bias=True)
        if config.flag("do_layer_norm_before") and not config.flag("_remove_final_layer_norm"):
            found += norm("model.decoder.final_layer_norm", hidden, bias=True, where="final")
    if not numbers.tied:
        found += linear("lm_head", numbers.vocab, width, role="lm_head", where="head")
    return tuple(found)
