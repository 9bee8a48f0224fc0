"""What Gemma 3n's and Gemma 4's language models share: layers that slide, and an input of its own for every layer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures._blocks import Shape, linear, norm
from lintfit.catalog.config import Config
from lintfit.catalog.facts import Tensor


def slides(config: Mapping[str, Any], layers: int, every: int) -> list[bool]:
    """Whether each layer attends within the window only; the last of ``every`` does not where nothing is listed."""
    return [layer_slides(config, layers, every, layer) for layer in range(layers)]


def layer_slides(config: Mapping[str, Any], layers: int, every: int, layer: int) -> bool:
    """The same of one layer: whoever asks for each in turn need not list all of them every time."""
    listed = config.get("layer_types")
    if isinstance(listed, list | tuple) and len(listed) >= layers:
        return bool(listed[layer] == "sliding_attention")
    return (layer + 1) % every != 0


def own_inputs(config: Config, numbers: Shape) -> list[Tensor]:
    """What gives every layer an input of its own, from the token and from the embeddings."""
    narrow = config.size("hidden_size_per_layer_input", kind="hidden")
    rows = config.size("vocab_size_per_layer_input", kind="vocab")
    hidden, layers, layer = numbers.hidden, numbers.layers, "model.layers.{}"
    return [
        Tensor("model.embed_tokens_per_layer.weight", (rows, layers * narrow), 1, "embedding", "embedding"),
        *linear("model.per_layer_model_projection", layers * narrow, hidden, where="other"),
        *norm("model.per_layer_projection_norm", narrow, where="other"),
        *linear(f"{layer}.per_layer_input_gate", narrow, hidden, layers),
        *linear(f"{layer}.per_layer_projection", hidden, narrow, layers),
        *norm(f"{layer}.post_per_layer_input_norm", hidden, layers),
    ]
