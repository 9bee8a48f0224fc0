"""StableLM 3B 4E1T and StableLM 2."""

from __future__ import annotations

from lintfit.catalog.architectures._blocks import Shape, norm
from lintfit.catalog.architectures._decoder import Names
from lintfit.catalog.architectures._plain import Plain, attention
from lintfit.catalog.config import Config
from lintfit.catalog.facts import Code, Tensor, since


def mixer(config: Config, numbers: Shape) -> list[Tensor]:
    """Attention, and a norm for each head of queries and keys."""
    found = attention(ROW, config, numbers)
    for part, heads in (("q", numbers.heads), ("k", numbers.kv_heads)) if numbers.qk_norm else ():
        name = f"model.layers.{{}}.self_attn.{part}_layernorm.norms.{{}}"
        found += norm(name, numbers.head_dim, numbers.layers * heads)
    return found


def second_norm(config: Config, numbers: Shape) -> list[Tensor]:
    """The norm in front of the MLP, where this does not stand beside attention."""
    name = "model.layers.{}.post_attention_layernorm"
    return [] if numbers.parallel_residual else norm(name, numbers.hidden, numbers.layers, bias=True)


ROW = Plain(
    "LayerNorm, attention and MLP beside each other or not",
    names=Names(norms=("input_layernorm",), order="mixer mlp norms more"),
    norm="layernorm",
    norm_bias=True,
    qk_norm="head",
    qk_norm_key="qk_layernorm",
    qkv_bias="use_qkv_bias",
    out_bias=False,
    mlp_bias=False,
    parallel="use_parallel_residual",
    mixer=mixer,
    more=(second_norm,),
    code=Code(sdpa=since(4, 39)),
)
