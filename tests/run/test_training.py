"""What trains a run, whoever says it: a script or a recipe."""

from __future__ import annotations

from pathlib import Path

import pytest

from lintfit.commands.check import check
from lintfit.options.model import Options
from lintfit.run.model import Run

SCRIPT = """
from transformers import AutoModelForCausalLM
from trl import SFTConfig, SFTTrainer

model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B")
SFTTrainer(model=model, args=SFTConfig(output_dir="out", fp16=True)).train()
"""
LAUNCHES = {
    "script": "torchrun --nproc_per_node 2 train.py",
    "trl": "trl sft --model_name_or_path Qwen/Qwen2.5-7B --fp16 --num_processes 2",
    "litgpt": "litgpt finetune_lora Qwen/Qwen2.5-7B --precision 16-mixed",
}
UNREAD = "axolotl train sft.yaml"


def run(folder: Path, launch: str) -> Run:
    (folder / "run.sh").write_text(launch + "\n")
    (folder / "train.py").write_text(SCRIPT)
    (found,) = check([folder / "run.sh"], Options(isolated=True)).runs
    return found.run


@pytest.mark.parametrize(
    ("dialect", "uses_trainer", "adjusts_all", "spelled"),
    [
        ("script", True, True, "fp16=True"),
        ("trl", True, False, "--fp16 true"),
        ("litgpt", False, False, "--precision 16-mixed"),
    ],
)
def test_a_script_and_recipes_answer_alike(
    tmp_path: Path, dialect: str, uses_trainer: bool, adjusts_all: bool, spelled: str
) -> None:
    training = run(tmp_path, LAUNCHES[dialect]).training
    assert training is not None
    assert (training.dialect, training.trains) == (dialect, True)
    assert (training.uses_trainer, training.uses_trl) == (uses_trainer, uses_trainer)
    assert (training.adjustable is None) is adjusts_all
    assert training.spelled("fp16", True) == spelled
    argument = training.argument("fp16")
    assert (argument.value if argument is not None else None) == (True if uses_trainer else None)


def test_where_arguments_are_made(tmp_path: Path) -> None:
    script, trl = (run(tmp_path, LAUNCHES[name]).training for name in ("script", "trl"))
    assert script is not None
    assert trl is not None
    place = script.arguments_place
    assert place is not None
    assert place.document.path.name == "train.py"
    assert trl.arguments_place is None


def test_a_front_end_has_no_word_for_what_it_cannot_do(tmp_path: Path) -> None:
    training = run(tmp_path, LAUNCHES["litgpt"]).training
    assert training is not None
    assert training.spelled("gradient_checkpointing", True) is None
    assert training.write_argument("gradient_checkpointing", True) is None


def test_what_is_not_read_trains_nothing_that_is_known(tmp_path: Path) -> None:
    assert run(tmp_path, UNREAD).training is None
