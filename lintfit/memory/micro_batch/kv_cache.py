"""Keys and values that a model returns while it trains, although nobody asks for them. Bytes of one rank."""

from __future__ import annotations

from typing import NamedTuple

from lintfit.catalog.facts import ModelFacts
from lintfit.memory.activations.attention import repeats
from lintfit.memory.activations.frames import frame
from lintfit.memory.activations.kinds import Kind, kinds
from lintfit.memory.activations.recipe import CACHE_OFF, Recipe, caches, caches_text, of, wants_cache
from lintfit.memory.activations.tape import rounded
from lintfit.memory.micro_batch.aside import Aside, keeps_input
from lintfit.memory.micro_batch.model import Model
from lintfit.memory.micro_batch.stream import Shape
from lintfit.memory.spec import OWN_LOSS, Spec
from lintfit.memory.versions import transformers_version


class Caches(NamedTuple):
    """Keys and values in a cache, and of what stands beside the text, in bytes.

    ``checkpointed``: although the model checkpoints. ``unsaved``: where it does not, those that no layer saves.
    ``evaluated``: where nothing is trained, and of these the last layer's (``evaluated_last``): a vision-language
    model's, whose ``text_config`` decides (:func:`forward_states`).
    """

    checkpointed: int
    unsaved: int
    evaluated: int
    evaluated_last: int


def caches_of(spec: Spec, model: Model, shape: Shape, beside: Aside) -> Caches:
    """All that a model of a run returns of keys and values."""
    facts, tokens, item = model.facts, shape.batch * shape.seq, shape.stream
    text = model.recipe.returns_states
    return Caches(
        checkpointed=checkpointed_states(spec, tokens, item) if model.checkpoints else 0,
        unsaved=0 if model.checkpoints else forward_states(spec, facts, model.recipe, *shape) + beside.cache,
        evaluated=beside.cache + (len(attending(facts)) * layer_states(spec, facts, tokens, item) if text else 0),
        evaluated_last=_last(spec, facts, tokens, item, beside) if text else 0,
    )


def checkpointed_states(spec: Spec, tokens: int, item: int) -> int:
    """Keys and values that the model returns although it checkpoints.

    GPTBigCode of transformers 4 does not turn ``use_cache`` off (its config's default is on): every layer's
    ``key_value``, a view of the whole fused projection, lives until the outputs go after the forward pass.
    """
    if spec.facts.model_type != "gpt_bigcode" or transformers_version(spec) >= CACHE_OFF:
        return 0
    if spec.trainer not in OWN_LOSS or not wants_cache(spec):
        return 0
    facts = spec.facts
    fused = facts.heads * facts.head_dim + 2 * facts.kv_heads * facts.head_dim
    return facts.layers * rounded(tokens * fused * item)


def _last(spec: Spec, facts: ModelFacts, tokens: int, item: int, beside: Aside) -> int:
    """What the last layer that runs leaves in a vision-language model's cache."""
    layers = [kind for kind in kinds(facts) if beside.cache or not kind.crosses]
    if layers[-1].crosses:
        return beside.cache // sum(bool(kind.crosses) for kind in layers)
    return layer_states(spec, facts, tokens, item) if layers[-1] in attending(facts) else 0


def returns_cache(spec: Spec) -> bool:
    """Whether a model returns a cache while it trains."""
    checkpoints = spec.gradient_checkpointing is not False
    return not checkpoints and (caches_text(spec) or caches(spec))


def forward_states(spec: Spec, facts: ModelFacts, recipe: Recipe, batch: int, seq: int, item: int) -> int:
    """Keys and values in a cache that no layer saves, until the forward's outputs go.

    Of a model that is told to ``use_cache`` (:func:`caches`), and of a vision-language model: the Trainer turns it off
    in the model's config, not in ``text_config``, whose default is on. Attention that repeats or casts what it is given
    leaves the cache with tensors of its own.
    """
    if not returns_cache(spec):
        return 0
    casts = recipe.autocast and item == 4 and not frame(facts).places_once
    latent = "kv_lora_rank" in facts.config and caches_text(spec) and not keeps_input(recipe, item, "kv_b_proj")
    every = casts or latent or repeats(facts, recipe)
    own = [kind for kind in attending(facts) if every or repeats(facts, recipe, masked=slides(kind, seq))]
    return len(own) * layer_states(spec, facts, batch * seq, item)


def slides(kind: Kind, seq: int) -> bool:
    """Whether a layer's window is no longer than a sequence, so that it has a mask."""
    return kind.window is not None and seq >= kind.window


def attending(facts: ModelFacts) -> tuple[Kind, ...]:
    """The layers of the text that put keys and values of their own into a cache: none that mixes tokens in another way,
    takes an earlier layer's, or attends to what stands beside the text."""
    return tuple([kind for kind in kinds(facts) if not (kind.crosses or kind.mixer or kind.shares)])


def layer_states(spec: Spec, facts: ModelFacts, tokens: int, item: int) -> int:
    """Bytes of what one layer puts into the cache; a vision-language model with latent attention, what keys and values
    are made of."""
    if "kv_lora_rank" in facts.config and caches_text(spec):
        widths = facts.config["kv_lora_rank"], facts.config["qk_rope_head_dim"]
        return sum([rounded(tokens * int(width) * item) for width in widths])
    if frame(facts).half_cache and of(spec).autocast:
        item = 2
    return 2 * rounded(tokens * facts.kv_heads * facts.head_dim * item)
