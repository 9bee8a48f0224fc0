"""DeepSeek V3.2: V3 with an indexer in every layer that picks the tokens to attend to."""

from __future__ import annotations

from lintfit.catalog.architectures import _latent
from lintfit.catalog.architectures._blocks import Shape, linear, norm
from lintfit.catalog.architectures._decoder import KEYS
from lintfit.catalog.architectures._experts import DEEPSEEK, NO_MTP, listed
from lintfit.catalog.architectures._plain import Plain
from lintfit.catalog.config import Config
from lintfit.catalog.facts import NEVER, Code, Tensor
from lintfit.frozen import replace


def shape(config: Config) -> Shape:
    config.size("index_topk", kind="positions")
    return _latent.latent_shape(config)


def attention(config: Config, numbers: Shape) -> list[Tensor]:
    """Latent attention, and the indexer of all layers or of those that ``indexer_types`` names."""
    name, hidden = "model.layers.{}.self_attn.indexer", numbers.hidden
    heads, width = config.size("index_n_heads", kind="heads"), config.size("index_head_dim", kind="head_dim")
    rank, kinds = config.size("q_lora_rank", kind="hidden"), config.strings("indexer_types")
    copies = kinds.count("full") if kinds else numbers.layers
    return [
        *_latent.latent_attention(config, numbers),
        *linear(f"{name}.wq_b", heads * width, rank, copies),
        *linear(f"{name}.wk", width, hidden, copies),
        *norm(f"{name}.k_norm", width, copies, bias=True),
        *linear(f"{name}.weights_proj", heads, hidden, copies),
    ]


ROW = Plain(
    "DeepSeek V3 and an indexer",
    required=(*KEYS, "n_routed_experts", "moe_intermediate_size", "kv_lora_rank"),
    numbers=shape,
    mlp_bias=False,
    experts=replace(DEEPSEEK, layers=listed),
    mixer=attention,
    notes=NO_MTP,
    code=Code(flash_attention_2=NEVER),
)
