"""GLM 5: DeepSeek V3.2's attention and experts, with an indexer that layers may share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures import deepseek_v32
from lintfit.catalog.architectures._blocks import Shape
from lintfit.catalog.config import LARGEST, Config
from lintfit.catalog.config_defaults import defaults
from lintfit.frozen import replace

DEFAULTS = defaults("glm_moe_dsa")
PATTERN = {"F": "full", "S": "shared"}


def normalised(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """``GlmMoeDsaConfig.__post_init__``: which layers have an indexer, one by one."""
    pattern = given.get("index_topk_pattern")
    if isinstance(given.get("indexer_types"), list):
        return given
    if isinstance(pattern, str):
        return {**given, "indexer_types": [PATTERN.get(letter, letter) for letter in pattern]}
    if isinstance(pattern, list):
        return {**given, "indexer_types": pattern}
    layers = given.get("num_hidden_layers", DEFAULTS["num_hidden_layers"])
    every, offset = given.get("index_topk_freq", 1), given.get("index_skip_topk_offset", 2)
    counted = all(isinstance(count, int) and 0 <= count <= LARGEST["layers"] for count in (layers, every, offset))
    if not counted:
        return given
    steps = [max(index - offset + 1, 0) % max(every, 1) for index in range(layers)]
    return {**given, "indexer_types": ["shared" if step else "full" for step in steps]}


def shape(config: Config) -> Shape:
    """V3.2's numbers; ``indexer_types`` says which layers choose tokens, the first among them."""
    numbers, kinds = deepseek_v32.shape(config), config.strings("indexer_types")
    if kinds and (len(kinds) != numbers.layers or kinds[0] != "full" or not {*kinds} <= {*PATTERN.values()}):
        what = f'must say "full" or "shared" for each of the {numbers.layers} layers, "full" for the first'
        raise config.error("indexer_types", what)
    return numbers


ROW = replace(deepseek_v32.ROW, about="Indexers that layers share", normalised=normalised, numbers=shape)
