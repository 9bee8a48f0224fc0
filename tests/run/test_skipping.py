"""Files that look like a part of a run and were not understood: each is listed with the reason, the others counted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lintfit.run.skipping import NO_CONFIG, NO_LAUNCH
from lintfit.sources.unread_code import NOT_REACHED
from tests.support import lintfit

VERL = "actor_rollout_ref:\n  model:\n    path: x/y\nalgorithm:\n  adv_estimator: grpo\n"
AUTOTRAIN = "task: llm-sft\nbase_model: x/y\nproject_name: p\nbackend: local\ndata:\n  path: d\n"
OUMI = "model:\n  model_name: x/y\ndata:\n  train: {}\ntraining:\n  trainer_type: TRL_SFT\n"
ARGUMENTS = '{"model_name_or_path": "x/y", "output_dir": "o", "per_device_train_batch_size": 4}'
OWN = "model:\n  model_name: x/y\ntrain:\n  lr: 1e-4\n  batch_size: 4\n  max_seq_len: 2048\n"
NEOX = '{\n  "pipe-parallel-size": 1,\n  "num-layers": 12,\n  "hidden-size": 768,\n}\n'
KUBERNETES = "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nspec:\n  args: torchrun --nproc_per_node 8 train.py\n"
COMPOSER = (
    "from composer import Trainer\n\n\ndef main():\n    Trainer(model=model).fit()\n\n\n"
    'if __name__ == "__main__":\n    main()\n'
)


def notebook(*cells: str, kind: str = "code") -> str:
    return json.dumps({"cells": [{"cell_type": kind, "source": cell.splitlines(True)} for cell in cells]})


TRAINS = notebook("from trl import SFTTrainer", "def train(trainer):\n    trainer.train()")
HETEROGENEOUS = "sbatch <<EOF\n#!/bin/bash\nsrun $LAUNCH\nEOF\nLAUNCH='torchrun --nproc_per_node 8 train.py'\n"

LOOKS = {
    "recipe.yaml": (VERL, "a verl config, which is not read yet"),
    "autotrain.yml": (AUTOTRAIN, "an AutoTrain recipe, which is not read yet"),
    "tune.yaml": (OUMI, "an Oumi recipe, which is not read yet"),
    "args.json": (ARGUMENTS, "arguments of a training script (transformers, TRL), and no launch line"),
    "own.yaml": (OWN, "a recipe of an unknown front end, and no launch line"),
    "neox.yml": (NEOX, "a GPT-NeoX or Megatron config, which is not read yet"),
    "job.yaml": (KUBERNETES, "a Kubernetes job that launches a training"),
    "fit.py": (COMPOSER, "a training script of Composer, which lintfit does not follow"),
    "train.ipynb": (TRAINS, "a notebook that looks like one that trains, in which no training could be followed"),
}

UNRELATED = {
    "mkdocs.yml": "site_name: x\nnav: []\ntheme: material\n",
    ".gitlab-ci.yml": "test:\n  script:\n    - torchrun --nproc_per_node 1 test.py\n",
    ".github/workflows/ci.yml": "on: push\njobs:\n  t:\n    steps:\n      - run: pip install deepspeed\n",
    "merge.yaml": "base_model: x/y\nmerge_method: slerp\ndatasets: []\nadapter: a\n",
    "export.yaml": "model_name_or_path: x/y\nfinetuning_type: lora\ntemplate: llama3\nexport_dir: out\n",
    "data.json": '[{"instruction": "a", "learning_rate": 3, "model_name": "x", "epochs": 2}]',
    "config.json": '{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "bf16": true, "fp16": false}',
    "trainer_state.json": '{"log_history": [], "global_step": 3, "max_steps": 3, "num_train_epochs": 1}',
    "package.json": '{"name": "x", "dependencies": {}}',
    "image.yaml": "model: resnet50\nlr: 0.1\nbatch_size: 256\nepochs: 90\n",
    "plot.ipynb": notebook("import torch\nimport matplotlib"),
    "words.ipynb": notebook("from trl import SFTTrainer\ntrainer.train()", kind="markdown"),
    "setup.sh": "pip install deepspeed accelerate\necho torchrun train.py\n",
    "Makefile": "install:\n\tpip install deepspeed\n",
    "trainer.py": "import torch\nfrom transformers import Trainer\n\n\nclass Own(Trainer):\n    pass\n",
    "model.py": "from composer import Trainer\n\n\ndef train(model):\n    return Trainer(model).fit()\n",
    "README.md": "# x\n\nIt is started by torchrun.\n",
}


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")


def checked(folder: Path, *arguments: str) -> Any:
    return lintfit("check", *arguments, "--output-format", "json", cwd=folder).json


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    write(folder, {**{name: text for name, (text, _) in LOOKS.items()}, **UNRELATED})
    return folder


def test_a_search_lists_what_looks_like_a_run_and_counts_the_rest(project: Path) -> None:
    result = checked(project)
    found = {each["path"]: each["reason"] for each in result["skipped"]}
    assert sorted(found) == sorted(LOOKS)
    assert [name for name, (_, reason) in LOOKS.items() if not found[name].startswith(reason)] == []
    assert result["runs"] == result["findings"] == []
    assert result["summary"]["skipped"] == len(LOOKS)
    assert result["summary"]["files"] == len(LOOKS) + len(UNRELATED) - 1, "a search does not open a README"


def test_what_is_named_is_listed_as_well(project: Path) -> None:
    result = checked(project, *LOOKS)
    assert [each["path"] for each in result["skipped"]] == list(LOOKS)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("README.md", NO_LAUNCH),
        ("mkdocs.yml", NO_CONFIG),
        ("data.json", NO_CONFIG),
        ("plot.ipynb", "a notebook in which nothing that trains was found"),
        ("trainer.py", NOT_REACHED),
        ("model.py", NOT_REACHED),
    ],
)
def test_a_named_file_of_no_use_says_why(project: Path, name: str, reason: str) -> None:
    assert checked(project, name)["skipped"] == [{"path": name, "reason": reason}]
    found = checked(project, name, "--as-found")
    assert (found["skipped"], found["summary"]["files"]) == ([], 1)


@pytest.mark.parametrize("name", ["Makefile", "setup.sh"])
def test_a_script_of_a_kind_that_is_read_is_only_counted_where_it_launches_nothing(project: Path, name: str) -> None:
    shown = lintfit("check", name, cwd=project)
    assert (shown.status, shown.out) == (
        0,
        "Nothing was judged. 1 file read, no launch, script or config among them.\n",
    )


def test_an_empty_folder(tmp_path: Path) -> None:
    assert lintfit("check", cwd=tmp_path).out == "Nothing was judged. 0 files read, none skipped.\n"


def test_files_are_folded_by_reason(tmp_path: Path) -> None:
    write(tmp_path, dict.fromkeys(("recipe.yaml", "b.yaml"), VERL))
    shown = lintfit("check", "recipe.yaml", "b.yaml", cwd=tmp_path).out
    assert shown == (
        "2 files skipped: a verl config, which is not read yet: recipe.yaml, b.yaml\n\n"
        "Nothing was judged. 2 files read, 2 skipped.\n"
    )


def test_many_files_are_not_all_named(tmp_path: Path) -> None:
    write(tmp_path, {f"{index}.yaml": AUTOTRAIN for index in range(6)})
    shown = lintfit("check", cwd=tmp_path).out
    assert shown.startswith("6 files skipped: an AutoTrain recipe, which is not read yet: 0.yaml, 1.yaml, 2.yaml, …\n")


def test_a_launch_whose_script_is_no_training(tmp_path: Path) -> None:
    write(tmp_path, {"run.sh": "python main.py --config a.yaml\n", "go.sh": "python serve.py\n"})
    (only,) = checked(tmp_path, "run.sh", "go.sh")["skipped"]
    assert only == {"path": "run.sh", "reason": "it starts main.py, which was not found"}
    assert checked(tmp_path, ".")["skipped"] == []
    write(tmp_path, {"main.py": "print('hello')\n"})
    assert checked(tmp_path, "run.sh")["skipped"] == [
        {"path": "run.sh", "reason": "it starts main.py, in which nothing that trains was found"}
    ]


def test_a_launch_that_could_not_be_read(tmp_path: Path) -> None:
    write(tmp_path, {"run.sh": HETEROGENEOUS, "eval.sh": "torchrun --nproc_per_node 8 eval.py\n"})
    assert checked(tmp_path, ".")["skipped"] == [
        {"path": "run.sh", "reason": "it names `torchrun`, and no launch line of it could be read"}
    ]


def test_what_a_run_reads_is_not_skipped(tmp_path: Path) -> None:
    script = (
        "from trl import ModelConfig, SFTConfig, SFTTrainer, TrlParser\n"
        "args, model_args = TrlParser((SFTConfig, ModelConfig)).parse_args_and_config()\n"
        "SFTTrainer(model=model_args.model_name_or_path, args=args, train_dataset=data).train()\n"
    )
    recipe = "model_name_or_path: Qwen/Qwen2.5-0.5B\noutput_dir: out\nbf16: true\nlearning_rate: 1e-5\n"
    write(
        tmp_path, {"train.py": script, "a.yaml": recipe, "b.yaml": recipe, "run.sh": "python train.py --config a.yaml"}
    )
    assert [each["path"] for each in checked(tmp_path, ".")["skipped"]] == ["b.yaml"]


def test_a_search_obeys_exclude_where_names_count_as_found(tmp_path: Path) -> None:
    write(tmp_path, {"old/recipe.yaml": AUTOTRAIN, "lintfit.toml": 'exclude = ["old"]\n'})
    assert len(checked(tmp_path, "old/recipe.yaml")["skipped"]) == 1
    assert checked(tmp_path, "old/recipe.yaml", "--as-found")["summary"]["files"] == 0
    gone = lintfit("check", "gone.yaml", "--as-found", cwd=tmp_path)
    assert (gone.status, gone.err) == (2, "lintfit: gone.yaml: no such file\n")


@pytest.mark.parametrize(
    ("flags", "config", "status"),
    [
        ((), "", 0),
        (("--fail-on", "unknown"), "", 1),
        ((), 'fail-on = "unknown"\n', 1),
        (("--fail-on", "warning"), 'fail-on = "unknown"\n', 0),
        (("--fail-on", "unknown", "--exit-zero"), "", 0),
    ],
)
@pytest.mark.parametrize(
    "files", [{"a.yaml": AUTOTRAIN}, {"run.sh": "swift sft --model Qwen/Qwen2.5-7B\n"}], ids=["skipped", "unknown"]
)
def test_fail_on_unknown(
    files: dict[str, str], flags: tuple[str, ...], config: str, status: int, tmp_path: Path
) -> None:
    write(tmp_path, {**files, "lintfit.toml": config})
    assert lintfit("check", ".", *flags, cwd=tmp_path).status == status


def test_fail_on_unknown_is_content_where_nothing_is_open(tmp_path: Path) -> None:
    write(tmp_path, {"README.md": "x", "mkdocs.yml": "site_name: x\n"})
    assert lintfit("check", ".", "--fail-on", "unknown", cwd=tmp_path).status == 0


@pytest.mark.parametrize("form", ["text", "concise", "github", "markdown", "github-review", "junit", "sarif"])
def test_no_format_says_that_it_passed(form: str, tmp_path: Path) -> None:
    write(tmp_path, {"recipe.yaml": VERL})
    shown = lintfit("check", "recipe.yaml", "--output-format", form, cwd=tmp_path).out
    assert "passed" not in shown
    assert "recipe.yaml" in shown
    assert "verl config" in shown


def test_names_are_no_markup(tmp_path: Path) -> None:
    write(tmp_path, {"a|b_<i>_.yaml": VERL})
    shown = lintfit("check", ".", "--output-format", "markdown", cwd=tmp_path).out
    assert r"- skipped: a\|b\_\<i\>\_.yaml: a verl config" in shown


POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:9e57d60e\nsize 502\n"


@pytest.mark.parametrize(
    ("pointer", "lacks"),
    [
        ("ds.json", "the DeepSpeed config (ds.json, which cannot be read: only a Git LFS pointer"),
        ("train.py", "the script that is launched (train.py, which cannot be read: only a Git LFS pointer"),
    ],
)
def test_a_file_that_git_lfs_has_not_brought_is_said_to_be_none(pointer: str, lacks: str, tmp_path: Path) -> None:
    script = (
        "from transformers import AutoModelForCausalLM, Trainer, TrainingArguments\n"
        "model = AutoModelForCausalLM.from_pretrained('meta-llama/Llama-2-7b-hf')\n"
        "Trainer(model=model, args=TrainingArguments('out', deepspeed='ds.json'), train_dataset=data()).train()\n"
    )
    config = '{"zero_optimization": {"stage": 2}, "train_micro_batch_size_per_gpu": 1}'
    write(tmp_path, {"ds.json": config, "train.py": script, "run.sh": "deepspeed --num_gpus 4 train.py\n"})
    write(tmp_path, {pointer: POINTER, "notes.ipynb": POINTER, "data/train.json": POINTER})
    result = checked(tmp_path, "--gpu", "3090")
    (run,) = [run for run in result["runs"] if run["id"].startswith("run.sh")]
    assert run["verdict"] == "unknown" and any(reason.startswith(lacks) for reason in run["unknown"])
    assert {each["rule"] for each in result["findings"]} <= {"memory-unknown"}
    assert {each["path"] for each in result["skipped"]} == {"notes.ipynb", pointer} - {"ds.json"}
