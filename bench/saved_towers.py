"""What image encoders save for their backward: real transformers models on the CPU against lintfit's tapes.

As ``bench/saved_layers.py``, for the towers of vision-language models: two depths give the bytes of a layer, what is
left is the patches' embedding and the projector or merger. Eager attention.

    python bench/saved_towers.py [NAME]...
"""

from __future__ import annotations

import copy
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from bench.saved_layers import packed  # noqa: E402
from lintfit.catalog import models  # noqa: E402
from lintfit.memory.activations.form import live  # noqa: E402
from lintfit.memory.activations.recipe import Recipe  # noqa: E402
from lintfit.memory.activations.towers import form, style  # noqa: E402

IMAGES, SIDE = 2, 8
TEXT = {
    "hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 1, "num_attention_heads": 4,
    "num_key_value_heads": 2, "vocab_size": 256, "head_dim": 32,
}  # fmt: skip
VIT = {
    "hidden_size": 128, "intermediate_size": 256, "num_attention_heads": 4, "patch_size": 14, "image_size": 14 * SIDE,
}  # fmt: skip
CASES: dict[str, dict[str, Any]] = {
    "llava, CLIP": {
        "model_type": "llava", "text_config": {"model_type": "llama", **TEXT},
        "vision_config": {"model_type": "clip_vision_model", **VIT, "projection_dim": 64},
    },
    "llava, SigLIP": {
        "model_type": "llava", "text_config": {"model_type": "qwen2", **TEXT}, "vision_feature_layer": -1,
        "vision_feature_select_strategy": "full",
        "vision_config": {"model_type": "siglip_vision_model", **VIT, "vision_use_head": False},
    },
    "gemma3": {
        "model_type": "gemma3", "text_config": {"model_type": "gemma3_text", **TEXT}, "mm_tokens_per_image": 16,
        "vision_config": {"model_type": "siglip_vision_model", **VIT, "vision_use_head": False},
    },
    "qwen2_vl": {
        "model_type": "qwen2_vl", "text_config": {"model_type": "qwen2_vl_text", **TEXT},
        "vision_config": {"embed_dim": 128, "num_heads": 4, "hidden_size": 128, "mlp_ratio": 2},
    },
    "qwen2_5_vl": {
        "model_type": "qwen2_5_vl", "text_config": {"model_type": "qwen2_5_vl_text", **TEXT},
        "vision_config": {
            "hidden_size": 128, "num_heads": 4, "out_hidden_size": 128, "intermediate_size": 256,
            "fullatt_block_indexes": [0, 1, 2, 3, 4, 5],
        },
    },
    "qwen3_vl": {
        "model_type": "qwen3_vl", "text_config": {"model_type": "qwen3_vl_text", **TEXT},
        "vision_config": {
            "hidden_size": 128, "num_heads": 4, "out_hidden_size": 128, "intermediate_size": 256, "patch_size": 16,
            "deepstack_visual_indexes": [0], "num_position_embeddings": 64,
        },
    },
}  # fmt: skip
DEPTH = {"qwen2_vl": "depth", "qwen2_5_vl": "depth", "qwen3_vl": "depth"}


def config_of(name: str, depth: int) -> dict[str, Any]:
    """The small config, in the words of a ``config.json``."""
    config = copy.deepcopy(CASES[name])
    config["vision_config"][DEPTH.get(config["model_type"], "num_hidden_layers")] = depth
    return config


def saved_bytes(config: dict[str, Any], half: bool) -> int:
    """Bytes of all tensors that autograd saves while images become features, without parameters."""
    import torch
    from transformers import AutoConfig, AutoModelForImageTextToText

    given = copy.deepcopy(config)
    made = AutoConfig.for_model(given.pop("model_type"), **given)
    model = AutoModelForImageTextToText.from_config(made, attn_implementation="eager").train()
    if half:
        model = model.bfloat16()
    patch = made.vision_config.patch_size
    with packed((*model.parameters(), *model.buffers())) as kept:
        if config["model_type"].startswith("qwen"):
            pixels = torch.randn(IMAGES * SIDE * SIDE, 3 * 2 * patch * patch)
            grid = torch.tensor([[1, SIDE, SIDE]] * IMAGES)
            features = model.model.get_image_features(pixels, grid)
        else:
            features = model.model.get_image_features(torch.randn(IMAGES, 3, SIDE * patch, SIDE * patch))
        if config["model_type"].startswith("llava"):
            features.hidden_states = None  # the last layer's result, which nobody takes, goes with it
            features.last_hidden_state = None
    return sum(tensor.untyped_storage().nbytes() for tensor in kept.values())


def tape_bytes(config: dict[str, Any], half: bool) -> tuple[int, int]:
    """What lintfit's tapes of one layer, and of the embedding and projector, keep."""
    facts = models.from_config(config)
    assert facts.vision is not None
    item = 2 if half else 4
    recipe = Recipe(item, False, attention="eager")
    seq = SIDE * SIDE + style(facts).classes

    def part(name: str) -> int:
        found = form(facts, recipe, name, stream=item, flows=name != "stem", watched=False, batched=IMAGES > 1)
        return int(live(found.passed.saved, found.table.sizes(IMAGES, seq)).activations)

    tables = 2 * 4 * IMAGES * seq * (facts.vision.hidden // facts.vision.heads) if style(facts).fused else 0
    return part("block"), tables + part("stem") + part("merge") + (
        part("inner_merge") if "qwen3" in facts.model_type else 0
    )


def main() -> int:
    names = sys.argv[1:] or list(CASES)
    print("| tower | dtype | layer, bytes | lintfit | rest, bytes | lintfit |")
    print("| --- | --- | --: | --: | --: | --: |")
    for name in names:
        for half in (False, True):
            two, four = (saved_bytes(config_of(name, depth), half) for depth in (2, 4))
            layer = (four - two) // 2
            ours, rest = tape_bytes(config_of(name, 2), half)
            left = two - 2 * layer
            cells = [name, "bf16" if half else "fp32", layer, f"{ours} ({ours / layer - 1:+.2%})"]
            cells += [left, f"{rest} ({rest / left - 1:+.2%})"]
            print(f"| {' | '.join(map(str, cells))} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
