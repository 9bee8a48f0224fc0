"""The building blocks that architectures are put together from: layers of parameters as :class:`Tensor` lists."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from lintfit.catalog.config import Config
from lintfit.catalog.facts import MoE, Tensor, VisionTower
from lintfit.frozen import frozen

Role = Literal["linear", "embedding", "lm_head", "norm", "bias", "expert", "router", "conv", "other"]
Where = Literal["layer", "embedding", "head", "final", "vision", "other"]
Norm = Literal["rmsnorm", "layernorm"]


@frozen
class Shape:
    """An architecture's numbers in one vocabulary, whatever its config calls them. Sizes are elements."""

    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    vocab: int
    tied: bool
    gated: bool
    norm: Norm
    activation: str
    max_positions: int | None = None
    sliding_window: int | None = None
    sliding_layers: int = 0
    rotary_dim: int = 0
    moe: MoE | None = None
    qk_norm: bool = False
    parallel_residual: bool = False
    attention_softcap: float | None = None
    logit_softcap: float | None = None
    vision: VisionTower | None = None

    @property
    def query(self) -> int:
        """Width of all query heads together."""
        return self.heads * self.head_dim

    @property
    def key_value(self) -> int:
        """Width of all key heads together (and of all value heads)."""
        return self.kv_heads * self.head_dim


def linear(
    name: str,
    rows: int,
    columns: int,
    copies: int = 1,
    *,
    bias: bool = False,
    role: Role = "linear",
    where: Where = "layer",
) -> list[Tensor]:
    """A linear layer's weight (out, in) and, where it has one, its bias. ``name`` is the module's."""
    tensors = [Tensor(f"{name}.weight", (rows, columns), copies, role, where)]
    if bias:
        tensors.append(Tensor(f"{name}.bias", (rows,), copies, "bias", where))
    return tensors


def norm(name: str, size: int, copies: int = 1, *, bias: bool = False, where: Where = "layer") -> list[Tensor]:
    """A normalisation's scale and, for LayerNorm, its shift."""
    tensors = [Tensor(f"{name}.weight", (size,), copies, "norm", where)]
    if bias:
        tensors.append(Tensor(f"{name}.bias", (size,), copies, "bias", where))
    return tensors


def embedding(name: str, rows: int, width: int) -> list[Tensor]:
    """A lookup table."""
    return [Tensor(f"{name}.weight", (rows, width), 1, "embedding", "embedding")]


def head(shape: Shape, name: str = "lm_head", *, bias: bool = False) -> list[Tensor]:
    """The output projection to the vocabulary; only its bias where its weight is the embedding's."""
    if not shape.tied:
        return linear(name, shape.vocab, shape.hidden, bias=bias, role="lm_head", where="head")
    return [Tensor(f"{name}.bias", (shape.vocab,), 1, "bias", "head")] if bias else []


def masked_head(
    names: tuple[str, str, str, str], shape: Shape, width: int | None = None, *, biased: bool = True
) -> list[Tensor]:
    """The transform before the vocabulary, to the embeddings' ``width`` where that is another, and the projection where
    it is not the embedding's, which may be ``biased`` under a name of its own.

    ``names``: of the transform, its norm, the projection and the bias.
    """
    dense, layer_norm, decoder, bias = names
    width = width or shape.hidden
    found = [
        Tensor(bias, (shape.vocab,), 1, "bias", "head"),
        *linear(dense, width, shape.hidden, bias=True, where="head"),
        *norm(layer_norm, width, bias=True, where="head"),
    ]
    if shape.tied:
        return found
    own = biased and bias != f"{decoder}.bias"
    return [*found, *linear(decoder, shape.vocab, width, bias=own, role="lm_head", where="head")]


def around(shape: Shape, layers: list[Tensor], final: str = "model.norm") -> tuple[Tensor, ...]:
    """A decoder's layers between the embedding and its ``final`` norm and head, by llama's names."""
    return (
        *embedding("model.embed_tokens", shape.vocab, shape.hidden),
        *layers,
        *norm(final, shape.hidden, where="final"),
        *head(shape),
    )


def attention(
    name: str, shape: Shape, copies: int, *, bias: bool = False, out_bias: bool = False, out: str = "o_proj"
) -> list[Tensor]:
    """Separate query, key, value and output projections."""
    return [
        *linear(f"{name}.q_proj", shape.query, shape.hidden, copies, bias=bias),
        *linear(f"{name}.k_proj", shape.key_value, shape.hidden, copies, bias=bias),
        *linear(f"{name}.v_proj", shape.key_value, shape.hidden, copies, bias=bias),
        *linear(f"{name}.{out}", shape.hidden, shape.query, copies, bias=out_bias),
    ]


def gated_mlp(name: str, hidden: int, intermediate: int, copies: int, *, bias: bool = False) -> list[Tensor]:
    """Gate, up and down projections."""
    return [
        *linear(f"{name}.gate_proj", intermediate, hidden, copies, bias=bias),
        *linear(f"{name}.up_proj", intermediate, hidden, copies, bias=bias),
        *linear(f"{name}.down_proj", hidden, intermediate, copies, bias=bias),
    ]


def plain_mlp(
    name: str, hidden: int, intermediate: int, copies: int, *, up: str, down: str, bias: bool = True
) -> list[Tensor]:
    """Two projections without a gate."""
    return [
        *linear(f"{name}.{up}", intermediate, hidden, copies, bias=bias),
        *linear(f"{name}.{down}", hidden, intermediate, copies, bias=bias),
    ]


