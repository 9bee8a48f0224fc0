"""JetMoE: experts in the place of the query and output projections as well as of the MLP."""

from __future__ import annotations

from lintfit.catalog.architectures._blocks import Shape, embedding, head, linear, norm
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import MoE, Tensor

REQUIRED = ("hidden_size", "num_hidden_layers", "num_key_value_heads", "vocab_size")
DEFAULTS = defaults("jetmoe")


def shape(config: Config) -> Shape:
    """Every expert of a token has heads of its own."""
    kv_heads, layers = config.size("num_key_value_heads", kind="heads"), config.size("num_hidden_layers", kind="layers")
    moe = MoE(
        experts=config.size("num_local_experts", kind="looped"),
        top_k=config.size("num_experts_per_tok", kind="experts"),
        intermediate=config.size("intermediate_size", kind="intermediate"),
        layers=layers,
    )
    head_dim = config.size("kv_channels", kind="head_dim")
    return Shape(
        hidden=config.size("hidden_size", kind="hidden"),
        layers=layers,
        heads=kv_heads * moe.top_k,
        kv_heads=kv_heads,
        head_dim=head_dim,
        intermediate=moe.intermediate,
        vocab=config.size("vocab_size", kind="vocab"),
        tied=config.flag("tie_word_embeddings"),
        gated=True,
        norm="rmsnorm",
        activation=config.text("activation_function", default="silu"),
        max_positions=config.count("max_position_embeddings", kind="positions") or None,
        rotary_dim=head_dim,
        moe=moe,
    )


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers = shape(config)
    hidden, layers, layer, moe = numbers.hidden, numbers.layers, "model.layers.{}", numbers.moe
    assert moe is not None
    width = numbers.key_value
    found = [
        *embedding("model.embed_tokens", numbers.vocab, hidden),
        *linear(f"{layer}.self_attention.kv_proj", 2 * width, hidden, layers),
    ]
    for name, taken, given in (
        ("self_attention.experts", width, width),
        ("mlp", 2 * moe.intermediate, moe.intermediate),
    ):
        found += [
            Tensor(f"{layer}.{name}.bias", (hidden,), layers, "bias"),
            Tensor(f"{layer}.{name}.input_linear.weight", (moe.experts, taken, hidden), layers, "expert"),
            Tensor(f"{layer}.{name}.output_linear.weight", (moe.experts, hidden, given), layers, "expert"),
            *linear(f"{layer}.{name}.router.layer", moe.experts, hidden, layers, role="router"),
        ]
    for name in ("input_layernorm", "post_attention_layernorm"):
        found += norm(f"{layer}.{name}", hidden, layers)
    return (*found, *norm("model.norm", hidden, where="final"), *head(numbers))
