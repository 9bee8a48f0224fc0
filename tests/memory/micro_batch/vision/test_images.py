"""How many pictures a model makes of its images, and what freezing and classes for text leave of it."""

from __future__ import annotations

from typing import Any

import pytest

from lintfit.catalog.models import ids, lookup
from lintfit.catalog.text_only import text_only
from lintfit.memory import estimate
from lintfit.memory.micro_batch.vision.images import patches, tiles, with_room, without_images
from lintfit.memory.reading.contradictions import SpecError
from lintfit.memory.reading.parse import spec_from_mapping
from lintfit.memory.result import Verdict
from lintfit.memory.spec import Spec
from lintfit.memory.tensors.parameters import inventory

GEMMA = "google/gemma-3-4b-it"


def _spec(model: str, **more: Any) -> Spec:
    base = {"model": model, "weights_dtype": "bf16", "micro_batch_size": 1, "gradient_checkpointing": True, "images": 1}
    return spec_from_mapping({**base, "versions": {"transformers": "5.23.0"}, **more})


@pytest.mark.parametrize(
    ("model", "seq_len", "expected"),
    [
        (GEMMA, 2048, (1, 4096)),
        ("google/paligemma-3b-pt-448", 2048, (1, 1024)),
        ("microsoft/Phi-4-multimodal-instruct", 4096, (16, 1024)),
        ("OpenGVLab/InternVL3-2B-hf", 8192, (13, 1024)),
        ("OpenGVLab/InternVL3-2B-hf", 2048, (8, 1024)),
        ("OpenGVLab/InternVL3-2B-hf", 128, (1, 1024)),
        ("HuggingFaceTB/SmolVLM-Instruct", 8192, (17, 729)),
        ("CohereLabs/aya-vision-8b", 8192, (13, 676)),
        ("LiquidAI/LFM2-VL-450M", 8192, (10, 1024)),
        ("LiquidAI/LFM2-VL-1.6B", 8192, (11, 1024)),
        ("HuggingFaceM4/idefics2-8b", 2048, (5, 4900)),
        ("llava-hf/llava-onevision-qwen2-7b-ov-hf", 4096, (5, 729)),
        ("llava-hf/llava-onevision-qwen2-7b-ov-hf", 8192, (37, 729)),
        ("meta-llama/Llama-3.2-11B-Vision-Instruct", 4096, (4, 1600)),
        ("mistral-community/pixtral-12b", 2048, (1, 2048)),
        ("mistral-community/pixtral-12b", 8192, (1, 4096)),
        ("Qwen/Qwen3-VL-4B-Instruct", 2048, (1, 8192)),
        ("zai-org/GLM-4.1V-9B-Thinking", 2048, (1, 8192)),
        ("zai-org/GLM-OCR", 2048, (1, 8192)),
        ("zai-org/GLM-4.5V", 16384, (1, 30_000)),
    ],
)
def test_one_image(model: str, seq_len: int, expected: tuple[int, int]) -> None:
    """As the processors cut and resize it, as far as the sequence has room for its tokens."""
    spec = _spec(model, seq_len=seq_len)
    assert (tiles(spec), patches(spec)) == expected


def test_an_image_of_gemma_3_brings_a_mask_for_every_layer() -> None:
    """SDPA makes an additive mask in every layer, and repeats keys and values: the kernel for masks knows no groups."""
    short = {"seq_len": 512, "micro_batch_size": 2, "frozen_modules": ["vision_tower", "multi_modal_projector"]}
    saved = [_activations(images=images, **short) for images in (0, 1)]
    grouped, pixels = 34 * 2 * 2 * 512 * (8 - 4) * 256 * 2, 2 * 3 * 896**2 * 4
    masks = 34 * 2 * 512**2 * 2
    assert saved[1] - saved[0] == pytest.approx(grouped + masks + pixels, rel=0.01)
    flash = [_activations(images=images, attention="flash_attention_2", **short) for images in (0, 1)]
    assert flash[1] - flash[0] == pixels, "FlashAttention takes no such mask"


def _activations(**more: Any) -> int:
    guess = estimate(_spec(GEMMA, gradient_checkpointing=False, **more))
    return next(moment for moment in guess.moments if moment.name == "loss, backward").components["activations"]


