"""Decoders with routed experts, a row each: see ``_table.py``."""

from __future__ import annotations

import functools
from collections.abc import Mapping

from lintfit.catalog.architectures import _granite, _latent, qwen3_next
from lintfit.catalog.architectures._blocks import Shape, decoder_shape
from lintfit.catalog.architectures._decoder import BEHIND, KEYS, LAYER_NORMS, Names
from lintfit.catalog.architectures._experts import (
    DEEPSEEK,
    EXAONE,
    NO_MTP,
    QWEN2,
    QWEN3,
    Experts,
    behind_dense,
    first_dense,
    first_dense_where_listed,
    moe_of,
)
from lintfit.catalog.architectures._parts import gates, norm_behind_experts, sinks
from lintfit.catalog.architectures._plain import Plain
from lintfit.catalog.config import Config
from lintfit.catalog.facts import NEVER, Code, since
from lintfit.frozen import replace

OF_DEEPSEEK = (*KEYS, "n_routed_experts", "moe_intermediate_size", "kv_lora_rank")
LATENT = Plain(
    "Latent attention and DeepSeek's experts",
    required=OF_DEEPSEEK,
    numbers=_latent.latent_shape,
    mlp_bias=False,
    experts=DEEPSEEK,
    mixer=_latent.latent_attention,
    notes=NO_MTP,
)


def _of_experts_alone(config: Config) -> Shape:
    """Solar Open's: no layer has a dense MLP, whose width nothing says."""
    width = config.size("moe_intermediate_size", kind="intermediate")
    every = Config({**config, "intermediate_size": width, "first_k_dense_replace": 0}, {}, config.origin)
    return decoder_shape(every)


def _as_wide_as_shared(config: Config) -> Shape:
    """Qwen 3.5's: every layer has experts, and the width of the shared one stands for an MLP's."""
    numbers = decoder_shape(config, qk_norm=True)
    moe = moe_of(replace(QWEN2, layers=None), config, numbers)
    return replace(numbers, intermediate=moe.shared_intermediate, moe=moe)


