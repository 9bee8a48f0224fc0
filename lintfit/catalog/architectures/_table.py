"""Plain architectures, a row each, by their ``model_type`` with underscores.

To add one: a row, and ``python tools/update_architectures.py`` for what its config class takes for keys left out.
A row without a word is a Llama; what a row may say is in ``_plain.py``, what ``Code`` says in ``catalog/facts.py``.
``Code(layers="llama")`` says whose layers the memory model is to count for it. Rows with routed experts stand in
``_table_experts.py``, encoders in ``_table_encoders.py``, decoders whose modules and keys have names of their own in
``_table_named.py``.
"""

from __future__ import annotations

from collections.abc import Mapping

from lintfit.catalog.architectures import _parts, _table_encoders, _table_experts, _table_named
from lintfit.catalog.architectures._decoder import BEHIND, GEMMA_NORMS, LAYER_NORMS, Names
from lintfit.catalog.architectures._plain import Like, Plain
from lintfit.catalog.facts import NEVER, Code, before, since

_DENSE: Mapping[str, Plain | Like] = {
    "llama": Plain(
        "Llama 1 to 3, and the many models published with its class: Yi, Vicuna, DeepSeek LLM and coder, TinyLlama",
        code=Code(layer="LlamaDecoderLayer", liger=True, unsloth=True, square_mask=True),
    ),
    "apertus": Plain(
        "Apertus: llama with an MLP without a gate, an activation that learns, and norms on the heads",
        names=Names(norms=("attention_layernorm", "feedforward_layernorm"), order="mixer mlp more qk_norms norms"),
        qk_norm="head",
        mlp_bias=False,
        gated=False,
        more=(_parts.learnt_activation,),
    ),
    "arcee": Plain("Arcee AFM: squared ReLU without a gate", gated=False),
    "bart": Like("BART and DistilBART", of="_bart", code=Code(sdpa=since(4, 36), flash_attention_2=since(4, 36))),
    "bitnet": Plain(
        "BitNet b1.58 as it trains, in half precision: norms in front of both projections back to the stream",
        mlp_bias=False,
        more=(_parts.norms_before_projections,),
    ),
    "blenderbot": Like(
        "Blenderbot: PEGASUS with positions that are learned",
        of="_bart",
        more={"offset": 0, "first": False, "last": True},
        code=Code(sdpa=since(4, 53), flash_attention_2=since(4, 53)),
    ),
    "cohere": Plain(
        "Command R and Aya 23: attention and MLP in parallel after one norm without shift",
        names=Names(norms=LAYER_NORMS[:1]),
        norm="layernorm",
        qk_norm="each",
        qk_norm_key="use_qk_norm",
        mlp_bias=False,
        parallel=True,
    ),
    "cohere2": Plain(
        "Command R7B, Command A and Aya Expanse 2: Cohere with sliding windows in three of four layers",
        own={"sliding_window_pattern": 4},  # Cohere2Config.__post_init__
        norm="layernorm",
        names=Names(norms=LAYER_NORMS[:1]),
        mlp_bias=False,
        parallel=True,
        full_every="sliding_window_pattern",
        lists_layers=True,
    ),
    "cwm": Plain(
        "Code World Model: llama with a window in three layers of four",
        full_every=4,
        full_first=True,
        lists_layers=True,
    ),
    "ernie4_5": Plain("ERNIE 4.5, dense", qkv_bias="use_bias", out_bias="use_bias", mlp_bias="use_bias"),
    "eurobert": Plain("EuroBERT: layers that see both ways, with a head for masked words", head_bias="mlp_bias"),
    "exaone4": Plain(
        "EXAONE 4: norms after attention and MLP, and per head on queries and keys",
        names=Names(norms=BEHIND),
        qk_norm="head",
        bias=False,
        full_every="sliding_window_pattern",
        lists_layers=True,
        code=Code(liger=True),
    ),
    "falcon_mamba": Like(
        "Falcon Mamba: Mamba's layers, whose mixers have norms without weights",
        of="mamba",
        code=Code(sdpa=NEVER, flash_attention_2=NEVER, lora_refused_since="0.16"),
    ),
    "gemma": Plain(
        "Gemma 1 and CodeGemma",
        mlp_bias=False,
        code=Code(layer="GemmaDecoderLayer", liger=True, unsloth=True, square_mask=True),
    ),
    "gemma2": Plain(
        "Gemma 2: four norms a layer, soft caps on attention scores and logits, every other layer with a window",
        names=Names(norms=GEMMA_NORMS),
        mlp_bias=False,
        activation="hidden_activation",
        full_every=2,
        # Up to 4.47 Gemma2PreTrainedModel._check_and_enable_sdpa goes over to eager by itself, because SDPA leaves the
        # soft cap of the scores out; from 5.21 on the class has no SDPA for that reason.
        code=Code(
            sdpa=before(5, 21),
            sdpa_unasked=since(4, 48),
            eager_advised=True,
            layer="Gemma2DecoderLayer",
            liger=True,
        ),
    ),
    "gemma3_text": Plain(
        "Gemma 3 without its vision tower (270m, 1b, and the language model of the larger ones)",
        own={"sliding_window_pattern": 6},  # Gemma3TextConfig.__post_init__
        required=("hidden_size", "intermediate_size", "num_hidden_layers"),
        names=Names(norms=GEMMA_NORMS),
        qk_norm="head",
        mlp_bias=False,
        activation="hidden_activation",
        full_every="sliding_window_pattern",
        code=Code(eager_advised=True, layer="Gemma3DecoderLayer", liger=True),
    ),
    "glm": Plain(
        "GLM-4 9B in transformers' own class: fused gate and up projections, half of each head rotated",
        out_bias=False,
        mlp_bias=False,
        names=Names(up=("mlp.gate_up_proj",)),
    ),
    "glm4": Plain(
        "GLM-4-0414: GLM with norms before and after attention and MLP",
        names=Names(up=("mlp.gate_up_proj",), norms=(*LAYER_NORMS, "post_self_attn_layernorm", "post_mlp_layernorm")),
        out_bias=False,
        mlp_bias=False,
        code=Code(liger=True),
    ),
    "granite": Plain("Granite 3 and 4 dense: multipliers on embeddings, residuals, attention and logits"),
    "granite_swa": Plain(
        "Granite Swash: Granite with windows in three layers of four, and a sink for every head",
        full_every=4,
        full_first=True,
        lists_layers=True,
        more=(_parts.sinks,),
        code=Code(sdpa=NEVER, flash_attention_2=NEVER, flash_by_another_kernel=True),
    ),
    "helium": Plain("Helium 1: an output projection that has no bias of its own and is square", out_bias=False),
    "hunyuan_v1_dense": Plain(
        "Hunyuan dense: norms on the heads of queries and keys",
        qk_norm="head",
        names=Names(qk_norms=("self_attn.query_layernorm", "self_attn.key_layernorm")),
        mlp_bias=False,
    ),
    "hyperclovax": Plain(
        "HyperCLOVA X SEED Think: Granite with norms behind attention and MLP as well",
        names=Names(order="mixer mlp norms more"),
        more=(_parts.norms_behind_where_asked,),
    ),
    "internlm": Plain(
        "InternLM 7B and 20B, by the code in their repositories: one flag for biases",
        own={"vocab_size": 103168, "bias": True},  # configuration_internlm.py
        like="llama",
        qkv_bias="bias",
        out_bias="bias",
        mlp_bias=False,
        code=Code(chooses_kernel=False),
    ),
    "internlm3": Plain("InternLM 3 8B"),
    "jais2": Plain(
        "Jais 2: squared ReLU without a gate, LayerNorm, biases everywhere but in the head",
        norm="layernorm",
        norm_bias=True,
        gated=False,
    ),
    "m2m_100": Like(
        "M2M-100 and NLLB-200: BART with sines of a buffer for positions, and norms at the end of each half",
        of="_bart",
        more={"offset": None, "first": False, "last": True},
        code=Code(sdpa=since(4, 45), flash_attention_2=since(4, 40)),
    ),
    "mbart": Like(
        "mBART and mBART-50: BART with a norm at the end of each half",
        of="_bart",
        more={"last": True},
        code=Code(sdpa=since(4, 45), flash_attention_2=since(4, 36)),
    ),
    "ministral3": Plain(
        "The text model of Ministral 3",
        qkv_bias=False,
        out_bias=False,
        mlp_bias=False,
        code=Code(layer="Ministral3DecoderLayer"),
    ),
    "mistral": Plain(
        "Mistral 7B, Nemo, Small and Large, Codestral, Ministral, Zephyr",
        bias=False,
        code=Code(sdpa=since(4, 37), layer="MistralDecoderLayer", liger=True, unsloth=True),
    ),
    "mt5": Like("mT5 and mT0", of="t5", code=Code(since(5, 15), flash_attention_2=NEVER, chooses_kernel=False)),
    "nanochat": Plain(
        "nanochat: norms without weights, squared ReLU without a gate, soft-capped logits",
        norm_weight=False,
        mlp_bias=False,
        gated=False,
        names=Names(up=("mlp.fc1",), down="mlp.fc2"),
    ),
    "nemotron": Plain(
        "Nemotron 4 and Minitron: squared ReLU without a gate, LayerNorm with 1 added to its scale",
        norm="layernorm",
        norm_bias=True,
        gated=False,
        code=Code(liger=True),
    ),
    "olmo": Plain("OLMo 1: norms without parameters", norm="layernorm", norm_weight=False, mlp_bias=False),
    "olmo2": Plain(
        "OLMo 2: norms after attention and MLP, and over all heads of queries and keys",
        names=Names(norms=BEHIND),
        qk_norm="all",
        mlp_bias=False,
        code=Code(layer="Olmo2DecoderLayer", liger=True),
    ),
    "olmo3": Plain(
        "OLMo 3: OLMo 2 with sliding windows in three of four layers",
        names=Names(norms=BEHIND),
        qk_norm="all",
        mlp_bias=False,
        full_every=4,
        lists_layers=True,
        code=Code(liger=True),
    ),
    "orion": Plain(
        "Orion 14B, by the code in its repository: LayerNorm",
        own={"vocab_size": 84608},  # configuration_orion.py
        like="llama",
        norm="layernorm",
        norm_bias=True,
        mlp_bias=False,
        code=Code(chooses_kernel=False),
    ),
    "pegasus": Like(
        "PEGASUS: BART with positions by sines, and norms at the end of each half, not on its embeddings",
        of="_bart",
        more={"offset": 0, "first": False, "last": True},
        code=Code(sdpa=since(4, 53), flash_attention_2=since(4, 53)),
    ),
    "phi3": Plain(
        "Phi 3, 3.5 mini, 4 and 4 mini: fused query-key-value and fused gate-up projections",
        bias=False,
        names=Names(qkv=("self_attn.qkv_proj",), up=("mlp.gate_up_proj",), order="out qkv mlp norms"),
        code=Code(sdpa=since(4, 45), layer="Phi3DecoderLayer", liger=True),
    ),
    "qwen2": Plain(
        "Qwen 1.5, 2 and 2.5 with their coder and math versions, QwQ, and the DeepSeek R1 distillations of Qwen",
        qkv_bias=True,
        out_bias=False,
        mlp_bias=False,
        code=Code(layer="Qwen2DecoderLayer", liger=True, unsloth=True),
    ),
    "qwen3": Plain(
        "Qwen 3, dense", qk_norm="head", mlp_bias=False, code=Code(layer="Qwen3DecoderLayer", liger=True, unsloth=True)
    ),
    "seed_oss": Plain("Seed-OSS 36B", out_bias="attention_out_bias"),
    "smollm3": Plain("SmolLM 3 3B: every fourth layer without rotary embedding", code=Code(liger=True)),
    "starcoder2": Plain(
        "StarCoder 2: an MLP without a gate, biases and LayerNorm",
        norm="layernorm",
        norm_bias=True,
        bias="use_bias",
        gated=False,
        names=Names(up=("mlp.c_fc",), down="mlp.c_proj"),
    ),
    "umt5": Like(
        "umT5: mT5 with relative positions in every layer",
        of="t5",
        own={"tie_word_embeddings": True},
        more={"everywhere": True},
        code=Code(since(5, 15), flash_attention_2=NEVER, chooses_kernel=False),
    ),
    "vaultgemma": Plain(
        "VaultGemma: Gemma 2 without the norms behind attention and MLP",
        names=Names(norms=("input_layernorm", "pre_feedforward_layernorm")),
        mlp_bias=False,
        activation="hidden_activation",
        full_every=2,
        code=Code(sdpa=before(5, 21)),
    ),
}

ROWS: Mapping[str, Plain | Like] = {**_DENSE, **_table_encoders.ROWS, **_table_experts.ROWS, **_table_named.ROWS}
"""Every row."""
