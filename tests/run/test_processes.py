"""How many GPUs a run uses is said by its files; ``--gpus`` and ``gpus`` of the config are what there is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lintfit.commands.check import load_runs
from lintfit.findings.results import RunResult
from lintfit.options.model import Options
from tests.support import lintfit

TRAIN = """
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B", dtype="bfloat16")
args = TrainingArguments(output_dir="out", bf16=True, deepspeed="ds.json", per_device_train_batch_size=1)
Trainer(model=model, args=args).train()
"""
ZERO3 = {"bf16": {"enabled": True}, "zero_optimization": {"stage": 3}, "train_micro_batch_size_per_gpu": 1}
YAML = "compute_environment: LOCAL_MACHINE\ndistributed_type: MULTI_GPU\nnum_processes: 4\nnum_machines: 2\n"


def project(folder: Path, line: str) -> Path:
    (folder / "train.py").write_text(TRAIN)
    (folder / "ds.json").write_text(json.dumps(ZERO3))
    (folder / "acc.yaml").write_text(YAML)
    (folder / "run.sh").write_text(line + "\n")
    return folder / "run.sh"


def run(folder: Path, line: str, what_if: bool = False, **stated: Any) -> RunResult:
    origins = {name: f"--{name}" for name in stated}
    options = Options(**stated, origins=origins, what_if=what_if, isolated=True)
    return load_runs([project(folder, line)], options)[1][0]


USES = [
    ("torchrun --nproc_per_node 2 train.py", 2),
    ("torchrun train.py", 1),
    ("torchrun --nproc_per_node gpu train.py", 8),
    ("torchrun --nproc_per_node auto --nnodes 2 train.py", 16),
    ("torchrun --nproc_per_node $N train.py", 8),
    ("deepspeed train.py", 8),
    ("deepspeed --num_gpus 4 train.py", 4),
    ("deepspeed --include localhost:0,1,2 train.py", 3),
    ("CUDA_VISIBLE_DEVICES=0,1 deepspeed train.py", 2),
    ("accelerate launch --num_processes 4 train.py", 4),
    ("accelerate launch --num_processes 4 --num_machines 2 train.py", 4),
    ("accelerate launch --config_file acc.yaml train.py", 4),
    ("accelerate launch --config_file acc.yaml --num_processes 6 train.py", 6),
    ("accelerate launch train.py", 8),
    ("mpirun -np 4 python train.py", 4),
    ("mpirun --hostfile hosts python train.py", 8),
    ("srun --ntasks-per-node 4 --nodes 2 python train.py", 8),
    ("python train.py", 1),
]


@pytest.mark.parametrize(("line", "used"), USES)
def test_the_launch_line_says_how_many_are_used(line: str, used: int, tmp_path: Path) -> None:
    assert run(tmp_path, line, gpus=8).run.hardware.gpus == used


@pytest.mark.parametrize(
    "asked",
    [
        "#SBATCH --gres=gpu:4",
        "#SBATCH --gres=gpu:a100:4",
        "#SBATCH --gpus-per-node=4",
        "#SBATCH --gpus=4",
        "#PBS -l ngpus=4",
        "#PBS -q gpu -l select=1:ncpus=8:ngpus=4:mem=64gb",
        "#PBS -l nodes=1:ppn=8:gpus=4",
        '#BSUB -gpu "num=4:mode=exclusive_process"',
        "#BSUB -n 8 -gpu num=4",
        "export CUDA_VISIBLE_DEVICES=0,1,2,3",
    ],
)
def test_a_job_says_how_many_its_commands_see(asked: str, tmp_path: Path) -> None:
    for command in ("torchrun --nproc_per_node $N train.py", "srun accelerate launch train.py", "deepspeed train.py"):
        found = run(tmp_path, f"{asked}\n{command}", gpus=8).run
        assert (found.hardware.gpus, found.hardware.available) == (4, 8)
    assert run(tmp_path, f"{asked}\ntorchrun --nproc_per_node 2 train.py", gpus=8).run.hardware.gpus == 2
    assert run(tmp_path, f"{asked}\npython train.py", gpus=8).run.hardware.gpus == 1
    assert run(tmp_path, f"{asked}\ntorchrun --nproc_per_node $N train.py").run.hardware.gpus == 4


@pytest.mark.parametrize(
    "asked",
    [
        "",
        "#SBATCH --gres=gpu:<count>",
        "#SBATCH --gpus=4 --nodes=3",
        "#PBS -l select=2:ngpus=4",
        "#PBS -l select=1:ngpus=4+1:ngpus=2",
        "#BSUB -gpu num=1/task",
    ],
)
def test_a_job_that_leaves_it_open_does_not(asked: str, tmp_path: Path) -> None:
    assert run(tmp_path, f"{asked}\ntorchrun --nproc_per_node $N train.py", gpus=8).run.hardware.gpus == 8


def test_a_job_on_several_nodes_has_as_many_on_each(tmp_path: Path) -> None:
    job = "#SBATCH --nodes=2 --gres=gpu:4\nsrun torchrun --nnodes $SLURM_NNODES --nproc_per_node $N train.py"
    found = run(tmp_path, job, gpus=8).run
    assert (found.hardware.gpus, found.hardware.nodes) == (8, 2)


def test_a_process_of_a_job_is_on_the_first_of_its_gpus(tmp_path: Path) -> None:
    found = run(tmp_path, "#SBATCH --gres=gpu:4\npython train.py", gpus=8).run
    assert found.settings["gpus"].provenance.detail.endswith("its first GPU of 4")


@pytest.mark.parametrize(("line", "used"), USES)
def test_a_what_if_replaces_what_it_says(line: str, used: int, tmp_path: Path) -> None:
    assert run(tmp_path, line, what_if=True, gpus=32).run.hardware.gpus == 32


@pytest.mark.parametrize(
    ("line", "stated", "used", "nodes", "there"),
    [
        ("torchrun --nnodes 2 --nproc_per_node 8 train.py", {"gpus": 8}, 16, 2, 16),
        ("torchrun --nnodes 2 --nproc_per_node 8 train.py", {"gpus": 16, "nodes": 2}, 16, 2, 16),
        ("torchrun --nnodes 2 --nproc_per_node gpu train.py", {"gpus": 16, "nodes": 2}, 16, 2, 16),
        ("torchrun --nproc_per_node 8 train.py", {"gpus": 16, "nodes": 2}, 8, 1, 16),
        ("accelerate launch --num_processes 16 train.py", {"gpus": 16, "nodes": 2}, 16, 2, 16),
        ("deepspeed --num_nodes 2 train.py", {"gpus": 4}, 8, 2, 8),
        ("deepspeed train.py", {"gpus": 16, "nodes": 2}, 16, 2, 16),
        ("torchrun --nproc_per_node 8 train.py", {}, 8, 1, None),
    ],
)
def test_machines(line: str, stated: dict[str, int], used: int, nodes: int, there: int | None, tmp_path: Path) -> None:
    hardware = run(tmp_path, line, **stated).run.hardware
    assert (hardware.gpus, hardware.nodes, hardware.available) == (used, nodes, there)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("deepspeed train.py", "8 GPUs: all that the machine has (the launch line does not say how many)"),
        ("torchrun --nproc_per_node 2 train.py", None),
        ("python train.py", None),
    ],
)
def test_that_all_are_used_is_shown(line: str, said: str | None, tmp_path: Path) -> None:
    estimate = run(tmp_path, line, gpus=8).estimate
    assert estimate is not None
    assert ([each for each in estimate.assumptions if "GPUs" in each] or [None])[0] == said
    asked = run(tmp_path, line, what_if=True, gpus=8).estimate
    assert asked is not None
    assert not [each for each in asked.assumptions if "all that the machine has" in each]


def check(folder: Path, *flags: str) -> Any:
    command = ("check", "run.sh", "--isolated", "--gpu", "A100-80GB", "--seq-len", "1024", "--output-format", "json")
    return lintfit(*command, *flags, cwd=folder).json


def test_gpus_of_the_machine_do_not_make_a_run_fit_that_uses_one(tmp_path: Path) -> None:
    project(tmp_path, "torchrun --nproc_per_node 1 train.py")
    (alone,), (beside,) = check(tmp_path)["runs"], check(tmp_path, "--gpus", "8")["runs"]
    assert alone["verdict"] == beside["verdict"] == "does-not-fit"
    assert alone["estimate"]["peak_bytes"] == beside["estimate"]["peak_bytes"]
    assert alone["plan"] == beside["plan"]
    hardware = ("--isolated", "--gpu", "A100-80GB", "--seq-len", "1024", "--output-format", "json")
    (what_if,) = lintfit("estimate", "run.sh", *hardware, "--gpus", "8", cwd=tmp_path).json["runs"]
    assert what_if["verdict"] == "fits"


def test_more_than_there_are_is_said_and_changes_nothing(tmp_path: Path) -> None:
    project(tmp_path, "torchrun --nproc_per_node 8 train.py")
    unstated, short = check(tmp_path), check(tmp_path, "--gpus", "4")
    (told,) = [each for each in short["findings"] if each["rule"] == "processes-exceed-visible-gpus"]
    assert told["severity"] == "info" and told["line"] == 1
    assert short["runs"][0]["verdict"] == unstated["runs"][0]["verdict"] == "fits"
    assert short["runs"][0]["estimate"] == unstated["runs"][0]["estimate"]
    assert not [each for each in unstated["findings"] if each["rule"] == "processes-exceed-visible-gpus"]


def test_a_table_of_a_run_says_what_its_machine_has(tmp_path: Path) -> None:
    project(tmp_path, "torchrun --nproc_per_node 2 train.py")
    (tmp_path / "lintfit.toml").write_text('[[run]]\nfiles = ["run.sh"]\ngpus = 8\n')
    (found,) = load_runs([tmp_path / "run.sh"], Options())[1]
    assert (found.run.hardware.gpus, found.run.hardware.available) == (2, 8)


def test_the_fewest_cards_are_sought_among_all_that_there_are(tmp_path: Path) -> None:
    project(tmp_path, "torchrun --nproc_per_node 1 train.py")
    (tmp_path / "train.py").write_text(TRAIN.replace("bf16=True", "bf16=True, gradient_accumulation_steps=8"))
    command = ("fit", "run.sh", "--isolated", "--minimize", "gpus", "--output-format", "json", "--host-memory", "64GiB")
    hardware = ("--gpu", "A100-80GB", "--seq-len", "1024")
    (one,) = lintfit(*command, *hardware, cwd=tmp_path).json["runs"]
    (eight,) = lintfit(*command, *hardware, "--gpus", "8", cwd=tmp_path).json["runs"]
    assert one["answers"][0]["best"] is None
    assert eight["answers"][0]["best"]["value"] == 2


LOOP = """
import torch
from transformers import AutoModelForCausalLM
{starts}
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-0.5B").to("cuda")
optimizer = torch.optim.AdamW(model.parameters())
for batch in torch.utils.data.DataLoader([], batch_size=2):
    model(**batch).loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("starts", "engine"), [("", "single"), ("torch.distributed.init_process_group('nccl')", "ddp")]
)
def test_a_loop_that_joins_no_other_process_is_one_process(tmp_path: Path, starts: str, engine: str) -> None:
    (tmp_path / "loop.py").write_text(LOOP.format(starts=starts))
    options = Options(gpu="RTX 3090", gpus=8, origins={"gpu": "--gpu", "gpus": "--gpus"}, isolated=True)
    result = load_runs([tmp_path / "loop.py"], options)[1][0]
    assert result.run.value("engine") == engine
    assert result.run.hardware.gpus == (1 if engine == "single" else 8)


