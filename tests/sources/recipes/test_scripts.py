"""Scripts of front ends that are started by their path."""

from __future__ import annotations

import pytest

from lintfit.sources.recipes.scripts import of_script

FLAGS = ("stage", "model_name_or_path", "template", "output_dir", "per_device_train_batch_size", "bf16", "local_rank")


@pytest.mark.parametrize(
    ("flags", "text", "known"),
    [
        (FLAGS, None, True),
        ((*FLAGS, "finetunning_type"), None, True),  # a slip
        ((*FLAGS, "lr_scheduler", "no_tf32", "lora_bf16_mode"), None, True),  # short, negated, of an older release
        ((*FLAGS, "sequence_parallel_size"), None, False),  # a fork's, which is not at hand
        ((*FLAGS, "hop", "kge_model_path"), None, False),
        ((*FLAGS, "hop", "kge_model_path"), "from llamafactory.train.tuner import run_exp", True),
        (("model_name_or_path", "output_dir"), None, False),
        (FLAGS, "from mine import main", False),
    ],
)
def test_a_script_of_llama_factory_is_known_by_its_text_else_by_its_flags(
    flags: tuple[str, ...], text: str | None, known: bool
) -> None:
    assert of_script("src/train.py", flags, text) == (("llamafactory", "train") if known else None)


@pytest.mark.parametrize(("more", "known"), [((), True), (("lora_rnak",), True), (("vision_tower_rank",), False)])
def test_a_script_of_swift_is_known_by_its_flags(more: tuple[str, ...], known: bool) -> None:
    flags = ("model_type", "sft_type", "dataset", "lora_rank", *more)
    assert of_script("swift/cli/sft.py", flags, None) == (("swift", "sft") if known else None)
