"""Commands of job files, with what they see and what is asked for beside them."""

from __future__ import annotations

from pathlib import Path

import pytest

from lintfit.documents.edits import apply
from lintfit.documents.jobs.kinds import kind_of_job
from lintfit.documents.model import FileText
from lintfit.documents.shell_document import Command, ShellDocument
from lintfit.documents.shell_edits import set_flag
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
    assert [word.value for word in command.words] == [
        "torchrun",
        "--nproc_per_node=8",
        "--nnodes=2",
        "train.py",
        "--batch",
        "4",
    ]
    assert asked(command) == {"gpus-per-node": "A100-80GB:8", "nodes": "2"}


def test_an_edit_of_a_block_of_yaml() -> None:
    document = job("task.yaml", SKY)
    edits = set_flag(document, document.commands[0], "--lr", "1")
    assert apply(SKY, edits) == SKY.replace("--batch $BATCH", "--batch $BATCH --lr=1")


@pytest.mark.parametrize(
    ("gpu", "expected"),
    [("A100:4", "A100:4"), ("{name: H100, count: 2}", "2"), ("A100:80GB:8", "A100:8"), ("24GB", None), ("1..8", None)],
)
def test_dstack(gpu: str, expected: str | None) -> None:
    text = f"type: task\ncommands:\n  - cd x\n  - accelerate launch train.py\nresources:\n  gpu: {gpu}\n"
    command = job("t.dstack.yml", text).commands[-1]
    assert (said(command), command.folder) == ("accelerate launch train.py", "x")
    assert asked(command).get("gpus-per-node") == expected


POD = """apiVersion: v1
kind: ConfigMap
---
apiVersion: batch/v1
kind: Job
spec:
  parallelism: 2
  template:
    spec:
      nodeSelector: {nvidia.com/gpu.product: NVIDIA-A100-SXM4-80GB}
      containers:
        - image: x
          env: [{name: A, value: "1"}]
          command: ["torchrun", "--nproc_per_node=8"]
          args:
            - train.py
            - --text
            - "two words"
          resources: {limits: {nvidia.com/gpu: 8}}
"""


def test_kubernetes_takes_no_list_apart() -> None:
    command = only("job.yaml", POD)
    words = [word.value for word in command.words]
    assert words == ["torchrun", "--nproc_per_node=8", "train.py", "--text", "two words"]
    assert asked(command) == {"gpus-per-node": "8", "constraint": "NVIDIA-A100-SXM4-80GB", "nodes": "2"}
    assert command.environment["A"].value == "1"
    assert command.listed


def test_a_master_and_its_workers_are_one_command_that_is_not_edited() -> None:
    pod = 'template: {spec: {containers: [{command: [bash, -c, "torchrun train.py"]}]}}'
    text = (
        "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nspec:\n  pytorchReplicaSpecs:\n"
        f"    Master: {{replicas: 1, {pod}}}\n    Worker: {{replicas: 3, {pod}}}\n"
    )
    command = only("job.yaml", text)
    assert (said(command), asked(command)["nodes"], command.listed) == ("torchrun train.py", "4", True)


def test_compose() -> None:
    text = (
        "services:\n  a:\n    command: >\n      python train.py\n      --lr 1\n    deploy: {resources: {reservations: "
        "{devices: [{device_ids: ['0', '1']}]}}}\n"
    )
    command = only("compose.yaml", text)
    assert (said(command), asked(command)) == ("python train.py --lr 1", {"gpus-per-node": "2"})


def test_sagemaker() -> None:
    text = (
        "from sagemaker.huggingface import HuggingFace\nh = {'lr': 1e-5, 'name': other}\n"
        "HuggingFace(entry_point='train.py', source_dir='src', instance_type='ml.p4d.24xlarge', instance_count=2,\n"
        "            hyperparameters=h, distribution={'torch_distributed': {'enabled': True}})\n"
    )
    command = only("launch.py", text)
    words = ["torchrun", "--nproc_per_node=gpu", "--nnodes=2", "src/train.py", "--lr", "1e-05", "--name", None]
    assert [word.value for word in command.words] == words
    assert asked(command) == {"nodes": "2", "instance": "ml.p4d.24xlarge"}


def test_vertex() -> None:
    text = (
        "workerPoolSpecs:\n- machineSpec: {acceleratorType: NVIDIA_L4, acceleratorCount: 2}\n  replicaCount: 1\n"
        "  containerSpec: {command: [torchrun], args: [train.py]}\n"
    )
    command = only("vertex.yaml", text)
    assert (said(command), asked(command)["constraint"]) == ("torchrun train.py", "NVIDIA_L4")


def test_azureml() -> None:
    text = (
        "$schema: https://azuremlschemas.azureedge.net/latest/commandJob.schema.json\ncommand: >-\n  python train.py\n"
        "  --out ${{outputs.o}}\ndistribution: {type: pytorch, process_count_per_instance: 8}\n"
        "resources: {instance_count: 2, instance_type: Standard_ND96asr_v4}\n"
    )
    values = [word.value for word in only("job.yml", text).words]
    assert values == ["torchrun", "--nproc_per_node=8", "--nnodes=2", "train.py", "--out", None]


def test_optional_words_of_azureml_are_there_where_their_inputs_have_defaults() -> None:
    text = (
        "$schema: https://azuremlschemas.azureedge.net/latest/commandComponent.schema.json\ntype: command\ninputs:\n"
        "  bf16: {type: boolean, optional: true, default: true}\n  nodes: {type: integer, optional: true}\n"
        "command: >-\n  deepspeed\n  $[[--num_nodes ${{inputs.nodes}}]]\n  train.py\n  $[[--bf16 ${{inputs.bf16}}]]\n"
    )
    assert [word.value for word in only("job.yml", text).words] == ["deepspeed", "train.py", "--bf16", None]


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
        '{"type": "python", "module": "torch.distributed.run", "args": ["train.py"]},\n'
        '{"type": "python", "program": "/opt/env/bin/deepspeed", "args": ["--num_gpus=2", "train.py"]}]}'
    )
    document = job(".vscode/launch.json", text)
    assert [said(command) for command in document.commands] == [
        "python train.py --lr 1",
        "python -m torch.distributed.run train.py",
        "/opt/env/bin/deepspeed --num_gpus=2 train.py",
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
