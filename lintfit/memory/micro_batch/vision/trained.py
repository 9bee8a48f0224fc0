"""What trains between an image's pixels and words, and where the encoder has a graph."""

from __future__ import annotations

from lintfit.memory.activations.towers import (
    Style,
    style,
)
from lintfit.memory.micro_batch.autocast import APART
from lintfit.memory.micro_batch.opened import opens_inputs
from lintfit.memory.spec import Spec
from lintfit.memory.tensors.parameters import inventory
from lintfit.memory.versions import transformers_version

EVERY_EMBEDDING = (5, 0)
"""The transformers version from which ``enable_input_require_grads`` hooks the image encoder's patches, too, so that a
frozen encoder has a graph (``modeling_utils.py``; earlier ones hook the language model's embeddings alone)."""


PATCHES = ("patch_embed", "patch_conv")
"""What the name of the convolution over patches has in it."""


PROJECTORS = (
    "aligner",
    "attn_pool",
    "head_linear",
    "connector",
    "downsample",
    "image_newline",
    "img_projection",
    "language_projection",
    "merger",
    "mlp1",
    "mm_projector",
    "multi_modal_projector",
    "projector",
    "qformer",
    "query_tokens",
    "resampler",
    "vision_projection",
    "visual_embeddings_table",
)
"""What the names of the parts behind the encoder have in them."""


def trains_tower(spec: Spec) -> bool:
    """Whether any part of the encoder or its projector is trained."""
    return trains_encoder(spec) or trains_connector(spec)


def trains_encoder(spec: Spec) -> bool:
    """Whether anything of the encoder itself is trained.

    Adapters in an encoder that is checkpointed reentrantly are not, but behind patches that are made to need a
    gradient, or have an adapter: what goes into its first layer needs none, and so does what comes out then.
    """
    how = style(spec.facts)
    if spec.method == "lora" and not hooked(spec):
        reentrant = checkpoints_encoder(spec, how) and spec.use_reentrant and not adapts_patches(trained_names(spec))
        if how.checkpoints_itself or reentrant:
            return False
    return any(not any(part in name for part in PROJECTORS) for name in trained_names(spec))


def trains_connector(spec: Spec) -> bool:
    """Whether anything behind the encoder is trained."""
    return any(part in name for name in trained_names(spec) for part in PROJECTORS)


def checkpoints_encoder(spec: Spec, how: Style) -> bool:
    """Whether the encoder's layers follow the model's checkpointing."""
    follows = how.checkpointed_before is None or transformers_version(spec) < how.checkpointed_before
    return spec.gradient_checkpointing is not False and follows


def adapts_patches(trained: list[str]) -> bool:
    """Whether the convolution over patches has an adapter."""
    return any(name.endswith(".lora_A") and any(part in name for part in PATCHES) for name in trained)


def trained_names(spec: Spec) -> list[str]:
    """The names of the trained weights between an image's pixels and words."""
    trained = inventory(spec).trainables
    return [
        weight.name for weight in trained if weight.where == "vision" and not any(name in weight.name for name in APART)
    ]


BY_PIXELS = frozenset({"blip-2", "instructblip"})
"""Model types whose main input is the images (``main_input_name``), for which checkpointing alone hooks nothing."""


def hooked(spec: Spec) -> bool:
    """Whether the images' embeddings are made to need a gradient over a frozen encoder."""
    if transformers_version(spec) < EVERY_EMBEDDING or not style(spec.facts).hooked:
        return False
    if opens_inputs(spec):
        return True
    return spec.method == "full" and spec.gradient_checkpointing is not False and spec.facts.model_type not in BY_PIXELS
