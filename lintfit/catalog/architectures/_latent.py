"""DeepSeek's latent attention: low-rank projections to queries, keys and values."""

from __future__ import annotations

from lintfit.catalog.architectures._blocks import Shape, linear, norm
from lintfit.catalog.config import Config
from lintfit.catalog.facts import Tensor


def latent_shape(config: Config) -> Shape:
    """The numbers of a model with latent attention; ``head_dim`` is that of queries and keys."""
    heads = config.size("num_attention_heads", kind="heads")
    rotary = config.size("qk_rope_head_dim", kind="head_dim")
    return Shape(
        hidden=config.size("hidden_size", kind="hidden"),
        layers=config.size("num_hidden_layers", kind="layers"),
        heads=heads,
        kv_heads=heads,
        head_dim=config.size("qk_nope_head_dim", kind="head_dim") + rotary,
        intermediate=config.size("intermediate_size", kind="intermediate"),
        vocab=config.size("vocab_size", kind="vocab"),
        tied=config.flag("tie_word_embeddings"),
        gated=True,
        norm="rmsnorm",
        activation=config.text("hidden_act"),
        max_positions=config.count("max_position_embeddings", kind="positions") or None,
        rotary_dim=rotary,
    )


def latent_attention(config: Config, numbers: Shape) -> list[Tensor]:
    """Low-rank query and key-value projections with a norm in the middle; queries may be full rank."""
    name, bias, copies = "model.layers.{}.self_attn", config.flag("attention_bias"), numbers.layers
    rank, q_rank = config.size("kv_lora_rank", kind="hidden"), config.count("q_lora_rank", kind="hidden")
    value = config.size("v_head_dim", kind="head_dim")
    nope = numbers.head_dim - numbers.rotary_dim
    if q_rank:
        query = [
            *linear(f"{name}.q_a_proj", q_rank, numbers.hidden, copies, bias=bias),
            *norm(f"{name}.q_a_layernorm", q_rank, copies),
            *linear(f"{name}.q_b_proj", numbers.query, q_rank, copies),
        ]
    else:
        query = linear(f"{name}.q_proj", numbers.query, numbers.hidden, copies)
    return [
        *query,
        *linear(f"{name}.kv_a_proj_with_mqa", rank + numbers.rotary_dim, numbers.hidden, copies, bias=bias),
        *norm(f"{name}.kv_a_layernorm", rank, copies),
        *linear(f"{name}.kv_b_proj", numbers.heads * (nope + value), rank, copies),
        *linear(f"{name}.o_proj", numbers.hidden, numbers.heads * value, copies, bias=bias),
    ]
