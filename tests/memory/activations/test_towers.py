"""What a layer of an image encoder saves, as closed forms; ``bench/saved_towers.py`` counts real ones."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lintfit.catalog import models
from lintfit.memory.activations.form import live
from lintfit.memory.activations.recipe import Lora, Recipe
from lintfit.memory.activations.towers import form
from lintfit.memory.activations.towers.order import window

POSITIONS = 4096


def _saved(model: str, recipe: Recipe, flows: bool = True) -> int:
    """Bytes a position that one layer keeps."""
    facts = models.lookup(model)
    assert facts is not None
    made = form(facts, recipe, "block", stream=recipe.weights, flows=flows, watched=False, batched=False)
    return live(made.passed.saved, made.table.sizes(1, POSITIONS)).activations // POSITIONS


Closed = Callable[[int, int, int], int]


@pytest.mark.parametrize(
    ("model", "closed"),
    [
        ("llava-hf/llava-1.5-7b-hf", lambda w, i, a: 16 * w + 16 + 4 * a + 6 * i),
        ("google/gemma-3-4b-it", lambda w, i, a: 16 * w + 16 + 4 * a + 4 * i),
        ("Qwen/Qwen2-VL-2B-Instruct", lambda w, i, a: 20 * w + 16 + 4 * a + 6 * i),
        ("Qwen/Qwen2.5-VL-3B-Instruct", lambda w, i, a: 28 * w + 8 + 4 * a + 8 * i),
        ("Qwen/Qwen2.5-Omni-7B", lambda w, i, a: 24 * w + 8 + 4 * a + 8 * i),
        ("zai-org/GLM-4.1V-9B-Thinking", lambda w, i, a: 28 * w + 8 + 4 * a + 8 * i),
        ("zai-org/GLM-OCR", lambda w, i, a: 40 * w + 8 + 12 * a + 8 * i),
        ("Qwen/Qwen3-VL-4B-Instruct", lambda w, i, a: 20 * w + 16 + 4 * a + 4 * i),
        ("OpenGVLab/InternVL3-8B-hf", lambda w, i, a: 20 * w + 16 + 4 * a + 4 * i),
        ("mistral-community/pixtral-12b", lambda w, i, a: 24 * w + 8 + 4 * a + 8 * i),
        ("HuggingFaceTB/SmolVLM-Instruct", lambda w, i, a: 16 * w + 16 + 4 * a + 4 * i),
    ],
)
def test_half_precision_with_flash(model: str, closed: Closed) -> None:
    facts = models.lookup(model)
    assert facts is not None and facts.vision is not None
    tower = facts.vision
    found = _saved(model, Recipe(2, False, attention="flash_attention_2"))
    assert found == closed(tower.hidden, tower.intermediate, tower.heads)


def test_sdpa_puts_the_images_of_a_batch_together() -> None:
    """What the projection takes is then a copy of what the kernel keeps."""
    model = "Qwen/Qwen2-VL-2B-Instruct"
    flash, sdpa = (_saved(model, Recipe(2, False, attention=kernel)) for kernel in ("flash_attention_2", "sdpa"))
    assert sdpa - flash == 2 * 1280


def test_adapters_keep_their_inputs_and_what_lies_above() -> None:
    lora = Recipe(2, False, frozen=True, lora=Lora(8, ("q_proj",), 2, dropout=False))
    model = "llava-hf/llava-1.5-7b-hf"
    first, later = (_saved(model, lora, flows) for flows in (False, True))
    assert 0 < first < later < _saved(model, Recipe(2, False))
    assert _saved(model, Recipe(2, False, frozen=True), flows=False) == 0


def test_windows_of_qwen_2_5() -> None:
    facts = models.lookup("Qwen/Qwen2.5-VL-7B-Instruct")
    assert facts is not None
    assert [window(facts, index) for index in (0, 7, 8, 31)] == [64, None, 64, None]
    other = models.lookup("Qwen/Qwen2-VL-2B-Instruct")
    assert other is not None and window(other, 0) is None
