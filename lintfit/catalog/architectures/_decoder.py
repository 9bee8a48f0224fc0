"""What decoders and encoders call their modules, and llama its keys."""

from __future__ import annotations

from lintfit.frozen import frozen

KEYS = ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "vocab_size")
"""Keys in llama's words that a config must state itself."""

LAYER_NORMS = ("input_layernorm", "post_attention_layernorm")

BEHIND = ("post_attention_layernorm", "post_feedforward_layernorm")
"""Norms that stand behind attention and MLP."""

GEMMA_NORMS = (*LAYER_NORMS, "pre_feedforward_layernorm", "post_feedforward_layernorm")
"""Gemma's since its second generation, in front of both blocks and behind them."""


@frozen
class Names:
    """What a type calls its modules. Those of a layer stand below ``layer``, in which ``{}`` is its number."""

    layer: str = "model.layers.{}"
    embedding: str = "model.embed_tokens"
    positions: str = ""
    """The table of learned positions; there is none where nothing is said."""
    offset: int = 0
    """Rows that it has before the first position's."""
    token_types: str = ""
    """The table of token types, where there is one."""
    embedding_norm: str = ""
    """The norm of the embeddings, where there is one."""
    qkv: tuple[str, ...] = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj")
    """Projections to queries, keys and values; a single name where they are one product."""
    out: str = "self_attn.o_proj"
    qk_norms: tuple[str, str] = ("self_attn.q_norm", "self_attn.k_norm")
    up: tuple[str, ...] = ("mlp.gate_proj", "mlp.up_proj")
    """Gate and up projections; a single name where they are one product, or where there is no gate."""
    down: str = "mlp.down_proj"
    norms: tuple[str, ...] = LAYER_NORMS
    final: str = "model.norm"
    """The norm behind all layers, where there is one."""
    head: str = "lm_head"
    masked: tuple[str, str, str, str] | None = None
    """A head for masked words in its place: transform, its norm, projection and bias."""
    order: str = "mixer mlp qk_norms norms"
    """The parts of a layer in the order of its class; ``norm`` is the next of the norms, ``norms`` are the rest."""


FEED_FORWARD = Names(
    up=("feed_forward.gate_proj", "feed_forward.up_proj"),
    down="feed_forward.down_proj",
    norms=("input_layernorm", "pre_ff_layernorm"),
    final="model.final_layernorm",
)
"""Those of decoders with Mamba's mixers."""