ROWS: Mapping[str, Plain] = {
    "afmoe": Plain(
        "AFMoE (Trinity Nano and Mini): gated attention in windows, four norms a layer, experts beside a shared one",
        names=Names(
            norms=(*LAYER_NORMS, "pre_mlp_layernorm", "post_mlp_layernorm"), order="mixer more mlp qk_norms norms"
        ),
        qk_norm="head",
        mlp_bias=False,
        full_every="global_attn_every_n_layers",
        lists_layers=True,
        experts=replace(EXAONE, layers=behind_dense, gate="mlp.router.gate", correction="mlp.expert_bias"),
        more=(gates,),
    ),
    "axk1": replace(
        LATENT,
        about="A.X K1: DeepSeek V3's latent attention and experts, with a norm behind these",
        own={"first_k_dense_replace": 1},
        normalised=first_dense_where_listed,
        more=(norm_behind_experts,),
    ),
    "deepseek": Plain(
        "DeepSeek MoE 16B, by the code in its own repository: one module per expert",
        own={  # configuration_deepseek.py
            "vocab_size": 102400,
            "moe_intermediate_size": 1407,
            "moe_layer_freq": 1,
            "first_k_dense_replace": 0,
        },
        like="llama",
        required=(*KEYS, "moe_intermediate_size"),
        bias=False,
        experts=replace(DEEPSEEK, gate_first=True, apart=True),
        code=Code(chooses_kernel=False),
    ),
    "deepseek_v2": replace(
        LATENT,
        about="DeepSeek V2 and V2 Lite, DeepSeek Coder V2",
        mlp_bias="mlp_bias",
        notes=(),
        code=Code(liger=True),
    ),
    "deepseek_v3": replace(
        LATENT,
        about="DeepSeek V3 and R1, Kimi K2, Moonlight: latent attention and routed experts",
        code=Code(moe_block="DeepseekV3MoE", liger=True),
    ),
    "dots1": Plain(
        "dots.llm1: DeepSeek's experts behind plain attention with norms on the heads",
        # Dots1Config states a window, and layers within it only behind as many as its largest model has.
        own={"sliding_window": None},
        required=(*KEYS, "n_routed_experts", "n_shared_experts", "moe_intermediate_size", "num_experts_per_tok"),
        qk_norm="head",
        mlp_bias=False,
        experts=DEEPSEEK,
    ),
    "exaone_moe": Plain(
        "K-EXAONE: windows and norms on the heads as in EXAONE 4, norms before the blocks, and DeepSeek V3's experts",
        qk_norm="head",
        bias=False,
        full_every="sliding_window_pattern",
        lists_layers=True,
        experts=EXAONE,
        notes=NO_MTP,
    ),
    "flex_olmo": Plain(
        "FlexOlmo: OLMoE's experts in OLMo 2's layers",
        required=(*KEYS, "num_experts"),
        names=Names(norms=BEHIND),
        qk_norm="all",
        experts=Experts(("num_experts", "num_local_experts")),
    ),
    "glm4_moe": Plain(
        "GLM 4.5, 4.5 Air and 4.6",
        required=(*KEYS, "n_routed_experts", "moe_intermediate_size"),
        qk_norm="head",
        qk_norm_key="use_qk_norm",
        out_bias=False,
        mlp_bias=False,
        experts=DEEPSEEK,
        notes=NO_MTP,
    ),
    "glm4_moe_lite": replace(
        LATENT,
        about="GLM 4.7 Flash: DeepSeek's latent attention and experts",
        own={"first_k_dense_replace": 1},
        normalised=first_dense,
    ),
    "gpt_oss": Plain(
        "gpt-oss 20b and 120b: biases everywhere, attention sinks, experts stored input-first",
        required=(*KEYS, "num_local_experts"),
        names=Names(order="more mixer mlp norms"),
        full_every=2,
        experts=Experts(("num_local_experts",), gate="mlp.router", input_first=True, biased=True),
        more=(sinks,),
        code=Code(sdpa=NEVER, flash_attention_2=NEVER, flash_by_another_kernel=True, liger=True),
    ),
    "granitemoe": Plain("Granite 3 MoE and PowerMoE", required=(*KEYS, "num_local_experts"), experts=_granite.EXPERTS),
    "granitemoe_swa": Plain(
        "Granite MoE Swash: Granite 3 MoE, with a shared MLP or none, and Granite Swash's attention",
        required=(*KEYS, "num_local_experts"),
        numbers=_granite.with_shared_mlp,
        full_every=4,
        full_first=True,
        lists_layers=True,
        mlp=_granite.experts,
        more=(_granite.shared_mlp, sinks),
        code=Code(sdpa=NEVER, flash_attention_2=NEVER, flash_by_another_kernel=True),
    ),
    "granitemoeshared": Plain(
        "Granite 3 MoE with a shared MLP beside the routed experts",
        required=(*KEYS, "num_local_experts"),
        numbers=_granite.with_shared_mlp,
        mlp=_granite.experts,
        more=(_granite.shared_mlp,),
    ),
    "hy_v3": Plain(
        "Hy3: Hunyuan's third generation, DeepSeek V3's experts behind attention with norms on the heads",
        fixed={"first_k_dense_replace": 1},  # where mlp_layer_types does not say which layers are dense
        qk_norm="head",
        experts=EXAONE,
        notes=NO_MTP,
    ),
    "minicpm3": replace(
        LATENT,
        about="MiniCPM 3 4B: latent attention, dense",
        own={"v_head_dim": 64},
        required=(*KEYS, "kv_lora_rank"),
        mlp_bias="mlp_bias",
        experts=None,
        notes=(),
    ),
    "minimax_m2": Plain(
        "MiniMax M2: Mixtral's layout with norms over all query and key heads, and sigmoid routing",
        rotary_key="rotary_dim",
        qk_norm="all",
        qkv_bias=False,
        out_bias=False,
        experts=Experts(("num_local_experts",)),
        notes=NO_MTP,
    ),
    "mistral4": replace(
        LATENT,
        about="Mistral 4's text model: DeepSeek's attention, experts scored by a softmax",
        notes=(),
    ),
    "mixtral": Plain(
        "Mixtral 8x7B and 8x22B",
        required=(*KEYS, "num_local_experts"),
        qkv_bias=False,
        out_bias=False,
        experts=Experts(("num_local_experts",)),
        code=Code(
            sdpa=since(4, 37),
            layer="MixtralDecoderLayer",
            moe_block="MixtralSparseMoeBlock",
            moe_leaf_since="0.18.0",
            liger=True,
        ),
    ),
    "olmoe": Plain(
        "OLMoE 1B-7B",
        required=(*KEYS, "num_experts"),
        qk_norm="all",
        experts=Experts(("num_experts", "num_local_experts")),
        code=Code(moe_block="OlmoeSparseMoeBlock"),
    ),
    "phimoe": Plain(
        "Phi 3.5 MoE",
        required=(*KEYS, "num_local_experts"),
        norm="layernorm",
        norm_bias=True,
        head_bias="lm_head_bias",
        experts=Experts(("num_local_experts",), gate="mlp.router"),
    ),
    "qwen2_moe": Plain(
        "Qwen 1.5 MoE and Qwen 2 57B-A14B: routed experts beside one shared expert with its own gate",
        required=(*KEYS, "num_experts", "moe_intermediate_size"),
        qkv_bias="qkv_bias",
        out_bias=False,
        mlp_bias=False,
        experts=QWEN2,
        code=Code(layer="Qwen2MoeDecoderLayer", moe_block="Qwen2MoeSparseMoeBlock", moe_leaf_since="0.18.0"),
    ),
    "qwen3_5_moe_text": replace(
        qwen3_next.ROW,
        about="The language model of Qwen 3.5 and 3.6 with routed and shared experts: 35B-A3B, 122B-A10B, 397B-A17B",
        own={"full_attention_interval": 4, "intermediate_size": 512},
        required=("hidden_size", "num_hidden_layers", "num_attention_heads", "num_experts", "moe_intermediate_size"),
        numbers=_as_wide_as_shared,
        mixer=functools.partial(qwen3_next.mixers, fused=False),
    ),
    "qwen3_5_text": replace(
        qwen3_next.ROW,
        about="The language model of Qwen 3.5 and 3.6: three layers of gated delta rule to one of gated attention",
        required=KEYS,
        experts=None,
        mixer=functools.partial(qwen3_next.mixers, fused=False),
    ),
    "qwen3_moe": Plain(
        "Qwen 3 with routed experts: 30B-A3B, 235B-A22B, Coder 480B-A35B",
        required=(*KEYS, "moe_intermediate_size"),
        qk_norm="head",
        mlp_bias=False,
        experts=QWEN3,
        code=Code(
            layer="Qwen3MoeDecoderLayer",
            moe_block="Qwen3MoeSparseMoeBlock",
            moe_leaf_since="0.18.0",
            liger=True,
            unsloth=True,
        ),
    ),
    "solar_open": Plain(
        "Solar Open: GLM 4.5's experts in every layer, and Llama's attention",
        required=(
            "hidden_size",
            "num_hidden_layers",
            "num_attention_heads",
            "n_routed_experts",
            "moe_intermediate_size",
        ),
        numbers=_of_experts_alone,
        out_bias=False,
        mlp_bias=False,
        experts=replace(DEEPSEEK, layers=None),
    ),
    "youtu": replace(
        LATENT,
        about="Youtu-LLM: DeepSeek's latent attention and a dense MLP in every layer",
        required=(*KEYS, "kv_lora_rank"),
        mlp_bias="mlp_bias",
        experts=None,
        notes=(),
    ),
}
