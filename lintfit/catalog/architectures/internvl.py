"""InternVL 3 and 3.5 as transformers has them: InternViT, pixel shuffle, a two-layer projector, Qwen or Llama."""

from __future__ import annotations

from lintfit.catalog.architectures import llava
from lintfit.catalog.architectures._blocks import Shape, norm
from lintfit.catalog.architectures._multimodal import language_model
from lintfit.catalog.architectures._towers import encoder
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Code, Tensor
from lintfit.frozen import replace

REQUIRED = ("text_config", "vision_config")
DEFAULTS = defaults("internvl", tie_word_embeddings=False)
CODE = Code(liger=True)
normalised = llava.tied_as_the_text
MOST_TILES = 12 + 1
"""``max_patches`` of the processor, and the whole image beside them (``GotOcr2ImageProcessor``)."""


def language(config: Config) -> tuple[str, Config]:
    model, text = llava.text_of(config, "qwen2")
    return model.name, text


def shuffled(config: Config) -> int:
    """Patches that pixel shuffle puts into one token."""
    return int(1 / config.share("downsample_ratio", 0.5)) ** 2


def shape(config: Config) -> Shape:
    model, text = llava.text_of(config, "qwen2")
    vision = encoder(config, "internvl_vision").numbers
    tokens = ((vision.image_size or 0) // vision.patch) ** 2 // shuffled(config)
    numbers: Shape = model.shape(text)
    return replace(numbers, vision=replace(vision, tokens=tokens, tiles=MOST_TILES))


def tensors(config: Config) -> tuple[Tensor, ...]:
    model, text = llava.text_of(config, "qwen2")
    vision, name = encoder(config, "internvl_vision"), "model.multi_modal_projector"
    merged = vision.numbers.hidden * shuffled(config)
    return (
        *vision.tensors("model.vision_tower"),
        *norm(f"{name}.layer_norm", merged, bias=True, where="vision"),
        *llava.projector(name, model.shape(text).hidden, merged, bias=True),
        *language_model(model, text),
    )
