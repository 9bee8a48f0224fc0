"""Encoders with a head for masked words, a row each: see ``_table.py``."""

from __future__ import annotations

import functools
from collections.abc import Mapping

from lintfit.catalog.architectures import _bert, modernbert
from lintfit.catalog.architectures._bert import ENCODER, LM_HEAD
from lintfit.catalog.architectures._blocks import plain_shape
from lintfit.catalog.architectures._plain import Plain
from lintfit.catalog.facts import NEVER, Code, since
from lintfit.frozen import replace

ROWS: Mapping[str, Plain] = {
    "bert": replace(
        ENCODER,
        about="BERT",
        names=_bert.names("bert"),
        code=Code(sdpa=since(4, 41), flash_attention_2=since(5, 0), layer="BertLayer"),
    ),
    "data2vec_text": replace(
        ENCODER,
        about="data2vec's text model: RoBERTa's tensors under a name of their own",
        names=_bert.names("data2vec_text", LM_HEAD),
        code=Code(sdpa=since(5, 0), flash_attention_2=since(5, 0), padding_positions=2),
    ),
    "distilbert": replace(
        ENCODER,
        about="DistilBERT",
        required=("dim", "hidden_dim", "n_layers", "n_heads", "vocab_size"),
        numbers=functools.partial(
            plain_shape,
            hidden="dim",
            layers="n_layers",
            heads="n_heads",
            intermediate="hidden_dim",
            activation="activation",
        ),
        names=replace(
            _bert.names(
                "distilbert",
                ("vocab_transform", "vocab_layer_norm", "vocab_projector", "vocab_projector.bias"),
            ),
            layer="distilbert.transformer.layer.{}",
            token_types="",
            qkv=("attention.q_lin", "attention.k_lin", "attention.v_lin"),
            out="attention.out_lin",
            up=("ffn.lin1",),
            down="ffn.lin2",
            norms=("sa_layer_norm", "output_layer_norm"),
        ),
        code=Code(sdpa=since(4, 46), flash_attention_2=since(4, 39)),
    ),
    "electra": replace(
        ENCODER,
        about="ELECTRA's discriminator or generator, with the generator's head",
        names=_bert.names(
            "electra",
            (
                "generator_predictions.dense",
                "generator_predictions.LayerNorm",
                "generator_lm_head",
                "generator_lm_head.bias",
            ),
        ),
        width_key="embedding_size",
        more=(_bert.projection,),
        code=Code(sdpa=since(5, 0), flash_attention_2=since(5, 0)),
    ),
    "ernie": replace(
        ENCODER,
        about="ERNIE 1.0 to 3.0: BERT's tensors, and embeddings of tasks",
        names=replace(_bert.names("ernie"), order="mixer norm mlp norm"),
        more=(_bert.tasks,),
        code=Code(sdpa=since(5, 0), flash_attention_2=since(5, 0)),
    ),
    "modernbert_decoder": replace(
        modernbert.ROW,
        about="ModernBERT's decoder (Ettin): separate queries, keys and values, and a head for the next word",
        names=replace(modernbert.ROW.names, qkv=("attn.q_proj", "attn.k_proj", "attn.v_proj")),
        head=functools.partial(modernbert.head, name="lm_head"),
    ),
    "mpnet": replace(
        ENCODER,
        about="MPNet: BERT, with biases of the scores by relative position",
        names=replace(
            _bert.names("mpnet", LM_HEAD),
            token_types="",
            qkv=("attention.attn.q", "attention.attn.k", "attention.attn.v"),
            out="attention.attn.o",
            norms=("attention.LayerNorm", "output.LayerNorm"),
            order="more mixer norm mlp norm",
        ),
        more=(_bert.relative_biases,),
        code=Code(sdpa=NEVER, flash_attention_2=NEVER, padding_positions=2),
    ),
    "roberta": replace(
        ENCODER,
        about="RoBERTa and XLM-RoBERTa",
        names=_bert.names("roberta", LM_HEAD),
        code=Code(sdpa=since(4, 45), flash_attention_2=since(5, 0), layer="RobertaLayer", padding_positions=2),
    ),
}
