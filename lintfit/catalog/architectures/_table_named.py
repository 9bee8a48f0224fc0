"""Plain decoders whose modules and keys have names of their own, a row each: see ``_table.py``."""

from __future__ import annotations

import functools
from collections.abc import Mapping

from lintfit.catalog.architectures import _fairseq, _gpt
from lintfit.catalog.architectures._blocks import plain_shape
from lintfit.catalog.architectures._decoder import Names
from lintfit.catalog.architectures._plain import CLASSIC, Plain
from lintfit.catalog.facts import NEVER, Code, since
from lintfit.frozen import replace

NEOX = Names(
    layer="gpt_neox.layers.{}",
    embedding="gpt_neox.embed_in",
    qkv=("attention.query_key_value",),
    out="attention.dense",
    up=("mlp.dense_h_to_4h",),
    down="mlp.dense_4h_to_h",
    final="gpt_neox.final_layer_norm",
    order="norms mixer mlp",
)
GPTJ = replace(
    _gpt.NAMES,
    positions="",
    qkv=("attn.q_proj", "attn.k_proj", "attn.v_proj"),
    out="attn.out_proj",
    up=("mlp.fc_in",),
    down="mlp.fc_out",
    norms=("ln_1",),
    order="norm mixer mlp",
)
PHI_NORMS = ("self_attn.q_layernorm", "self_attn.k_layernorm")