RANKED = """\
import argparse
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

parser = argparse.ArgumentParser()
parser.add_argument("--local_rank", type=int, default=-1)
args = parser.parse_args()
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-0.5B", device_map="auto" if args.local_rank == -1 else None)
config = "ds_config.json" if args.local_rank != -1 else None
Trainer(model, TrainingArguments("out", bf16=True, deepspeed=config), train_dataset=data).train()
"""


@pytest.mark.parametrize(
    ("command", "engine"),
    [
        ("deepspeed --num_gpus 2 train.py", "deepspeed"),
        ("deepspeed --num_gpus 2 --no_local_rank train.py", "ddp"),
        ("python -m torch.distributed.launch --nproc_per_node 2 train.py", "deepspeed"),
        ("torchrun --nproc_per_node 2 train.py", "ddp"),
    ],
)
def test_some_launchers_hand_each_process_its_rank(tmp_path: Path, command: str, engine: str) -> None:
    (tmp_path / "train.py").write_text(RANKED)
    (tmp_path / "ds_config.json").write_text(
        '{"train_micro_batch_size_per_gpu": "auto", "zero_optimization": {"stage": 2}}'
    )
    (tmp_path / "run.sh").write_text(f"{command}\n")
    (run,) = json.loads(lintfit("check", "run.sh", "--output-format", "json", cwd=tmp_path).out)["runs"]
    assert run["settings"]["engine"]["value"] == engine
