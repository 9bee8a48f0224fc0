"""Qwen 1 by the code in its repository; its ``intermediate_size`` is that of gate and up together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures import _gpt
from lintfit.catalog.architectures._blocks import Shape, decoder_shape
from lintfit.catalog.architectures._decoder import KEYS
from lintfit.catalog.architectures._plain import Plain, decoder
from lintfit.catalog.config import Config
from lintfit.catalog.facts import Code, Tensor
from lintfit.frozen import replace

REQUIRED = KEYS
DEFAULTS: Mapping[str, Any] = {
    "vocab_size": 151936,
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "kv_channels": 128,
    "intermediate_size": 22016,
    "max_position_embeddings": 8192,
    "attn_dropout_prob": 0.0,
    "emb_dropout_prob": 0.0,
    "no_bias": True,
    "tie_word_embeddings": False,
}
CODE = Code(chooses_kernel=False, own_dtype=True)
_FLAGS = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}


def normalised(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """The config with the dtype that ``QWenLMHeadModel`` casts its layers to: that of a flag, else bf16 wherever a GPU
    has it, whatever the checkpoint holds (``modeling_qwen.py``, ``autoset_precision``)."""
    flagged = next((dtype for flag, dtype in _FLAGS.items() if values.get(flag) is True), "bfloat16")
    return {**values, "dtype": flagged}


def shape(config: Config) -> Shape:
    numbers = decoder_shape(config)
    if numbers.intermediate < 2:
        raise config.error("intermediate_size", "must be at least 2, as gate and up have half of it each")
    head_dim = config.size("kv_channels", kind="head_dim")
    positions = config.count("seq_length", "max_position_embeddings", kind="positions") or None
    return replace(
        numbers,
        head_dim=head_dim,
        rotary_dim=head_dim,
        intermediate=numbers.intermediate // 2,
        max_positions=positions,
    )


def tensors(config: Config) -> tuple[Tensor, ...]:
    return decoder(replace(_LAYERS, bias=not config.flag("no_bias", True)), config, shape(config))


_LAYERS = Plain(
    "Llama's layers by GPT-2's names",
    names=replace(_gpt.NAMES, positions="", up=("mlp.w1", "mlp.w2")),
    qkv_bias=True,
)
