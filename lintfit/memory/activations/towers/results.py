"""What a model's forward has names for of its images while the layers of its text run, and what it gives back of them.

Since transformers 5 the first is the whole of what the encoder gave back (``mm_encoder_outputs``), and the features as
they go between the words; the second (``image_hidden_states``) is beside the logits until the loss is made. Sources:
``forward`` and ``get_image_features`` in ``modeling_<model_type>.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from lintfit.catalog.facts import ModelFacts


class Results(NamedTuple):
    """How many there are of each.

    ``states``: what layers of the encoder gave; ``normed``: the same behind a LayerNorm at its end. ``taken``:
    whether the connector's first product saves these as they are; ``kept``: a second norm does. ``inner``: what is
    as wide and long as the features, but is made on the way to them; ``features``: what the connector gave,
    ``typed`` in the dtype of the encoder's result; ``joined``: whether the sequence takes them from a tensor of its
    own (``torch.cat``); else it does where that is of another dtype. ``answered``: whether the model gives that one
    back beside the loss; ``whole``: all of it; ``encoded``: the encoder's result. ``every``: whether the encoder lists
    its layers' results, and with the last one has the graph of those that nobody takes.
    """

    states: int = 0
    normed: int = 0
    taken: bool = False
    kept: bool = False
    inner: int = 0
    features: int = 0
    typed: bool = False
    joined: bool = False
    answered: bool = False
    whole: bool = False
    encoded: bool = False
    every: bool = False


GLM = Results(inner=1, features=1, joined=True)
LISTED = Results(features=1, joined=True, answered=True, every=True)
QWEN = Results(states=1, features=1, joined=True)
SIGLIP = Results(normed=1, features=1, answered=True)
IDEFICS = SIGLIP._replace(joined=True)
QWEN3 = ("qwen3_5", "qwen3_5_moe", "qwen3_omni_moe", "qwen3_omni_moe_thinker", "qwen3_vl", "qwen3_vl_moe")
RESULTS: Mapping[str, Results] = {
    "aya_vision": SIGLIP._replace(every=True),
    **dict.fromkeys(("blip-2", "instructblip"), SIGLIP._replace(taken=True, encoded=True)),
    "cohere2_vision": SIGLIP,
    "gemma3": SIGLIP._replace(typed=True),
    "idefics2": IDEFICS._replace(taken=True),
    "idefics3": IDEFICS,
    "internvl": Results(states=1, features=1, answered=True),
    "kimi_k25": Results(normed=1, features=1, joined=True),
    "lfm2_vl": IDEFICS,
    "llava_onevision": LISTED._replace(normed=1),
    "lighton_ocr": QWEN._replace(answered=True),
    "paddleocr_vl": Results(normed=1, kept=True, features=1, joined=True),
    "ovis2": Results(states=1, features=1, answered=True),
    **dict.fromkeys(("deepseek_vl", "janus"), SIGLIP._replace(taken=True)),
    "paligemma": SIGLIP._replace(taken=True),
    "smolvlm": IDEFICS._replace(whole=True),
    **dict.fromkeys(("video_llava", "vipllava"), LISTED._replace(joined=False)),
    **dict.fromkeys(("llava", "llava_next", "llava_next_video", "mistral3"), LISTED),
    **dict.fromkeys(("glm46v", "glm4v", "glm4v_moe", "glm_ocr"), GLM),
    **dict.fromkeys(("exaone4_5", "qwen2_5_omni", "qwen2_5_omni_thinker", "qwen2_5_vl", "qwen2_vl"), QWEN),
    **dict.fromkeys(QWEN3, QWEN),
}
"""By model type, as far as it is read."""


def results(facts: ModelFacts) -> Results:
    """What is named of the images; nothing where nobody has read it."""
    return RESULTS.get(facts.model_type, Results())