ROWS: Mapping[str, Plain] = {
    "biogpt": replace(
        CLASSIC,
        about="BioGPT: OPT's layers, LayerNorm in front of both blocks, a tied head of another name",
        numbers=plain_shape,
        names=replace(
            _fairseq.NAMES,
            layer="biogpt.layers.{}",
            embedding="biogpt.embed_tokens",
            positions="biogpt.embed_positions",
            offset=_fairseq.POSITION_OFFSET,
            final="biogpt.layer_norm",
            head="output_projection",
        ),
    ),
    "bloom": replace(
        CLASSIC,
        about="BLOOM and BLOOMZ: ALiBi, a norm after the embedding",
        required=("n_layer", "vocab_size"),
        renamed={  # what the checkpoints' own configs say
            "n_embed": "hidden_size",
            "num_attention_heads": "n_head",
            "num_hidden_layers": "n_layer",
        },
        numbers=functools.partial(
            plain_shape,
            layers="n_layer",
            heads="n_head",
            intermediate="",
            times=4,
            activation="",
            positions=("seq_length",),
            bounded=False,
        ),
        names=replace(
            NEOX,
            layer="transformer.h.{}",
            embedding="transformer.word_embeddings",
            embedding_norm="transformer.word_embeddings_layernorm",
            qkv=("self_attention.query_key_value",),
            out="self_attention.dense",
            final="transformer.ln_f",
            order="norm mixer norm mlp",
        ),
        code=Code(sdpa=NEVER, flash_attention_2=NEVER, layer="BloomBlock"),
    ),
    "codegen": replace(
        CLASSIC,
        about="CodeGen 350M to 16B: GPT-J with one projection for query, key and value",
        required=_gpt.KEYS,
        numbers=_gpt.numbers,
        rotary_key="rotary_dim",
        names=replace(GPTJ, qkv=("attn.qkv_proj",)),
        qkv_bias=False,
        out_bias=False,
        head_bias=True,
        parallel=True,
        code=Code(sdpa=NEVER, flash_attention_2=NEVER),
    ),
    "gpt2": replace(
        CLASSIC,
        about="GPT-2, DistilGPT-2 and Cerebras-GPT",
        required=_gpt.KEYS,
        numbers=_gpt.numbers,
        names=_gpt.NAMES,
        input_first=True,
        code=Code(sdpa=since(4, 42), flash_attention_2=since(4, 40), layer="GPT2Block"),
    ),
    "gpt_bigcode": replace(
        CLASSIC,
        about="StarCoder, SantaCoder, WizardCoder 15B: multi-query attention in a GPT-2 frame",
        required=_gpt.KEYS,
        numbers=_gpt.with_one_key_head,
        names=_gpt.NAMES,
    ),
    "gpt_neo": replace(
        CLASSIC,
        about="GPT-Neo 125M, 1.3B and 2.7B",
        required=("hidden_size", "num_layers", "num_heads", "vocab_size"),
        numbers=functools.partial(
            plain_shape, layers="num_layers", heads="num_heads", times=4, activation="activation_function"
        ),
        names=replace(
            _gpt.NAMES,
            qkv=("attn.attention.q_proj", "attn.attention.k_proj", "attn.attention.v_proj"),
            out="attn.attention.out_proj",
        ),
        qkv_bias=False,
        code=Code(sdpa=NEVER),
    ),
    "gpt_neox": replace(
        CLASSIC,
        about="GPT-NeoX 20B, Pythia, Dolly v2, StableLM alpha, RedPajama-INCITE, Polyglot-Ko",
        names=NEOX,
        qkv_bias="attention_bias",
        out_bias="attention_bias",
        parallel="use_parallel_residual",
        code=Code(sdpa=since(4, 42), layer="GPTNeoXLayer"),
    ),
    "gptj": replace(
        CLASSIC,
        about="GPT-J 6B: attention and MLP in parallel after one norm",
        required=_gpt.KEYS,
        numbers=_gpt.numbers,
        rotary_key="rotary_dim",
        names=GPTJ,
        qkv_bias=False,
        out_bias=False,
        head_bias=True,
        parallel=True,
        code=Code(sdpa=NEVER, layer="GPTJBlock"),
    ),
    "internlm2": Plain(
        "InternLM 2 and 2.5, by the code in their repositories",
        own={"vocab_size": 103168, "bias": True},  # configuration_internlm2.py
        like="llama",
        names=Names(
            embedding="model.tok_embeddings",
            qkv=("attention.wqkv",),
            out="attention.wo",
            up=("feed_forward.w1", "feed_forward.w3"),
            down="feed_forward.w2",
            norms=("attention_norm", "ffn_norm"),
            head="output",
        ),
        qkv_bias="bias",
        out_bias="bias",
        mlp_bias=False,
        code=Code(chooses_kernel=False),
    ),
    "mpt": Plain(
        "MPT 7B and 30B: ALiBi, no biases",
        required=("d_model", "n_heads", "n_layers", "vocab_size"),
        numbers=_gpt.of_mpt,
        names=replace(
            _gpt.NAMES,
            layer="transformer.blocks.{}",
            positions="",
            qkv=("attn.Wqkv",),
            out="attn.out_proj",
            up=("ffn.up_proj",),
            down="ffn.down_proj",
            norms=("norm_1", "norm_2"),
            final="transformer.norm_f",
        ),
        bias=False,
        gated=False,
        code=Code(sdpa=NEVER, flash_attention_2=NEVER, layer="MptBlock"),
    ),
    "persimmon": replace(
        CLASSIC,
        about="Adept's Persimmon: GPT-NeoX's layout, norms of queries and keys, squared ReLU",
        names=Names(
            qkv=("self_attn.query_key_value",),
            out="self_attn.dense",
            qk_norms=PHI_NORMS,
            up=("mlp.dense_h_to_4h",),
            down="mlp.dense_4h_to_h",
            final="model.final_layernorm",
            order="mixer qk_norms mlp norms",
        ),
        qk_norm="head",
        qk_norm_key="qk_layernorm",
    ),
    "phi": replace(
        CLASSIC,
        about="Phi 1, 1.5 and 2: attention and MLP in parallel after one norm, biases everywhere",
        names=Names(
            out="self_attn.dense",
            qk_norms=PHI_NORMS,
            up=("mlp.fc1",),
            down="mlp.fc2",
            norms=("input_layernorm",),
            final="model.final_layernorm",
            order="mixer qk_norms mlp norms",
        ),
        qk_norm="head",
        qk_norm_key="qk_layernorm",
        head_bias=True,
        parallel=True,
        code=Code(sdpa=since(4, 39), layer="PhiDecoderLayer"),
    ),
    "xglm": replace(
        CLASSIC,
        about="XGLM: LayerNorm in front of both blocks, sinusoidal positions that are no parameters, a tied head",
        required=("d_model", "ffn_dim", "num_layers", "attention_heads", "vocab_size"),
        numbers=functools.partial(
            plain_shape,
            hidden="d_model",
            layers="num_layers",
            heads="attention_heads",
            intermediate="ffn_dim",
            activation="activation_function",
        ),
        names=replace(_fairseq.NAMES, order="mixer norm more mlp norm"),
        more=(_fairseq.cross_attention,),
        code=Code(sdpa=NEVER, flash_attention_2=NEVER),
    ),
}
