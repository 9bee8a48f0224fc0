"""Multimodal architectures whose encoder is one of ``_towers.py``, a row each, by their ``model_type``.

To add one: a row that names its language model, its encoder and its projector (one of ``_projectors.py``, or a function
there), and its line in ``FAMILIES`` of the package. What else a row may say is in ``_multimodal.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures import _projectors as projectors
from lintfit.catalog.architectures._multimodal import Multimodal, Text, tied_as_the_text
from lintfit.catalog.architectures._towers import Named, Own, siglip_without_head
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Code
from lintfit.frozen import replace

CLIP_LARGE: Mapping[str, Any] = {
    "model_type": "clip_vision_model",
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "num_hidden_layers": 24,
    "num_attention_heads": 16,
    "image_size": 336,
    "patch_size": 14,
}
"""transformers ``LlavaConfig``: a model without ``vision_config`` has CLIP ViT-L/14 at 336 pixels."""
SIGLIP_SO: Mapping[str, Any] = {
    "model_type": "siglip_vision_model",
    "hidden_size": 1152,
    "intermediate_size": 4304,
    "patch_size": 14,
    "image_size": 384,
    "num_hidden_layers": 26,
    "num_attention_heads": 16,
    "vision_use_head": False,
}
"""transformers ``LlavaOnevisionConfig``: SigLIP so400m without its last layer and its head."""
PIXTRAL_LARGE: Mapping[str, Any] = {
    "model_type": "pixtral",
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "patch_size": 14,
    "image_size": 1540,
    "num_hidden_layers": 24,
    "num_attention_heads": 16,
}
"""transformers ``Mistral3Config``."""
SIDES = range(384, 2305, 384)

LLAVA = Multimodal(
    "LLaVA 1.5 and other models of its class: an image encoder, a two-layer projector, and any language model",
    text=Text("llama", free=True),
    vision=Named("clip_vision_model"),
    own={"vision_config": CLIP_LARGE},
    seen=projectors.a_token_a_patch,
    beside=projectors.llava,
)
LLAVA_NEXT = replace(
    LLAVA,
    about="LLaVA 1.6 (NeXT): LLaVA with a learnt line break between rows of image tiles",
    own={
        "vision_config": CLIP_LARGE,
        "image_grid_pinpoints": [[336, 672], [672, 336], [672, 672], [1008, 336], [336, 1008]],
    },
    seen=projectors.tiled,
    beside=projectors.with_line_break,
)
AYA_VISION = Multimodal(
    "Aya Vision: SigLIP, four patches to a token, a gated projector, and Command R7B or Command R",
    text=Text("cohere2", free=True),
    vision=Named("siglip_vision_model"),
    own={"vision_config": {**SIGLIP_SO, "num_attention_heads": 14}},  # AyaVisionConfig
    seen=projectors.downsampled,
    beside=projectors.gated_behind_norm,
)
IDEFICS3 = Multimodal(
    "Idefics 3: SigLIP on tiles, pixel shuffle, one linear layer, and Llama",
    text=Text("llama", free=True),
    vision=Own(defaults("idefics3.vision_config"), siglip_without_head),
    encoders=("model.vision_model",),
    prefix="model.text_model.",
    required=("text_config", "vision_config"),
    seen=projectors.scaled,
    beside=projectors.one_layer,
)

ROWS: Mapping[str, Multimodal] = {
    "aya_vision": AYA_VISION,
    "cohere2_vision": replace(
        AYA_VISION,
        about="Command A Vision: Aya Vision's parts without a norm in front of the projector",
        own={
            "vision_config": {
                "model_type": "siglip_vision_model",
                "hidden_size": 1152,
                "intermediate_size": 3072,
                "image_size": 512,
                "num_hidden_layers": 27,
                "num_attention_heads": 12,
            }
        },
        beside=projectors.gated,
    ),
    "deepseek_vl": Multimodal(
        "DeepSeek VL: SigLIP, a two-layer aligner, and a language model of Llama's kind",
        text=Text("llama", free=True),
        vision=Named("siglip_vision_model"),
        own={"vision_config": {"model_type": "siglip_vision_model"}},
        encoders=("model.vision_model",),
        seen=projectors.a_token_a_patch,
        beside=projectors.aligner,
    ),
    "gemma3": Multimodal(
        "Gemma 3 with its SigLIP tower (4b, 12b, 27b)",
        text=Text("gemma3_text"),
        vision=Named("siglip_vision_model"),
        seen=projectors.soft_tokens,
        beside=projectors.gemma,
        code=Code(eager_advised=True, liger=True),
    ),
    "idefics3": IDEFICS3,
    "internvl": Multimodal(
        "InternVL 3 and 3.5 as transformers has them: InternViT, pixel shuffle, a two-layer projector, Qwen or Llama",
        text=Text("qwen2", free=True),
        vision=Named("internvl_vision"),
        own={"tie_word_embeddings": False},
        required=("text_config", "vision_config"),
        seen=projectors.halved,
        beside=projectors.intern,
        normalised=tied_as_the_text,
        code=Code(liger=True),
    ),
    "lighton_ocr": Multimodal(
        "LightOn OCR: Pixtral's encoder, Mistral 3's merger of patches and projector, and Qwen 3",
        text=Text("qwen3", free=True),
        vision=Named("pixtral"),
        encoders=("model.vision_encoder",),
        own={
            "vision_config": PIXTRAL_LARGE,
            "text_config": {
                "model_type": "qwen3",
                "head_dim": 128,
                "hidden_size": 1024,
                "intermediate_size": 3072,
                "max_position_embeddings": 40960,
                "num_attention_heads": 16,
                "num_hidden_layers": 28,
                "num_key_value_heads": 8,
                "vocab_size": 151936,
            },
        },
        required=(),
        seen=projectors.squares,
        beside=projectors.lighton,
    ),
    "llava": replace(LLAVA, code=Code(liger=True)),
    "llava_next": LLAVA_NEXT,
    "llava_next_video": replace(
        LLAVA_NEXT,
        about="LLaVA-NeXT-Video: LLaVA-NeXT, whose frames of videos are pooled before they are projected",
        beside=projectors.with_pool,
        normalised=tied_as_the_text,
        notes=("of videos their tokens alone, as a sequence has them",),
    ),
    "llava_onevision": replace(
        LLAVA_NEXT,
        about="LLaVA-OneVision: SigLIP, LLaVA's projector, a learnt line break between rows, and Qwen 2",
        text=Text("qwen2", free=True),
        vision=Named("siglip_vision_model"),
        own={
            "vision_config": SIGLIP_SO,
            "image_grid_pinpoints": [[height, width] for height in SIDES for width in SIDES],
        },
        normalised=tied_as_the_text,
    ),
    "mistral3": Multimodal(
        "Mistral Small 3.1 and later: Pixtral's encoder, a merger of patches, a two-layer projector, and Mistral",
        text=Text("mistral", free=True),
        vision=Named("pixtral"),
        own={"vision_config": PIXTRAL_LARGE, "tie_word_embeddings": False},
        seen=projectors.squares,
        beside=projectors.mistral,
        normalised=tied_as_the_text,
    ),
    "paligemma": Multimodal(
        "PaliGemma 1 and 2: SigLIP, one linear layer, and Gemma 1 or 2",
        text=Text("gemma", free=True),
        vision=Named("siglip_vision_model"),
        own={
            # PaliGemmaConfig
            "text_config": {
                "hidden_size": 2048,
                "num_hidden_layers": 18,
                "intermediate_size": 16384,
                "num_attention_heads": 8,
                "num_key_value_heads": 1,
                "vocab_size": 257152,
            },
            "vision_config": {
                "model_type": "siglip_vision_model",
                "intermediate_size": 4096,
                "hidden_size": 1152,
                "patch_size": 14,
                "image_size": 224,
                "num_hidden_layers": 27,
                "num_attention_heads": 16,
                "vision_use_head": False,
            },
        },
        seen=projectors.a_token_a_patch,
        beside=projectors.paligemma,
        code=Code(liger=True),
    ),
    "smolvlm": replace(IDEFICS3, about="SmolVLM: Idefics 3 with small parts", code=Code(liger=True)),
    "video_llava": replace(
        LLAVA,
        about="Video-LLaVA: an encoder for images and one of the same shape for frames, LLaVA's projector, and a "
        "language model",
        encoders=("model.video_tower", "model.image_tower"),
        own={"vision_config": {**CLIP_LARGE, "image_size": 224}},
    ),
    "vipllava": replace(
        LLAVA,
        about="ViP-LLaVA: LLaVA whose projector norms and takes several layers of CLIP side by side",
        beside=projectors.normed,
    ),
}
