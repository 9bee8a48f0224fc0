"""Florence-2: Microsoft's own configs, and what is not known of its runs."""

from __future__ import annotations

import pytest

from lintfit.catalog import models
from lintfit.memory.reading.parse import spec_from_mapping
from lintfit.memory.verdict.undecided import undecided


@pytest.mark.parametrize("name", ["base", "large"])
def test_an_image_is_24_by_24_tokens_and_one_for_all(name: str) -> None:
    facts = models.lookup(f"microsoft/Florence-2-{name}")
    assert facts is not None and facts.vision is not None and facts.vision.tokens == 24 * 24 + 1


@pytest.mark.parametrize("more", [{}, {"images": 1}])
def test_what_its_halves_keep_is_not_known(more: dict[str, int]) -> None:
    run = {"model": "microsoft/Florence-2-base", "micro_batch_size": 1, "seq_len": 512, "gpu_memory_gib": 80, **more}
    assert any("decoder" in line for line in undecided(spec_from_mapping(run)))


def test_stages_are_told_of_every_list() -> None:
    config, _ = models.config_of("microsoft/Florence-2-base")
    vision = {**config["vision_config"], "num_heads": [4, 8]}
    with pytest.raises(models.CatalogError, match="one for every stage"):
        models.from_config({**config, "vision_config": vision})
