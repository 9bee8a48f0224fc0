"""Launches that are only shown: what is said of them is information, and no plan is made."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import lintfit

SCRIPT = '''\
"""
accelerate launch --multi_gpu --num_processes 8 {path} --output_dir out --bf16 True
"""
from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments

(args,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B", torch_dtype="bfloat16")
Trainer(model=model, args=args, train_dataset=data).train()
'''
PAGE = "# Examples\n\n```bash\nllamafactory-cli train examples/full.yaml\n```\n"
RECIPE = """\
model_name_or_path: meta-llama/Meta-Llama-3-8B
stage: sft
do_train: true
finetuning_type: full
dataset: identity
template: llama3
output_dir: out
per_device_train_batch_size: 1
bf16: true
"""


def severities(folder: Path, *named: str, gpus: int = 8) -> set[str]:
    """Of the findings that a run does not fit."""
    found = lintfit("check", *named, "--gpu", "3090", "--gpus", str(gpus), "--output-format", "json", cwd=folder).json
    assert [run["verdict"] for run in found["runs"]] == ["does-not-fit"]
    return {each["severity"] for each in found["findings"] if each["rule"] == "does-not-fit"}


def write(folder: Path, files: dict[str, str], git: bool = True) -> None:
    if git:
        (folder / ".git").mkdir()
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


@pytest.mark.parametrize("git", [True, False])
def test_a_page_of_a_library_that_the_project_has_a_copy_of(git: bool, tmp_path: Path) -> None:
    files = {"README.md": PAGE, "examples/full.yaml": RECIPE, "setup.py": "", "src/llamafactory/__init__.py": ""}
    write(tmp_path, {f"LLaMA-Factory/{name}": text for name, text in files.items()}, git)
    assert severities(tmp_path, ".") == {"info"}
    assert severities(tmp_path, "LLaMA-Factory/README.md") == {"error"}


def test_examples_of_a_library_that_the_project_has_a_copy_of(tmp_path: Path) -> None:
    """Nobody of the project starts them; a launch of the project's own that does is another run."""
    recipe = f"{RECIPE}deepspeed: examples/ds.json\n"
    config = '{"zero_optimization": {"stage": 2}, "min_lr": 2}'
    files = {"examples/full.yaml": recipe, "examples/ds.json": config, "setup.py": "", "src/llamafactory/a.py": ""}
    write(tmp_path, {f"LLaMA-Factory/{name}": text for name, text in files.items()})
    found = lintfit("check", ".", "--gpu", "3090", "--gpus", "8", "--output-format", "json", cwd=tmp_path).json
    assert {each["severity"] for each in found["findings"]} == {"info"}
    assert [run["plan"] for run in found["runs"]] == [None]
    assert severities(tmp_path, "LLaMA-Factory/examples/full.yaml") != {"info"}
    (tmp_path / "run.sh").write_text("cd LLaMA-Factory\nllamafactory-cli train examples/full.yaml\n")
    found = lintfit("check", ".", "--gpu", "3090", "--gpus", "8", "--output-format", "json", cwd=tmp_path).json
    severity = {each["rule"]: each["severity"] for each in found["findings"]}
    assert severity["does-not-fit"] == "error" and severity["unknown-top-level-key"] == "warning"


def test_a_page_of_the_library_itself(tmp_path: Path) -> None:
    write(tmp_path, {"README.md": PAGE, "examples/full.yaml": RECIPE, "setup.py": "", "src/llamafactory/a.py": ""})
    assert severities(tmp_path, ".") == {"error"}


@pytest.mark.parametrize(
    ("path", "severity"),
    [
        ("src/open_r1/sft.py", "info"),
        ("sft.py", "warning"),
        ("training/sft.py", "warning"),
        ("/home/me/training/sft.py", "warning"),
    ],
)
def test_a_docstring_that_names_another_place(path: str, severity: str, tmp_path: Path) -> None:
    write(tmp_path, {"training/sft.py": SCRIPT.format(path=path)})
    assert severities(tmp_path, ".") == {severity}


