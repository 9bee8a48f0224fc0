"""Autocast's cache of half-precision weights.

``torch.autocast`` keeps a half-precision copy of every trained fp32 weight that a matmul has used until the
outermost context exits, which is the end of the forward pass (torch ``aten/src/ATen/autocast_mode.cpp``:
``cached_cast``). Copies that the graph has saved live on until their layer's backward; those are on the tapes.
"""

from __future__ import annotations

from lintfit.memo import Memo
from lintfit.memory.activations.recipe import Recipe
from lintfit.memory.tensors.parameters import Inventory, rounded
from lintfit.memory.tensors.weights import VALUE, Weight
from lintfit.memory.versions import GROUPED_EXPERTS


def cached_copies(recipe: Recipe, held: Inventory, *, experts: bool, sees: bool = True, views: bool = False) -> int:
    """Bytes of the copies that the cache holds at the end of the forward pass.

    Only weights that need a gradient are cached. A tied embedding is cast as the head; experts that run as one grouped
    product are not cast at all, those of a model whose ``experts`` are plain products are. Not for FSDP, whose mixed
    precision gathers the weights in half precision already. ``sees``: whether there are images; without them an encoder
    does not run, and one of sound or of frames (:data:`APART`) never does. ``views``: whether layers multiply by views
    of their weights, which are not cached.
    """
    if not recipe.autocast:
        return 0
    experts = experts or recipe.transformers < GROUPED_EXPERTS
    return _COPIES.get(held, (recipe, experts, sees, views), lambda: _copies(recipe, held, experts, sees, views))


def head_copy(held: Inventory) -> int:
    """Bytes of the copies of the output layer, and of what is transformed before it, among these, as far as their
    weights are trained and fp32."""
    tied = not any(weight.role == "lm_head" for weight in held.weights)
    spoken = [weight for weight in held.weights if weight.where != "vision"]
    heads = [weight for weight in spoken if (weight.words if tied else weight.role == "lm_head") or transforms(weight)]
    return sum(rounded(2 * head.numel) * head.copies for head in heads if head.trainable and head.dtype == "fp32")


def ending_copies(held: Inventory) -> int:
    """Bytes of the copies of what lies between the last layer and the output layer, trained and fp32."""
    ends = [weight for weight in held.trainables if weight.where == "final" and weight.role == "linear"]
    return sum(rounded(2 * end.numel) * end.copies for end in ends if end.dtype == "fp32")


def transforms(weight: Weight) -> bool:
    """Whether it belongs to the transform in front of an encoder's output layer."""
    return weight.where == "head" and weight.role == "linear"


_COPIES: Memo[int] = Memo()

EXPERTS = ".experts."
"""What the names of adapters on fused experts have in them; PEFT itself casts these (``ParamWrapper``)."""


OF_SCANS = (".A_log", ".D", ".dt_proj_bias", ".dt_proj_weight", ".x_proj_weight")
"""How the names of Mamba's parameters end that no product takes, so that nothing casts them, or takes views of, which
autocast does not keep (Zamba)."""


APART = (".audio_tower.", ".generation_", ".video_tower.", ".vqmodel.")
"""What the names of encoders have in them that get no images to read."""

ADDED = (".pos_emb.position_embeddings",)
"""How the names of grids of positions end that are sampled and added (MoonViT), not multiplied."""

LOOKED_UP = (".down_embed.weight", ".up_embed.weight")
"""How the names of tables of experts end that rows are looked up in (Doge)."""

TABLES = (".visual_embeddings_table.weight",)
"""How the names of embeddings end that a product takes, not a look-up (Ovis 2)."""


def _copies(recipe: Recipe, held: Inventory, experts: bool, sees: bool, views: bool) -> int:
    uncast = ("norm", "bias", "conv", *(() if experts else ("expert",)))
    tied = not any(weight.role == "lm_head" for weight in held.weights)
    fused = recipe.lora is not None and recipe.lora.fused is not None
    return sum(
        rounded(weight.numel * 2) * weight.copies
        for weight in held.weights
        if (weight.trainable or weight.unreached)
        and (weight.where != "vision" or (sees and not any(name in weight.name for name in APART)))
        and weight.dtype == "fp32"
        and not (views and weight.where == "layer" and weight.role == "linear")
        and not weight.name.endswith((*OF_SCANS, *ADDED, *LOOKED_UP))
        and not (fused and weight.role == "adapter" and EXPERTS in weight.name)
        and (weight.role not in uncast or (weight.role == "conv" and weight.where != "layer"))
        and (
            weight.role != "embedding"
            or weight.name.endswith(TABLES)
            or (tied and weight.words and len(weight.shape) == 2 and not weight.name.startswith(VALUE))
        )
    )
