"""DeepSeek V3 and R1, Kimi K2, Moonlight: latent attention and routed experts."""

from __future__ import annotations

from lintfit.catalog.architectures._blocks import Shape, fused_experts, gated_mlp, linear, norm, router
from lintfit.catalog.architectures._decoder import KEYS, DecoderStyle, around, layer_norms
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Code, MoE, Tensor
from lintfit.frozen import replace

REQUIRED = (*KEYS, "n_routed_experts", "moe_intermediate_size", "kv_lora_rank")
DEFAULTS = defaults("deepseek_v3")
CODE = Code(moe_block="DeepseekV3MoE", liger=True)
NOTES = ("no multi-token-prediction layers (transformers does not load those of a checkpoint)",)


def moe_of(config: Config) -> MoE:
    """The routed and shared experts, in all layers but the first ones."""
    layers, dense = config.size("num_hidden_layers", kind="layers"), config.count("first_k_dense_replace")
    width = config.size("moe_intermediate_size", kind="intermediate")
    return MoE(
        experts=config.size("n_routed_experts", kind="experts"),
        top_k=config.size("num_experts_per_tok", kind="experts"),
        intermediate=width,
        layers=max(0, layers - dense),
        shared_intermediate=width * config.count("n_shared_experts", kind="experts"),
    )


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


def shape(config: Config) -> Shape:
    return replace(latent_shape(config), moe=moe_of(config))


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


def mlps(numbers: Shape, *, bias: bool = False) -> list[Tensor]:
    """Dense MLPs of the first layers, experts of the others. ``bias``: of dense and shared ones."""
    moe, mlp, hidden = numbers.moe, "model.layers.{}.mlp", numbers.hidden
    assert moe is not None
    found = gated_mlp(mlp, hidden, numbers.intermediate, numbers.layers - moe.layers, bias=bias)
    found += fused_experts(f"{mlp}.experts", moe.experts, hidden, moe.intermediate, moe.layers)
    found += router(f"{mlp}.gate", moe.experts, hidden, moe.layers)
    if moe.shared_intermediate:
        found += gated_mlp(f"{mlp}.shared_experts", hidden, moe.shared_intermediate, moe.layers, bias=bias)
    return found


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers, style = shape(config), DecoderStyle()
    layers = [*latent_attention(config, numbers), *mlps(numbers), *layer_norms(numbers, style)]
    return around(numbers, style, layers)
