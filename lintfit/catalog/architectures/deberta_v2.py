"""DeBERTa v2 and v3 with the masked-language-model head: scores by relative positions beside those by content."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures import _bert
from lintfit.catalog.architectures._blocks import Shape, embedding, head_dim_of, linear, masked_head, norm, plain_shape
from lintfit.catalog.architectures._decoder import KEYS
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import NEVER, Code, Tensor
from lintfit.frozen import replace

REQUIRED = KEYS
DEFAULTS = defaults(
    "deberta_v2",
    max_relative_positions=0,
    position_buckets=0,
    share_att_key=False,
    norm_rel_ebd="none",
    conv_kernel_size=0,
    conv_groups=1,
)
CODE = Code(sdpa=NEVER, flash_attention_2=NEVER)


def normalised(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """``DebertaV2Config.__post_init__``: the kinds of relative scores as a list; what is below 1 stands for none."""
    values = dict(given)
    if isinstance(values.get("pos_att_type"), str):
        values["pos_att_type"] = [kind.strip() for kind in values["pos_att_type"].lower().split("|")]
    for key in ("max_relative_positions", "position_buckets", "conv_kernel_size"):
        if isinstance(values.get(key), int) and values[key] < 1:
            values[key] = 0
    return values


def shape(config: Config) -> Shape:
    numbers = plain_shape(config)
    dim = head_dim_of(config, "hidden_size", "num_attention_heads", "attention_head_size")
    if dim != numbers.head_dim:
        raise config.error("attention_head_size", f"must be {numbers.head_dim}: heads as wide as hidden_size together")
    return numbers


def span(config: Config) -> int:
    """Relative positions that scores tell apart in each direction; 0 without relative attention."""
    if not config.flag("relative_attention"):
        return 0
    longest = config.count("max_relative_positions", kind="positions")
    longest = longest or config.size("max_position_embeddings", kind="positions")
    return config.count("position_buckets", kind="positions") or longest


def relative(config: Config) -> tuple[bool, bool]:
    """Whether content asks for positions (``c2p``), and positions for content (``p2c``)."""
    kinds = config.strings("pos_att_type") if config.flag("relative_attention") else ()
    return "c2p" in kinds, "p2c" in kinds


def normed(config: Config) -> bool:
    """Whether a norm follows the table of relative positions."""
    return "layer_norm" in [part.strip() for part in config.text("norm_rel_ebd").lower().split("|")]


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers, name = shape(config), "deberta"
    hidden, layers, layer = numbers.hidden, numbers.layers, f"{name}.encoder.layer.{{}}"
    width = config.size("embedding_size", kind="hidden", default=hidden)
    found = embedding(f"{name}.embeddings.word_embeddings", numbers.vocab, width)
    if config.flag("position_biased_input"):
        found += embedding(f"{name}.embeddings.position_embeddings", numbers.max_positions or 0, width)
    types = config.count("type_vocab_size")
    if types:
        found += embedding(f"{name}.embeddings.token_type_embeddings", types, width)
    if width != hidden:
        found += linear(f"{name}.embeddings.embed_proj", hidden, width, where="embedding")
    found += norm(f"{name}.embeddings.LayerNorm", hidden, bias=True, where="embedding")
    own = "attention.self"
    projections = [f"{own}.query_proj", f"{own}.key_proj", f"{own}.value_proj", "attention.output.dense"]
    content, position = relative(config)
    if not config.flag("share_att_key"):
        projections += [f"{own}.pos_key_proj"] * content + [f"{own}.pos_query_proj"] * position
    for module in projections:
        found += linear(f"{layer}.{module}", hidden, hidden, layers, bias=True)
    found += [
        *norm(f"{layer}.attention.output.LayerNorm", hidden, layers, bias=True),
        *linear(f"{layer}.intermediate.dense", numbers.intermediate, hidden, layers, bias=True),
        *linear(f"{layer}.output.dense", hidden, numbers.intermediate, layers, bias=True),
        *norm(f"{layer}.output.LayerNorm", hidden, layers, bias=True),
    ]
    if span(config):
        found.append(
            Tensor(f"{name}.encoder.rel_embeddings.weight", (2 * span(config), hidden), 1, "embedding", "other")
        )
    if normed(config):
        found += norm(f"{name}.encoder.LayerNorm", hidden, bias=True, where="other")
    return (*found, *_convolution(config, numbers), *_head(config, numbers, width))


def _convolution(config: Config, numbers: Shape) -> list[Tensor]:
    """Beside the first layer in v2's large models."""
    kernel, groups = config.count("conv_kernel_size"), config.size("conv_groups")
    if not kernel:
        return []
    if numbers.hidden % groups:
        raise config.error("conv_groups", f"must divide hidden_size ({numbers.hidden})")
    module = "deberta.encoder.conv"
    return [
        Tensor(f"{module}.conv.weight", (numbers.hidden, numbers.hidden // groups, kernel), 1, "conv", "other"),
        Tensor(f"{module}.conv.bias", (numbers.hidden,), 1, "bias", "other"),
        *norm(f"{module}.LayerNorm", numbers.hidden, bias=True, where="other"),
    ]


def _head(config: Config, numbers: Shape, width: int) -> list[Tensor]:
    """BERT's head, as wide as the embeddings; the other one multiplies by the embedding itself."""
    if config.flag("legacy"):
        return masked_head(_bert.PREDICTIONS, numbers, width)
    name = "lm_predictions.lm_head"
    return masked_head((f"{name}.dense", f"{name}.LayerNorm", "", f"{name}.bias"), replace(numbers, tied=True))
