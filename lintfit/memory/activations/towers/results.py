"""What a model's forward has names for of its images while the layers of its text run.

Since transformers 5 that is the whole of what the encoder gave back (``mm_encoder_outputs``), and the features as they
go between the words. Sources: ``forward`` in ``modeling_<model_type>.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from lintfit.catalog.facts import ModelFacts


class Results(NamedTuple):
    """How many there are of each.

    ``states``: what layers of the encoder gave; ``inner``: what is as wide and long as the features, but is made on
    the way to them; ``features``: what the connector gave; ``embeds``: the same as the sequence takes it, in a tensor
    of its own (``torch.cat``). ``normed``: whether the states are those behind a LayerNorm, which no
    graph has. ``every``: whether the encoder lists the results of all of its layers, and with them the
    graph of those that nobody takes. ``picked``: whether it lists those alone that the projector takes, and gives the
    last one's beside them. ``answered``: whether the model gives the features back beside the loss, in the dtype of the
    words' embeddings.
    """

    states: int = 0
    inner: int = 0
    features: int = 0
    embeds: int = 0
    every: bool = False
    normed: bool = False
    picked: bool = False
    answered: bool = False


GLM = Results(inner=1, features=1, embeds=1)
LISTED = Results(features=1, embeds=1, every=True)
QWEN = Results(states=1, features=1, embeds=1)
ALIGNED = Results(states=1, features=1, normed=True, answered=True)
PICKED = Results(features=1, picked=True, answered=True)
RESULTS: Mapping[str, Results] = {
    "ovis2": Results(states=1, features=1),
    **dict.fromkeys(("deepseek_vl", "janus"), ALIGNED),
    "lighton_ocr": QWEN._replace(answered=True),
    "kimi_k25": QWEN._replace(normed=True),
    **dict.fromkeys(("video_llava", "vipllava"), PICKED),
    **dict.fromkeys(("llava_next", "llava_next_video"), LISTED),
    **dict.fromkeys(("glm46v", "glm4v", "glm4v_moe", "glm_ocr"), GLM),
    **dict.fromkeys(("exaone4_5", "qwen2_5_omni", "qwen2_5_omni_thinker", "qwen2_5_vl", "qwen2_vl"), QWEN),
}
"""By model type, as far as it is read."""


def results(facts: ModelFacts) -> Results:
    """What is named of the images; nothing where nobody has read it."""
    return RESULTS.get(facts.model_type, Results())
