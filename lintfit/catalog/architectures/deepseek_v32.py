"""DeepSeek V3.2: V3 with an indexer in every layer that picks the tokens to attend to."""

from __future__ import annotations

from lintfit.catalog.architectures import deepseek_v3
from lintfit.catalog.architectures._blocks import Shape, linear, norm
from lintfit.catalog.architectures._decoder import DecoderStyle, around, layer_norms
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import NEVER, Code, Tensor
from lintfit.frozen import replace

REQUIRED = deepseek_v3.REQUIRED
DEFAULTS = defaults("deepseek_v32")
CODE = Code(flash_attention_2=NEVER)
NOTES = deepseek_v3.NOTES


def shape(config: Config) -> Shape:
    """V3's numbers; ``mlp_layer_types`` says which layers have experts, where it is there."""
    numbers, kinds = deepseek_v3.shape(config), config.strings("mlp_layer_types")
    config.size("index_topk", kind="positions")
    if not kinds or numbers.moe is None:
        return numbers
    if len(kinds) != numbers.layers:
        raise config.error("mlp_layer_types", f"must have one entry for each of the {numbers.layers} layers")
    return replace(numbers, moe=replace(numbers.moe, layers=kinds.count("sparse")))


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers, style, name = shape(config), DecoderStyle(), "model.layers.{}.self_attn.indexer"
    heads, width = config.size("index_n_heads", kind="heads"), config.size("index_head_dim", kind="head_dim")
    rank, kinds = config.size("q_lora_rank", kind="hidden"), config.strings("indexer_types")
    copies = kinds.count("full") if kinds else numbers.layers
    indexer = [
        *linear(f"{name}.wq_b", heads * width, rank, copies),
        *linear(f"{name}.wk", width, numbers.hidden, copies),
        *norm(f"{name}.k_norm", width, copies, bias=True),
        *linear(f"{name}.weights_proj", heads, numbers.hidden, copies),
    ]
    attention = deepseek_v3.latent_attention(config, numbers)
    layers = [*attention, *indexer, *deepseek_v3.mlps(numbers), *layer_norms(numbers, style)]
    return around(numbers, style, layers)
