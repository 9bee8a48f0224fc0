"""The logits that a model gives back beside its loss. Bytes of one rank."""

from __future__ import annotations

from lintfit.memory.activations.recipe import Recipe
from lintfit.memory.loss.losses import own_loss, upcasts_itself
from lintfit.memory.loss.preference import loss_path, sequences
from lintfit.memory.spec import Spec
from lintfit.memory.tensors.tensor_parallel import logit_parts


def logits_bytes(spec: Spec, recipe: Recipe) -> int:
    """Bytes of the logits that the model gives back for a batch, on one rank."""
    if loss_path(spec) == "score":
        return 0
    tokens = sequences(spec) * spec.local_seq
    return tokens * -(-spec.facts.vocab // logit_parts(spec)) * returned_item(spec, recipe)


def returned_item(spec: Spec, recipe: Recipe) -> int:
    """Bytes of a logit as the model gives it back: Accelerate hands autocast's on in fp32, models of transformers up to
    4.45 upcast them."""
    upcasts = upcasts_itself(spec.facts, recipe) and not own_loss(spec.facts, recipe)
    if recipe.autocast and not recipe.upcast_outputs and not upcasts:
        return 2
    return 4 if recipe.autocast or upcasts or recipe.upcast_head else recipe.weights