def test_a_frozen_encoder_has_neither_gradients_nor_a_graph() -> None:
    whole, frozen = (inventory(_spec(GEMMA, **more)) for more in ({}, {"frozen_modules": ["vision_tower"]}))
    facts = lookup(GEMMA)
    assert facts is not None
    tower = sum(tensor.total for tensor in facts.tensors if ".vision_tower." in f".{tensor.name}")
    layer = 4 * (1152 + 1) * 1152 + (1152 + 1) * 4304 + (4304 + 1) * 1152 + 2 * 2 * 1152
    embeddings, norm = (3 * 14**2 + 1) * 1152 + (896 // 14) ** 2 * 1152, 2 * 1152
    assert whole.trainable - frozen.trainable == tower == embeddings + 27 * layer + norm
    kept = [_activations(**more) for more in ({}, {"frozen_modules": ["vision_tower"]})]
    assert kept[0] - kept[1] > 27 * 4096 * 1152 * 2 * 10


def test_what_is_frozen_must_be_there() -> None:
    with pytest.raises(SpecError, match=r"^frozen_modules: 'vision_twoer' names nothing of the model"):
        _spec(GEMMA, frozen_modules=["vision_twoer"])


def test_the_language_model_alone_is_the_one_that_stands_alone() -> None:
    facts = lookup(GEMMA)
    assert facts is not None
    text = text_only(facts)
    assert text.model_type == "gemma3_text" and text.vision is None
    assert text.parameters == facts.parameters - sum(t.total for t in facts.tensors if t.where == "vision")
    assert {tensor.name for tensor in text.tensors} >= {"model.embed_tokens.weight", "model.norm.weight"}
    llama = lookup("meta-llama/Llama-2-7b-hf")
    assert llama is not None and text_only(llama) is llama


@pytest.mark.parametrize(
    "model", ["openbmb/MiniCPM-V-2_6", "openbmb/MiniCPM-Llama3-V-2_5", "microsoft/Phi-4-multimodal-instruct"]
)
def test_what_nobody_has_measured_is_said_and_bounded_widely(model: str) -> None:
    guess = estimate(_spec(model))
    assert any("measured by nobody" in note for note in guess.assumptions)
    text = estimate(_spec(model, images=0))
    assert guess.peak.low <= text.peak.low < guess.peak.likely < guess.peak.high


def test_a_vision_model_is_never_said_to_fit_on_its_text_alone() -> None:
    """Where nobody says that there are no images, the GPU has to have room for one a sequence."""
    for model in ids():
        facts = lookup(model)
        if facts is None or facts.vision is None or facts.parameters > 40e9:
            continue
        unsaid, one = (
            spec_from_mapping({"model": model, "gpu_memory_gib": 1000, **more}) for more in ({}, {"images": 1})
        )
        assert estimate(unsaid).peak.high >= estimate(one).peak.high * 0.999, model


def test_an_assumed_length_has_room_for_images_of_a_stated_size() -> None:
    model = "Qwen/Qwen2-VL-7B-Instruct"
    text, small, large = (
        spec_from_mapping({"model": model, **more})
        for more in ({}, *({"images": 2, "image_max_pixels": pixels} for pixels in (602_112, 12_845_056)))
    )
    assert small.seq_len == text.seq_len + 2 * 768
    assert large.seq_len == text.seq_len + 2 * 16_384
    assert without_images(large).seq_len == text.seq_len
    assert with_room(small, {"image_max_pixels": 12_845_056})["seq_len"] == large.seq_len
    assert with_room(small, {"micro_batch_size": 2}) == {"micro_batch_size": 2}
    stated = spec_from_mapping({"model": model, "seq_len": 1024, "images": 1, "image_max_pixels": 602_112})
    assert stated.seq_len == 1024


def test_images_of_no_stated_size_may_be_larger_than_an_assumed_length() -> None:
    unsaid, stated = (
        spec_from_mapping({"model": "Qwen/Qwen2-VL-7B-Instruct", "images": 1, **more})
        for more in ({}, {"seq_len": 2048})
    )
    assert estimate(unsaid).peak.high > 3 * estimate(stated).peak.high


def test_an_unknown_vision_model_is_not_said_to_fit_by_its_text() -> None:
    config = {
        "model_type": "brand_new_vl",
        "text_config": {
            "model_type": "llama", "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16,
            "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256,
        },
        "vision_config": {"hidden_size": 1152},
    }  # fmt: skip
    base = {"model_config": config, "micro_batch_size": 1, "weights_dtype": "bf16"}
    guess = estimate(spec_from_mapping({**base, "gpu_memory_gib": 24}))
    assert guess.verdict is not Verdict.FITS
    assert guess.peak.high >= 2 * guess.allocated_bytes
