"""The range that a vision tower adds."""

from __future__ import annotations

from dataclasses import replace

from lintfit.catalog import models
from lintfit.memory.spec import Spec
from lintfit.memory.vision import tower_bytes


def _spec(model: str, **more: object) -> Spec:
    facts = models.lookup(model)
    assert facts is not None
    return Spec(facts, weights_dtype="bf16", micro_batch_size=2, **more)  # type: ignore[arg-type]


def test_llava_s_tower_has_a_patch_for_every_14_pixels() -> None:
    trained = _spec("llava-hf/llava-1.5-7b-hf")
    # CLIP ViT-L/14 at 336 pixels: 24 x 24 patches, 24 layers of 1024; 34 bytes each (Korthikanti et al., equation 1).
    assert tower_bytes(trained) == 2 * 24 * 24 * 1024 * 34 * 24
    checkpointed = replace(trained, gradient_checkpointing=True)
    assert tower_bytes(checkpointed) == 2 * 24 * 24 * 1024 * (34 + 2 * 24)
    frozen = replace(trained, method="lora", lora_targets=("no_such_layer",))
    assert tower_bytes(frozen) == 2 * 24 * 24 * 1024 * 34
    assert tower_bytes(replace(trained, weights_dtype="fp32")) == 2 * tower_bytes(trained)


def test_images_of_any_size_are_bounded_by_the_sequence() -> None:
    short, long = (_spec("Qwen/Qwen2-VL-7B-Instruct", seq_len=length) for length in (1024, 2048))
    assert 0 < tower_bytes(short) < tower_bytes(long)


def test_a_model_without_a_tower_adds_nothing() -> None:
    assert tower_bytes(_spec("Qwen/Qwen2.5-7B")) == 0
