"""A spec that cannot be estimated gives one line that says why, whatever is in it; never a traceback."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lintfit.catalog import architectures
from lintfit.catalog.config import CatalogError
from lintfit.catalog.models import config_of, from_config, ids
from lintfit.commands import specs
from lintfit.commands.specs import estimate_mapping
from lintfit.memory.reading.keys import READERS
from tests.catalog.small import SEEING

NESTED: list[Any] = []
for _ in range(900):
    NESTED = [NESTED]
ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 3, 0.5, -0.0, 1e308, float("nan"), float("inf"), 10**30, 10**5000, "", " ", "8",
    "auto", "é\n\r", "\x00", "\u202e", "a" * 5000, [], [1], [None], NESTED, {}, {"a": 1}, {"": None}, [2, 1.5],
)  # fmt: skip
WHOLE: dict[str, dict[str, Any]] = {
    "single": {"model": "gpt2", "gpu": "A100"},
    "images": {"model": "Qwen/Qwen2.5-VL-7B-Instruct", "gpu": "A100", "images": 1},
    "grpo": {"model": "Qwen/Qwen2.5-0.5B", "gpu": "A100", "trainer": "grpo", "gpus": 4, "zero_stage": 3},
}


SMALL = {"num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 128, "vocab_size": 1000}


def _configs() -> dict[str, dict[str, Any]]:
    """A config of every model type: of the catalogue's, and of small models of the types that it has none of."""
    found: dict[str, dict[str, Any]] = {}
    for model in ids():
        config, _ = config_of(model)
        found.setdefault(config["model_type"], config)
    for kind, config in SEEING:
        found.setdefault(kind, {"model_type": kind, **config})
    for name in architectures.names():
        if name.replace("_", "-") not in found:
            defaults = architectures.known(name).defaults
            found.setdefault(name, {"model_type": name, "hidden_size": 64, **SMALL, **defaults})
    return found


CONFIGS = _configs()


def _answered(spec: dict[str, Any]) -> str:
    """The line that says why a spec has no estimate; one that has one is in order."""
    found = estimate_mapping(spec)
    assert specs.OWN_MISTAKE not in found.error
    assert "\n" not in found.error
    assert len(found.error) < 1000
    if found.estimate is not None:
        peak = found.estimate.peak
        assert 0 < peak.low <= peak.likely <= peak.high
    else:
        assert found.error
    return found.error


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(sorted(WHOLE)), st.dictionaries(st.sampled_from(sorted(READERS)), st.sampled_from(ODD)))
def test_odd_values_of_keys(base: str, odd: dict[str, Any]) -> None:
    _answered({**WHOLE[base], **odd})


@pytest.mark.parametrize("kind", sorted(CONFIGS))
def test_odd_values_in_a_config(kind: str) -> None:
    """Every key of a model type's config, and of its sections, with a few odd values."""
    rng = random.Random(kind)
    config = CONFIGS[kind]
    images = {"images": 1} if "vision_config" in config else {}
    for key, value in config.items():
        for odd in rng.sample(ODD, 3):
            _answered({"model_config": {**config, key: odd}, "gpu": "A100", **images})
        for inner in value if isinstance(value, dict) else ():
            changed = {**config, key: {**value, inner: rng.choice(ODD)}}
            _answered({"model_config": changed, "gpu": "A100", **images})


def test_the_configs_of_the_catalogue_are_in_order() -> None:
    assert len(CONFIGS) > 10
    for kind, config in CONFIGS.items():
        assert from_config(config).exact, kind


@pytest.mark.parametrize(
    ("kind", "section", "key", "value", "said"),
    [
        ("qwen2_vl", "vision_config", "embed_dim", 3, "embed_dim is 3, must be a multiple of the encoder's 16 heads"),
        ("qwen2_5_vl", "vision_config", "window_size", [], "window_size is [], must be a whole number"),
        ("gemma3", "vision_config", "model_type", ["x"], "model_type is ['x'], must be a string"),
        ("llava", "vision_config", "image_size", 3, "image_size is 3, must be no less than a patch (14)"),
        ("llava", "", "tie_word_embeddings", "yes", "tie_word_embeddings is 'yes', must be true or false"),
        ("llama", "", "hidden_act", 7, "hidden_act is 7, must be a string"),
        ("mpt", "", "no_bias", "x", "no_bias is 'x', must be true or false"),
        ("llama", "", "model_type", ["a" * 100], "model_type is ['aaaaaaaaaa"),
    ],
)
def test_a_config_says_what_is_wrong(kind: str, section: str, key: str, value: object, said: str) -> None:
    config = CONFIGS[kind]
    changed = {**config, section: {**config[section], key: value}} if section else {**config, key: value}
    with pytest.raises(CatalogError) as caught:
        from_config(changed, "c")
    assert said in str(caught.value)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"model": "gpt2", "": 1}, "'': unknown key"),
        ({"model": "gpt2", "a\nb": 1}, "'a\\nb': unknown key"),
        ({"model": "gpt2", "versions": {"a\nb": 1}}, "versions.'a\\nb': 1 must be a string"),
        ({"model": "Qwen/Qwen2-VL-7B-Instruct", "images": 300, "seq_len": 128}, "images: 300 need a token each"),
    ],
)
def test_odd_keys_and_too_many_images(spec: dict[str, Any], said: str) -> None:
    assert said in _answered(spec)


def test_a_version_with_thousands_of_digits_is_a_version() -> None:
    assert not _answered({"model": "gpt2", "versions": {"transformers": "9" * 5000}})


def test_a_mistake_of_our_own_is_a_line_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(mapping: object) -> None:
        raise ZeroDivisionError("of\nours")

    monkeypatch.setattr("lintfit.memory.reading.parse.spec_from_mapping", broken)
    found = estimate_mapping({"model": "gpt2"})
    assert found.error == f"{specs.OWN_MISTAKE} (ZeroDivisionError: 'of\\nours')"
    monkeypatch.setenv("LINTFIT_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        estimate_mapping({"model": "gpt2"})


def test_a_number_larger_than_any_float() -> None:
    assert "max_grad_norm" in _answered({"model": "gpt2", "gpu": "A100", "max_grad_norm": 10**400})
