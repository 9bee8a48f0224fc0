"""Between the tokens and the first layer: the embeddings' output and gradient."""

from __future__ import annotations

from lintfit.catalog.facts import ModelFacts
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.frames import embedding_width, frame, projection
from lintfit.memory.activations.recipe import Recipe
from lintfit.memory.activations.tape import CAST, INDEX, rounded
from lintfit.memory.micro_batch.language import language
from lintfit.memory.spec import Spec
from lintfit.memory.tensors.frozen_parts import frozen_parts
from lintfit.memory.versions import transformers_version

SORTED_EMBEDDING = 3072
"""Tokens above which the embedding's backward sorts (``embedding_dense_backward_cuda``)."""


OPENS_EVERY_INPUT = (5, 0)
"""The first transformers whose ``gradient_checkpointing_enable`` calls ``enable_input_require_grads`` for every model
that takes ids; before, it did so only for adapters of transformers' own loader."""


def opens_inputs(spec: Spec) -> bool:
    """Whether checkpointing over a frozen base makes the embeddings' output a leaf that needs a gradient.

    Reentrant checkpointing over adapters works with nothing else, so that PEFT, TRL or the script see to it; since
    ``OPENS_EVERY_INPUT`` transformers does so for either kind.
    """
    adapters = spec.method == "lora"
    if spec.gradient_checkpointing is False or not (adapters or frozen_parts(spec).embedding):
        return False
    by_itself = transformers_version(spec) >= OPENS_EVERY_INPUT and spec.front_end != "litgpt"
    return by_itself or (adapters and spec.use_reentrant)


def input_leaf(spec: Spec, checkpoints: bool, tokens: int, item: int) -> int:
    """The embeddings' output where it is a leaf (:func:`opens_inputs`) and not the first layer's input.

    A leaf stays as long as the graph; a model that scales it, drops some of it or adds positions keeps both. The fms
    runs of PowerLM-3b with LoRA (Granite) show it: 2h bytes a token.
    """
    facts = language(spec.facts)
    how = frame(facts)
    changed = how.changes and not transformers_version(spec) >= how.scales_itself
    changed = changed or (bool(how.drops and facts.config.get(how.drops)) and spec.trainer != "ppo")
    changed = changed or (how.zeroes_padding and (spec.padded_batches or bool(facts.config.get("token_dropout"))))
    width = embedding_width(facts)
    return rounded(tokens * width * item) if changed and checkpoints and opens_inputs(spec) else 0


def projected_embeddings(spec: Spec, recipe: Recipe, batch: int, seq: int, item: int, checkpoints: bool) -> int:
    """Bytes that the graph keeps of the product behind the embeddings, or behind their norm, and of its adapter."""
    facts = language(spec.facts)
    through = projection(facts)
    if through is None:
        return 0
    normed = frame(facts).normed > 0
    leaf = recipe.frozen and checkpoints and opens_inputs(spec) and not normed
    t = Layer(facts, recipe)
    x = t.new(embedding_width(facts), 4 if normed and recipe.autocast else item, grad=leaf or not recipe.frozen)
    x.storage.external = leaf
    t.linear(through.module, x, x.width, facts.hidden, bias=through.biased)
    return sum(storage.size(batch, seq) for storage in t.saved() if storage.kind != CAST)


def embedding_norm(spec: Spec, recipe: Recipe, tokens: int, item: int, checkpoints: bool) -> tuple[int, int]:
    """Bytes that the graph keeps of the norm behind the embeddings, and how many of them are the embeddings.

    Its input, an RMSNorm's and under autocast LayerNorm's in fp32, and fp32 numbers a token; nothing where no gradient
    comes that far. A leaf is counted by :func:`input_leaf`. ERNIE 3.0's forward makes the ids of its tasks, which the
    table's backward asks for.
    """
    facts = language(spec.facts)
    leaf = checkpoints and opens_inputs(spec)
    rows = frame(facts).normed
    if not rows or (recipe.frozen and not leaf):
        return 0, 0
    kept = rows * rounded(tokens * 4)
    if facts.config.get("use_task_id") and not recipe.frozen:
        kept += rounded(tokens * INDEX)
    if item == 2 and (recipe.autocast or rows == 1):
        return kept + rounded(tokens * embedding_width(facts) * 4), 0
    itself = rounded(tokens * embedding_width(facts) * item)
    if frame(facts).ends and _summed(facts):  # and no leaf
        return kept + itself, 0
    return (kept if recipe.frozen else kept + itself), itself


def _summed(facts: ModelFacts) -> bool:
    """Whether an encoder adds anything to the embeddings of its words; DeBERTa v3 does not."""
    return bool(facts.config.get("position_biased_input", True) or facts.config.get("type_vocab_size"))


def summands(facts: ModelFacts, batch: int, seq: int, item: int) -> int:
    """Bytes of embeddings and learned positions, whose sum is the first layer's input; BLOOM and nanochat norm the
    embeddings.

    The model's forward has names for them while its layers run. OPT looks positions up for every sequence, the others
    once.
    """
    how = frame(facts)
    if not how.changes or how.scaled or how.encoder or how.opens:
        return 0
    if how.positions == "sinusoids":  # which have no name
        return rounded(batch * seq * facts.hidden * item)
    rows = (batch * seq if how.positions == "learned each" else seq) if how.learned else 0
    return rounded(batch * seq * facts.hidden * item) + rounded(rows * facts.hidden * item)


def mapped_embeddings(facts: ModelFacts, recipe: Recipe, batch: int, seq: int, item: int) -> tuple[int, int]:
    """Bytes of what a norm gives between the embeddings and a product, which the forward has a name for; and of that
    what the graph keeps."""
    through = projection(facts)
    if through is None or not frame(facts).normed:
        return 0, 0
    size = rounded(batch * seq * embedding_width(facts) * (4 if recipe.autocast else item))
    return size, 0 if recipe.autocast or not recipe.trains(through.module) else size


def dropout_mask(facts: ModelFacts, recipe: Recipe, tokens: int, checkpoints: bool) -> int:
    """The mask of a dropout behind the embeddings (one byte an element).

    Frozen ones have a gradient only where checkpointing over adapters asks for one.
    """
    key = frame(facts).drops
    if not key or not recipe.dropout or (recipe.frozen and not checkpoints):
        return 0
    return rounded(tokens * embedding_width(facts)) if facts.config.get(key) else 0


def scratch(tokens: int, hidden: int, item: int) -> int:
    """The embedding's incoming gradient, and above 3072 tokens fp32 rows and sorted indices.

    ``aten/src/ATen/native/cuda/Embedding.cu``: the sorting kernel sums rows in fp32 and holds six int64 a token.
    """
    scratch = tokens * hidden * item
    return scratch + (tokens * (4 * hidden + 6 * INDEX) if tokens > SORTED_EMBEDDING else 0)
