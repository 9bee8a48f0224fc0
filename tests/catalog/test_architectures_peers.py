"""Every architecture against transformers' own model, built on the meta device: counts, names and shapes."""

from __future__ import annotations

import re
from collections import Counter
from importlib.util import find_spec
from typing import Any

import pytest

from lintfit.catalog import models
from lintfit.catalog.architectures import florence2
from tests.catalog.small import CASES

pytestmark = pytest.mark.peers

WITH_TIMM = ("gemma3n",)
"""Model types whose image encoder is timm's, which the peers' environment need not have."""
MASKED = (
    "albert",
    "bert",
    "camembert",
    "data2vec-text",
    "deberta-v2",
    "distilbert",
    "electra",
    "ernie",
    "esm",
    "eurobert",
    "modernbert",
    "mpnet",
    "roberta",
    "xlm-roberta",
)

LEFT_OUT: dict[str, dict[str, Any]] = {"chameleon": {"vocabulary_map": {"<image>": 5, "IMGIMGAZ": 6}}}
"""Keys that classes ask for and that the catalogue leaves out, because no parameter goes by them."""


def real_model(config: dict[str, Any]) -> Any:
    """transformers' own model on the meta device; None where it has no such class."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    auto = transformers.models.auto.modeling_auto
    config = config.get("thinker_config", config)  # what trains of Qwen 2.5 Omni
    model_type = config["model_type"]
    if model_type not in transformers.CONFIG_MAPPING or (model_type in WITH_TIMM and find_spec("timm") is None):
        return None
    config = {**LEFT_OUT.get(model_type, {}), **config}
    if model_type == "florence2":  # published with the keys of its own code, which transformers' conversion renames
        config = dict(florence2.normalised(config))
    tables = [auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES, auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES]
    tables.append(auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES)
    if model_type in MASKED:
        tables = [auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES]
    name = next(table[model_type] for table in tables if model_type in table)
    if config.get("architectures") == ["MllamaForCausalLM"]:
        name = "MllamaForCausalLM"
    chosen = getattr(transformers, name if isinstance(name, str) else name[0])
    with torch.device("meta"):
        return chosen._from_config(transformers.AutoConfig.for_model(**config))


def names_and_shapes(model: Any, known: set[str]) -> Counter[tuple[str, tuple[int, ...]]]:
    """How often each (name, shape) occurs; of a tied parameter's names the one that is ``known``."""
    names: dict[int, list[str]] = {}
    for name, value in model.named_parameters(remove_duplicate=False):
        names.setdefault(id(value), []).append(without_numbers(name))
    found: Counter[tuple[str, tuple[int, ...]]] = Counter()
    for value in model.parameters():
        own = names[id(value)]
        found[next((name for name in own if name in known), own[0]), tuple(value.shape)] += 1
    return found


def without_numbers(name: str) -> str:
    return re.sub(r"\.\d+(?=\.|$)", ".{}", name)


def check(name: str, config: dict[str, Any]) -> bool:
    """Compare one config; False where transformers has no class for it."""
    model = real_model(config)
    if model is None:
        return False
    facts = models.from_config(config, name)
    ours: Counter[tuple[str, tuple[int, ...]]] = Counter()
    for tensor in facts.tensors:
        ours[without_numbers(tensor.name), tensor.shape] += tensor.copies
    real = names_and_shapes(model, {name for name, _ in ours})
    assert ours - real == Counter(), name
    assert real - ours == Counter(), name
    assert facts.parameters == sum(value.numel() for value in model.parameters()), name
    return True


@pytest.mark.parametrize(
    ("model_type", "config"), CASES, ids=[f"{name}-{index}" for index, (name, _) in enumerate(CASES)]
)
def test_architectures(model_type: str, config: dict[str, Any]) -> None:
    assert check(model_type, {"model_type": model_type, **config})


@pytest.mark.slow
def test_every_model_of_the_catalogue_whose_class_transformers_has() -> None:
    seen: set[str] = set()
    compared = 0
    for model in models.ids():
        config, _ = models.config_of(model)
        shape = repr(sorted((key, repr(value)) for key, value in config.items() if key != "torch_dtype"))
        if shape not in seen:
            seen.add(shape)
            compared += check(model, config)
    assert compared > 250
