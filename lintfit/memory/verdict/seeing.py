"""What a run of a vision-language model may be besides what its spec says of its images."""

from __future__ import annotations

from lintfit.frozen import replace
from lintfit.memory.activations.towers import ITSELF, counted, known
from lintfit.memory.micro_batch.vision.images import patches, unsaid, with_an_image, without_images
from lintfit.memory.spec import Spec


def text_alone(spec: Spec) -> tuple[Spec, str] | None:
    """The run without its images, where their size is not told or nobody has counted their encoder, and what is then
    said of it."""
    if unsaid(spec):
        return without_images(spec), (
            "images as large, or of as many tiles, as the model and the sequence let them be (image_patches or "
            "image_tiles would say); the low end counts text only"
        )
    return (without_images(spec), "") if spec.images and not counted(spec.facts) else None


def _of_an_image(seen: Spec, counted: str) -> str:
    """What the high end counts where nobody says whether there are images, and how large."""
    if seen.image_patches is None:
        return ""
    merge = seen.facts.vision.merge if seen.facts.vision is not None else 1
    return (
        f"{counted}; the high end counts {_number(seen)} as large as the processor leaves it: "
        f"{seen.image_patches:,} patches, {seen.image_patches // merge:,} tokens beside the text (images, and "
        "image_max_pixels or MAX_PIXELS, say how many and how large)"
    )


def _number(seen: Spec) -> str:
    return "an image a sequence," if seen.images == 1 else f"{seen.images} images a sequence, each"


def with_images(spec: Spec) -> tuple[Spec, str] | None:
    """The run with an image a sequence where nobody says how many, and on an encoder that nobody has counted."""
    open_still = unsaid(spec) and spec.image_max_pixels is None and "seq_len" not in spec.stated
    seen, note = spec, ""
    if spec.images is None or open_still:
        seen = with_an_image(spec)
        note = _of_an_image(seen, "text alone" if spec.images is None else "images within a length that is assumed")
    if spec.facts.model_type in ITSELF and not ("attention" in spec.stated and spec.attention != "sdpa"):
        seen = replace(seen, attention="eager")
        note = (
            "FlashAttention 2, which the model's own code takes where it is installed (not stated; the high end counts "
            "its eager attention)"
        )
    if not counted(spec.facts):
        seen = replace(seen, image_patches=2 * patches(seen))
        note = (
            f"the way from pixels to words of {spec.facts.model_type} "
            f"{'as its code reads, measured by nobody' if known(spec.facts) else 'as if it were CLIP'}: the "
            "low end counts text only, the high end twice the patches"
        )
    return (seen, note) if seen is not spec else None
