"""GPT-NeoX 20B, Pythia, Dolly v2, StableLM alpha, RedPajama-INCITE, Polyglot-Ko."""

from __future__ import annotations

from lintfit.catalog.architectures._blocks import Shape, decoder_shape, embedding, head, linear, norm, plain_mlp
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Code, Tensor, since
from lintfit.frozen import replace

REQUIRED = ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "vocab_size")
DEFAULTS = defaults("gpt_neox")
CODE = Code(sdpa=since(4, 42), layer="GPTNeoXLayer")


def shape(config: Config) -> Shape:
    numbers = decoder_shape(config, norm="layernorm", gated=False)
    return replace(numbers, parallel_residual=config.flag("use_parallel_residual"))


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers = shape(config)
    hidden, layers = numbers.hidden, numbers.layers
    bias = config.flag("attention_bias")
    layer = "gpt_neox.layers.{}"
    return (
        *embedding("gpt_neox.embed_in", numbers.vocab, hidden),
        *norm(f"{layer}.input_layernorm", hidden, layers, bias=True),
        *norm(f"{layer}.post_attention_layernorm", hidden, layers, bias=True),
        *linear(f"{layer}.attention.query_key_value", 3 * hidden, hidden, layers, bias=bias),
        *linear(f"{layer}.attention.dense", hidden, hidden, layers, bias=bias),
        *plain_mlp(f"{layer}.mlp", hidden, numbers.intermediate, layers, up="dense_h_to_4h", down="dense_4h_to_h"),
        *norm("gpt_neox.final_layer_norm", hidden, bias=True, where="final"),
        *head(numbers),
    )
