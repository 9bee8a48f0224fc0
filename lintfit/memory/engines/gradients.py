"""Gradients that are there beyond the parameters' own at the end of a backward pass."""

from __future__ import annotations

from lintfit.memory.activations.recipe import of
from lintfit.memory.loss.preference import loss_path
from lintfit.memory.spec import DTYPE_BYTES, SCORING, Spec
from lintfit.memory.tensors.parameters import Inventory, rounded, trained_dtype
from lintfit.memory.tensors.tensor_parallel import whole_embedding_gradient


def largest_gradient(held: Inventory) -> int:
    """Bytes of the largest single gradient."""
    return max((rounded(weight.storage) for weight in held.trainables), default=0)


def sums_out_of_place(spec: Spec) -> bool:
    """Whether the two gradients of a tied embedding make a third when they are summed.

    The head's is a transposed view of a product, which the engine does not add into. The cast of it, which autocast
    makes for weights in full precision, and the fused heads' gradient are tensors of their own (torch's own count
    under fake tensors).
    """
    recipe = of(spec)
    return not (recipe.autocast and recipe.weights == 4) and loss_path(spec) != "chunked"


def tied_gradient(spec: Spec, held: Inventory) -> int:
    """Bytes beyond the gradients themselves when a tied embedding gets its gradient, the last of the backward.

    The head's share waits in the engine until the embedding's backward: one more copy, two where they are not
    summed in place. PPO's last gradients are the value model's, whose embedding is not tied, nor is that of a model
    that scores; a pipeline's stage has one of the two; the copies that PEFT trains are not tied.
    """
    alone = spec.trainer == "ppo" or spec.trainer in SCORING or spec.pipeline_stage is not None
    if not spec.facts.tied or spec.method == "lora" or alone:
        return 0
    embedding = max((w.storage for w in held.trainables if w.words), default=0)
    return rounded(embedding) * (2 if sums_out_of_place(spec) else 1)


def unreduced_gradient(spec: Spec) -> int:
    """Bytes of a split embedding's gradient that belong to the rows of other tensor-parallel ranks."""
    return whole_embedding_gradient(spec) * DTYPE_BYTES[trained_dtype(spec)] if spec.method == "full" else 0