@pytest.mark.parametrize(
    ("folder", "other", "severity"),
    [
        ("src/project/trl", "setup.py", "info"),
        ("trl", "train.py", "info"),
        ("trl", "setup.py", "warning"),
        ("src/trl", "pyproject.toml", "warning"),
        ("src/project/own", "setup.py", "warning"),
    ],
)
def test_a_docstring_in_a_package_that_was_copied(folder: str, other: str, severity: str, tmp_path: Path) -> None:
    script = SCRIPT.format(path=f"{Path(folder).name}/scripts/sft.py")
    write(tmp_path, {f"{folder}/__init__.py": "", f"{folder}/scripts/sft.py": script, other: ""})
    assert severities(tmp_path, ".") == {severity}
    assert severities(tmp_path, f"{folder}/scripts/sft.py") == {"warning"}


@pytest.mark.parametrize("folder", ["third_party/voice", "docs/99_archive/handoffs", "deprecated_runs"])
def test_a_launch_of_what_others_wrote_or_of_what_is_kept(tmp_path: Path, folder: str) -> None:
    files = {f"{folder}/run.sh": "torchrun --nproc_per_node 8 train.py\n", "setup.py": ""}
    write(tmp_path, files)
    found = lintfit("check", ".", "--output-format", "json", cwd=tmp_path).json["findings"]
    assert {each["severity"] for each in found if each["rule"] == "missing-file"} == {"info"}
    named = lintfit("check", f"{folder}/run.sh", "--output-format", "json", cwd=tmp_path).json["findings"]
    assert {each["severity"] for each in named if each["rule"] == "missing-file"} == {"error"}


FILLING = """\
import yaml

import constants

with open({name}) as file:
    config = yaml.safe_load(file)
config["{key}"] = model
yaml.dump(config, open("job.yaml", "w"))
"""
ALONE = """\
base_model: NousResearch/Meta-Llama-3-8B
datasets:
  - path: tatsu-lab/alpaca
    type: alpaca
micro_batch_size: 8
gradient_accumulation_steps: 1
sequence_len: 4096
learning_rate: 1.0e-5
optimizer: adamw_torch
bf16: true
wandb_run: mine
"""


@pytest.mark.parametrize(
    ("name", "key", "severity"),
    [
        ("constants.TEMPLATE", "base_model", "info"),
        ('"config/base.yml"', "base_model", "info"),
        ("constants.TEMPLATE", "run_name", "error"),
        ('"config/other.yml"', "base_model", "error"),
    ],
)
def test_a_recipe_that_a_script_fills_in(name: str, key: str, severity: str, tmp_path: Path) -> None:
    constants = 'FOLDER = "config/"\nTEMPLATE = FOLDER + "base.yml"\n' if name.startswith("constants") else ""
    jobs = FILLING.format(name=name, key=key)
    write(tmp_path, {"config/base.yml": ALONE, "constants.py": constants, "jobs.py": jobs})
    assert severities(tmp_path, ".", gpus=1) == {severity}
    plans = lintfit("check", ".", "--gpu", "3090", "--gpus", "8", "--output-format", "json", cwd=tmp_path).json["runs"]
    assert severity == "error" or plans[0]["plan"] is None


NO_PARSER = """\
import sys
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

names = {"big": "Qwen/Qwen2.5-7B"}
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B", torch_dtype="bfloat16")
Trainer(model=model, args=TrainingArguments("out", bf16=True), train_dataset=data).train()
"""


@pytest.mark.parametrize(
    ("folder", "flags", "parses", "severity"),
    [
        ("/home/me/other", "--bf16 True", False, "info"),
        ("/home/me/other", "--bf16 True --output_dir out", True, "error"),
        ("/home/me/other", "", False, "error"),
        ("/home/me/kit", "--bf16 True", False, "error"),
    ],
)
def test_a_script_of_that_name_in_a_folder_of_another_machine(
    folder: str, flags: str, parses: bool, severity: str, tmp_path: Path
) -> None:
    launch = f"cd {folder}\ntorchrun --nproc_per_node 8 train.py {flags}\n"
    script = SCRIPT.partition('"""\nfrom')[2] if parses else NO_PARSER
    write(tmp_path, {"kit/train.py": f"from{script}" if parses else script, "kit/run.sh": launch})
    assert severities(tmp_path, ".") == {severity}
