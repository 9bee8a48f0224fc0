"""Attention kernels by model type and version; the newest version against transformers' own classes."""

from __future__ import annotations

from typing import Any

import pytest

from lintfit.catalog import architectures
from lintfit.catalog.attention import has_flash, has_sdpa, runs_sdpa
from lintfit.catalog.models import code_of

HYPHENED = {
    "blip_2": "blip-2",
    "data2vec_text": "data2vec-text",
    "deberta_v2": "deberta-v2",
    "modernbert_decoder": "modernbert-decoder",
    "openai_gpt": "openai-gpt",
}
KINDS = sorted(HYPHENED.get(name, name) for name in architectures.names())
NEWEST = (5, 23)


@pytest.mark.parametrize(
    ("kind", "last_without", "first"),
    [("opt", (4, 45), (4, 46)), ("gpt2", (4, 41), (4, 42)), ("t5", (5, 14), (5, 15)), ("mistral", (4, 36), (4, 37))],
)
def test_sdpa_came_with_a_version(kind: str, last_without: tuple[int, int], first: tuple[int, int]) -> None:
    assert not has_sdpa(code_of(kind), last_without) and not runs_sdpa(code_of(kind), last_without)
    assert has_sdpa(code_of(kind), first) and runs_sdpa(code_of(kind), first)
    assert has_sdpa(code_of(kind))


def test_a_version_may_also_go_without() -> None:
    with_sdpa = {version for version in ((4, 47), (4, 48), (5, 20), (5, 21)) if has_sdpa(code_of("gemma2"), version)}
    assert with_sdpa == {(4, 47), (4, 48), (5, 20)}
    assert {version for version in with_sdpa if runs_sdpa(code_of("gemma2"), version)} == {(4, 48), (5, 20)}
    with_flash = [version for version in ((4, 51), (4, 52), (5, 22), (5, 23)) if has_flash(code_of("mllama"), version)]
    assert with_flash == [(4, 52), (5, 22)]


def test_what_never_had_it_and_what_always_had() -> None:
    assert not has_sdpa(code_of("bloom")) and not has_sdpa(code_of("gpt_oss"), NEWEST)
    assert has_sdpa(code_of("llama"), (4, 36)) and has_sdpa(code_of("a_model_of_tomorrow"), NEWEST)


@pytest.mark.peers
@pytest.mark.parametrize("kind", KINDS)
def test_the_newest_version_is_as_transformers_has_it(kind: str) -> None:
    transformers = pytest.importorskip("transformers")
    assert tuple(map(int, transformers.__version__.split(".")[:2])) == NEWEST
    classes = _classes(transformers, kind)
    if not classes:
        pytest.skip("its code lives beside its weights")
    for each in classes:
        assert each._supports_sdpa is has_sdpa(code_of(kind), NEWEST), each
        flash = each._supports_flash_attn and not each._compatible_flash_implementations
        assert flash is has_flash(code_of(kind), NEWEST), each


def _classes(transformers: Any, kind: str) -> list[Any]:
    """The models of this type that transformers' auto classes train."""
    tables = ("CAUSAL_LM", "IMAGE_TEXT_TO_TEXT", "SEQ_TO_SEQ_CAUSAL_LM", "MASKED_LM")
    auto = transformers.models.auto.modeling_auto
    named = [getattr(auto, f"MODEL_FOR_{table}_MAPPING_NAMES").get(kind) for table in tables]
    return [getattr(transformers, name) for name in named if isinstance(name, str)]


@pytest.mark.parametrize(
    ("kind", "version", "sdpa"),
    [
        ("llama", (4, 35), False),
        ("llama", (4, 36), True),
        ("a_model_of_tomorrow", (4, 30), False),
        ("falcon", (4, 33), True),
    ],
)
def test_no_class_chose_a_kernel_at_first(kind: str, version: tuple[int, int], sdpa: bool) -> None:
    assert runs_sdpa(code_of(kind), version) is sdpa
