"""Commands of job files, with what they see and what is asked for beside them."""

from __future__ import annotations

from pathlib import Path

import pytest

from lintfit.documents.jobs.kinds import kind_of_job
from lintfit.documents.model import FileText
from lintfit.documents.shell_document import Command, ShellDocument
from lintfit.documents.shell_reader import read_shell


def job(name: str, text: str) -> ShellDocument:
    return read_shell(FileText(Path(name), text))


def only(name: str, text: str) -> Command:
    (command,) = job(name, text).commands
    return command


def said(command: Command) -> str:
    return " ".join(word.text for word in command.words)


def asked(command: Command) -> dict[str, str]:
    return {name: text for name, (text, _) in command.batch.items()}


SKY = """resources:
  accelerators: A100-80GB:8
num_nodes: 2
envs: {BATCH: 4}
run: |
  torchrun --nproc_per_node=$SKYPILOT_NUM_GPUS_PER_NODE --nnodes=$SKYPILOT_NUM_NODES train.py --batch $BATCH
"""


def test_skypilot() -> None:
    command = only("a/task.yaml", SKY)
    values = [word.value for word in command.words]
    assert values == ["torchrun", "--nproc_per_node=8", "--nnodes=2", "train.py", "--out", None]


def test_ray() -> None:
    text = "apiVersion: ray.io/v1\nkind: RayJob\nspec:\n  entrypoint: python train.py --lr 1\n"
    assert said(only("ray.yaml", text)) == "python train.py --lr 1"


def test_just_and_task() -> None:
    text = 'n := "2"\n\ntrain lr="1e-5":\n    @torchrun --nproc_per_node={{n}} train.py --lr {{ lr }} --m {{unknown}}\n'
    values = [word.value for word in only("justfile", text).words]
    assert values == ["torchrun", "--nproc_per_node=2", "train.py", "--lr", "1e-5", "--m", None]
    text = "vars: {N: 2}\ntasks:\n  train:\n    cmds:\n      - torchrun --nproc_per_node={{.N}} train.py\n"
    assert [word.value for word in only("Taskfile.yml", text).words] == ["torchrun", "--nproc_per_node=2", "train.py"]


def test_vscode() -> None:
    text = (
        '{"configurations": [{"type": "debugpy", "request": "launch", "program": "${workspaceFolder}/train.py", // x\n'
        '"args": ["--lr", "1"], "env": {"CUDA_VISIBLE_DEVICES": "0"}}, {"type": "cppdbg", "program": "a"},\n'
        '{"type": "python", "module": "torch.distributed.run", "args": ["train.py"]}]}'
    )
    document = job(".vscode/launch.json", text)
    assert [said(command) for command in document.commands] == [
        "python train.py --lr 1",
        "python -m torch.distributed.run train.py",
    ]
    assert document.commands[0].environment["CUDA_VISIBLE_DEVICES"].value == "0"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("config.yaml", "run: python is nice\nmodel: a\n"),
        ("recipe.yaml", "base_model: a\ndatasets: []\n"),
        ("values.yaml", "command: python\n"),
        ("train.py", "import torch\n"),
        ("launch.json", '{"configurations": []}'),
    ],
)
def test_other_files_are_none(name: str, text: str) -> None:
    assert kind_of_job(Path(name), text) is None


@pytest.mark.parametrize(
    "text", ["run: |\nresources: [", "run: 5\nresources: {}\n# python\n", "run: python\nresources: 3\n"]
)
def test_bad_files_give_no_command(text: str) -> None:
    assert all(word.value != "x" for command in job("t.yaml", text).commands for word in command.words)
