"""BERT's names, and what its relatives have beside them."""

from __future__ import annotations

from lintfit.catalog.architectures._blocks import Shape, embedding, linear, plain_shape
from lintfit.catalog.architectures._decoder import Names
from lintfit.catalog.architectures._plain import CLASSIC
from lintfit.catalog.config import Config
from lintfit.catalog.facts import Tensor
from lintfit.frozen import replace

PREDICTIONS = (
    "cls.predictions.transform.dense",
    "cls.predictions.transform.LayerNorm",
    "cls.predictions.decoder",
    "cls.predictions.bias",
)
"""The head for masked words."""

LM_HEAD = ("lm_head.dense", "lm_head.layer_norm", "lm_head.decoder", "lm_head.bias")
"""RoBERTa's."""


def names(name: str, masked: tuple[str, str, str, str] = PREDICTIONS) -> Names:
    """Those of a model with this name, and of its head."""
    return Names(
        layer=f"{name}.encoder.layer.{{}}",
        embedding=f"{name}.embeddings.word_embeddings",
        positions=f"{name}.embeddings.position_embeddings",
        token_types=f"{name}.embeddings.token_type_embeddings",
        embedding_norm=f"{name}.embeddings.LayerNorm",
        qkv=("attention.self.query", "attention.self.key", "attention.self.value"),
        out="attention.output.dense",
        up=("intermediate.dense",),
        down="output.dense",
        norms=("attention.output.LayerNorm", "output.LayerNorm"),
        final="",
        masked=masked,
        order="mixer norm mlp norm more",
    )


ENCODER = replace(CLASSIC, numbers=plain_shape)


def tasks(config: Config, numbers: Shape) -> list[Tensor]:
    """ERNIE's embeddings of tasks."""
    asked = config.flag("use_task_id")
    name = "ernie.embeddings.task_type_embeddings"
    return embedding(name, config.size("task_type_vocab_size"), numbers.hidden) if asked else []


def projection(config: Config, numbers: Shape) -> list[Tensor]:
    """ELECTRA's from the embeddings' width to the layers'."""
    width, name = config.size("embedding_size", kind="hidden"), "electra.embeddings_project"
    return [] if width == numbers.hidden else linear(name, numbers.hidden, width, bias=True, where="embedding")


def relative_biases(config: Config, numbers: Shape) -> list[Tensor]:
    """MPNet's biases of the scores by relative position."""
    size = (config.size("relative_attention_num_buckets"), numbers.heads)
    return [Tensor("mpnet.encoder.relative_attention_bias.weight", size, 1, "embedding", "other")]
