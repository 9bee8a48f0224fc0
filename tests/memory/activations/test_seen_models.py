"""Steps and evaluations of small models with images, against torch's own count."""

from __future__ import annotations

import pytest

from tests.memory.activations.seeing import counted_step, evaluated
from tests.memory.activations.seen import MODELS

STEPS = [(name, *row) for name, model in MODELS.items() for row in model.steps]
EVALUATIONS = [(name, *row) for name, model in MODELS.items() for row in model.evaluations]
FROZEN = [(name, *row) for name, model in MODELS.items() for row in model.frozen]


@pytest.mark.parametrize(("name", "way", "images", "frozen", "counted"), FROZEN)
def test_a_step_over_frozen_parts(name: str, way: str, images: int, frozen: str, counted: float) -> None:
    model = MODELS[name]
    beside = {
        **model.beside,
        "images": images,
        "frozen_modules": [*model.beside.get("frozen_modules", ()), *frozen.split()],
    }
    found = counted_step(model.config, model.batch, model.seq, way, beside)
    assert found == pytest.approx(counted, rel=0.0005)


@pytest.mark.parametrize(("name", "way", "images", "counted"), STEPS)
def test_a_step(name: str, way: str, images: int, counted: float) -> None:
    model = MODELS[name]
    found = counted_step(model.config, model.batch, model.seq, way, {**model.beside, "images": images})
    assert found == pytest.approx(counted, rel=0.0005)


@pytest.mark.parametrize(("name", "way", "images", "counted"), EVALUATIONS)
def test_an_evaluation(name: str, way: str, images: int, counted: float) -> None:
    model = MODELS[name]
    found = evaluated(model.config, model.batch, model.seq, way, {**model.beside, "images": images})
    assert found == pytest.approx(counted, rel=0.0005)
