"""How large a run's images may be: what the processor is told, by keyword, attribute or flag."""

from __future__ import annotations

import pytest

from lintfit.settings.model import UNKNOWN
from tests.sources.scripts import script, values

SCRIPT = """
from dataclasses import dataclass
from transformers import AutoProcessor, AutoVideoProcessor, HfArgumentParser, Trainer, TrainingArguments
from transformers import Qwen2_5_VLForConditionalGeneration as Model
model = Model.from_pretrained("{model}")
{text}
Trainer(model, TrainingArguments("out")).train()
"""
SECOND, THIRD = "Qwen/Qwen2.5-VL-7B-Instruct", "Qwen/Qwen3-VL-8B-Instruct"
LOAD = "processor = AutoProcessor.from_pretrained('m'{})\n"


def _bound(text: str, model: str = SECOND, **versions: str) -> object:
    return values(script(SCRIPT.format(model=model, text=text), versions=versions)).get("image_max_pixels")


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        (LOAD.format(", min_pixels=256*28*28, max_pixels=1280*28*28"), 1_003_520),
        (LOAD.format(", max_pixels=args.max_pixels"), UNKNOWN),
        (LOAD.format(", max_pixels=None"), None),
        (LOAD.format(""), None),
        (LOAD.format("") + "processor.image_processor.max_pixels = 200704", 200_704),
        (LOAD.format("") + "processor.image_processor.size = {'shortest_edge': 3136, 'longest_edge': 50176}", 50_176),
        (LOAD.format("") + "processor.image_processor.size['longest_edge'] = 50176", 50_176),
        (LOAD.format("") + "processor.video_processor.max_pixels = 200704", None),
        ("AutoVideoProcessor.from_pretrained('m', max_pixels=200704)", None),
        (LOAD.format(", max_pixels=50176") + "processor(text=t, images=i, max_pixels=200704)", 200_704),
        ("options.max_pixels = 200704", None),
        # a second processor that nobody bounds may be the one that the data go through
        (LOAD.format(", max_pixels=50176") + "b = AutoProcessor.from_pretrained('m', max_pixels=n)", UNKNOWN),
        (LOAD.format(", max_pixels=50176") + "b = AutoProcessor.from_pretrained('m')", UNKNOWN),
        (LOAD.format(", max_pixels=50176") + "b = AutoProcessor.from_pretrained('m', max_pixels=784)", 50_176),
    ],
)
def test_what_the_processor_is_told(text: str, bound: object) -> None:
    assert _bound(text) == bound


def test_a_size_does_not_beat_what_the_processor_is_published_with() -> None:
    text = LOAD.format(", size={'shortest_edge': 3136, 'longest_edge': 50176}")
    assert _bound(text) is None
    assert _bound(text, THIRD) == 50_176


def test_glm_s_processor_takes_no_max_pixels() -> None:
    assert _bound(LOAD.format(", max_pixels=200704"), "zai-org/GLM-4.1V-9B-Thinking") is None


@pytest.mark.parametrize(
    ("text", "model", "version", "bound"),
    [
        ("max_pixels = 50176", SECOND, "4.49.0", 50_176),
        ("max_pixels = 50176", THIRD, "4.57.1", None),
        ("size['longest_edge'] = 50176", SECOND, "4.57.1", None),
        ("size['longest_edge'] = 50176", THIRD, "4.57.1", 50_176),
    ],
)
def test_which_attribute_counts_differs_by_version(text: str, model: str, version: str, bound: int | None) -> None:
    assert _bound(f"{LOAD.format('')}processor.image_processor.{text}", model, transformers=version) == bound


def test_a_flag_is_taken_for_the_bound() -> None:
    text = """
@dataclass
class Data:
    image_max_pixels: int = 12845056
    min_pixels: int = 3136
data, = HfArgumentParser(Data).parse_args_into_dataclasses()
"""
    found = script(SCRIPT.format(model=SECOND, text=text), "--image_max_pixels 200704")
    setting = found.settings["image_max_pixels"]
    assert (setting.value, setting.provenance.kind) == (200_704, "assumed")
    few = script(SCRIPT.format(model=SECOND, text=text), "--image_max_pixels 256")
    assert "image_max_pixels" not in few.settings
