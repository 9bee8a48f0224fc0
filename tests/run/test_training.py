"""What trains a run, whoever says it: a script or a recipe."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lintfit.commands.check import check
from lintfit.options.model import Options
from lintfit.run.engine_location import has_trainer, in_launcher_file
from lintfit.run.model import Run
from lintfit.run.write import write_one

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
UNREAD = "xtuner train sft.py"


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
    found = run(tmp_path, LAUNCHES[dialect])
    training = found.training
    assert training is not None
    assert has_trainer(found) is uses_trainer
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


YAML = "compute_environment: LOCAL_MACHINE\ndistributed_type: {engine}\nmixed_precision: bf16\nnum_processes: 4\n"
ZERO = "deepspeed_config:\n  zero_stage: 3\n"


def test_a_recipes_trainer_asks_for_deepspeed_itself(tmp_path: Path) -> None:
    (tmp_path / "ddp.yaml").write_text(YAML.format(engine="MULTI_GPU"))
    found = run(tmp_path, "trl sft --model_name_or_path Qwen/Qwen2.5-7B --accelerate_config ddp.yaml")
    assert found.accelerate is not None
    assert not in_launcher_file(found, "deepspeed") and in_launcher_file(found, "fsdp")


HANDED_OVER = {"zero_stage": 3, "offload_optimizer": "nvme", "offload_param": "none"}


def by_yaml(folder: Path) -> Run:
    (folder / "zero.yaml").write_text(YAML.format(engine="DEEPSPEED") + ZERO)
    return run(folder, "trl sft --model_name_or_path Qwen/Qwen2.5-7B --accelerate_config zero.yaml")


def test_a_json_beside_the_yaml_leaves_the_precision_to_a_recipes_trainer(tmp_path: Path) -> None:
    made, *_ = write_one(by_yaml(tmp_path), "deepspeed_config_file", HANDED_OVER) or ()
    assert json.loads(made.edit.text)["bf16"] == {"enabled": "auto"}


def test_a_recipes_trainer_that_says_no_precision_is_told_first(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("trl==0.12.0\n")  # bf16 is off by default
    (edit,) = write_one(by_yaml(tmp_path), "deepspeed_config_file", HANDED_OVER) or ()
    assert edit.edit.text == " --bf16 True"
