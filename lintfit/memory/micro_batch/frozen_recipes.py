"""How the parts of a language model run where a full fine-tuning leaves some of them frozen."""

from __future__ import annotations

from lintfit.memory.activations.recipe import Recipe, all_trained, left_alone
from lintfit.memory.spec import Spec
from lintfit.memory.tensors.frozen_parts import frozen_parts
from lintfit.memory.tensors.lora import flattens_adapters


def at_lookup(spec: Spec, recipe: Recipe) -> Recipe:
    """What lies between the tokens and the first layer."""
    return left_alone(recipe) if frozen_parts(spec).embedding else recipe


def among_layers(spec: Spec, recipe: Recipe) -> Recipe:
    """What any layer may need."""
    return left_alone(recipe) if len(frozen_parts(spec).layers) == spec.facts.layers else recipe


def in_layers(spec: Spec, recipe: Recipe) -> Recipe:
    """A layer whose frozen weights get a gradient, too, where FSDP 1 makes one parameter of them and its adapters."""
    return all_trained(recipe) if flattens_adapters(spec) else recipe


def at_end(spec: Spec, recipe: Recipe) -> Recipe:
    """The last norm and the head, of which one or both may be frozen."""
    left = frozen_parts(spec)
    if not (left.final or left.head):
        return recipe
    trained = {"norm": not left.final, "lm_head": not left.head}
    return left_alone(recipe, tuple(name for name, trains in trained.items() if trains))