def fused_experts(name: str, experts: int, hidden: int, intermediate: int, copies: int) -> list[Tensor]:
    """Routed experts as transformers 5 holds them: one three-dimensional parameter per projection."""
    return [
        Tensor(f"{name}.gate_up_proj", (experts, 2 * intermediate, hidden), copies, "expert"),
        Tensor(f"{name}.down_proj", (experts, hidden, intermediate), copies, "expert"),
    ]


def router(name: str, experts: int, hidden: int, copies: int, *, bias: bool = False) -> list[Tensor]:
    """The projection that scores the experts."""
    return linear(name, experts, hidden, copies, bias=bias, role="router")


def heads_of(config: Config, key: str = "num_attention_heads", kv_key: str = "num_key_value_heads") -> tuple[int, int]:
    """Query and key-value heads; raises where the one is no multiple of the other."""
    heads = config.size(key, kind="heads")
    kv_heads = config.size(kv_key, kind="heads", default=heads)
    if heads % kv_heads:
        raise config.error(kv_key, f"must divide {key} ({heads})")
    return heads, kv_heads


def head_dim_of(config: Config, hidden_key: str, heads_key: str, key: str = "head_dim") -> int:
    """Elements of one head: stated, or the hidden size over the heads, which then must divide it."""
    if config.get(key) is not None:
        return config.size(key, kind="head_dim")
    hidden, heads = config.size(hidden_key, kind="hidden"), config.size(heads_key, kind="heads")
    if hidden % heads:
        raise config.error(hidden_key, f"must be a multiple of {heads_key} ({heads})")
    return hidden // heads


def rotary_dim_of(config: Config, head_dim: int) -> int:
    """Elements of a head that rotary embedding turns, from any spelling of the partial factor."""
    rope = config.section("rope_parameters") if "rope_parameters" in config else {}
    spellings: tuple[Mapping[str, Any], ...] = (config.given, rope, config)
    for values in spellings:
        for key in ("partial_rotary_factor", "rotary_pct", "rope_pct"):
            factor = values.get(key)
            if isinstance(factor, int | float) and 0 < factor <= 1:
                return int(head_dim * factor)
    return head_dim


def sliding_of(config: Config, layers: int) -> tuple[int | None, int]:
    """The window in tokens and how many layers attend within it, by ``layer_types`` where the config has them."""
    window = config.count("sliding_window", kind="positions") or None
    if window is None or config.get("use_sliding_window") is False:
        return None, 0
    kinds = config.strings("layer_types")
    sliding = sum("sliding" in kind for kind in kinds) if kinds else layers
    return (window, sliding) if sliding else (None, 0)


def plain_shape(
    config: Config,
    *,
    hidden: str = "hidden_size",
    layers: str = "num_hidden_layers",
    heads: str = "num_attention_heads",
    intermediate: str = "intermediate_size",
    times: int = 0,
    activation: str = "hidden_act",
    positions: tuple[str, ...] = ("max_position_embeddings",),
    bounded: bool = True,
) -> Shape:
    """The numbers of a model with LayerNorm, an MLP without a gate and a key head for each query head.

    Words are what its config calls them. ``times``: how many times as wide as the stream the MLP is where the config
    does not say. ``bounded``: whether it must state the longest sequence.
    """
    count, width = config.size(heads, kind="heads"), config.size(hidden, kind="hidden")
    wide = config.size(intermediate, kind="intermediate", default=times * width or None)
    return Shape(
        hidden=width,
        layers=config.size(layers, kind="layers"),
        heads=count,
        kv_heads=count,
        head_dim=head_dim_of(config, hidden, heads),
        intermediate=wide,
        vocab=config.size("vocab_size", kind="vocab"),
        tied=config.flag("tie_word_embeddings"),
        gated=False,
        norm="layernorm",
        activation=config.text(activation, default="gelu"),
        max_positions=(config.size if bounded else config.count)(*positions, kind="positions") or None,
    )


def without_attention(config: Config, width: int) -> Shape:
    """The shape of layers that scan alone, ``width`` elements wide: one head of one element stands for none."""
    return Shape(
        hidden=config.size("hidden_size", kind="hidden"),
        layers=config.size("num_hidden_layers", kind="layers"),
        heads=1,
        kv_heads=1,
        head_dim=1,
        intermediate=width,
        vocab=config.size("vocab_size", kind="vocab"),
        tied=config.flag("tie_word_embeddings"),
        gated=True,
        norm="rmsnorm",
        activation=config.text("hidden_act", default="silu"),
    )


def decoder_shape(config: Config, *, norm: Norm = "rmsnorm", gated: bool = True, qk_norm: bool = False) -> Shape:
    """The numbers of a config that uses llama's key names."""
    heads, kv_heads = heads_of(config)
    head_dim = head_dim_of(config, "hidden_size", "num_attention_heads")
    layers = config.size("num_hidden_layers", kind="layers")
    window, sliding = sliding_of(config, layers)
    return Shape(
        hidden=config.size("hidden_size", kind="hidden"),
        layers=layers,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        intermediate=config.size("intermediate_size", kind="intermediate"),
        vocab=config.size("vocab_size", kind="vocab"),
        tied=config.flag("tie_word_embeddings"),
        gated=gated,
        norm=norm,
        activation=config.text("hidden_act", "hidden_activation", default="silu"),
        max_positions=config.count("max_position_embeddings", kind="positions") or None,
        sliding_window=window,
        sliding_layers=sliding,
        rotary_dim=rotary_dim_of(config, head_dim),
        qk_norm=qk_norm,
        attention_softcap=config.number("attn_logit_softcapping"),
        logit_softcap=config.number("final_logit_softcapping"),
    )
