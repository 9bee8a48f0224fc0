from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from lintfit.documents.edits import apply
from lintfit.documents.model import DataDocument
from lintfit.documents.shell_document import ShellDocument
from lintfit.settings.model import AUTO, UNKNOWN
from lintfit.settings.values import Fsdp
from lintfit.sources.launchers.launch import Launch
from lintfit.sources.launchers.launcher import read_launches

Read = Callable[[str], ShellDocument]


@pytest.fixture
def launch(shell_document: Read) -> Callable[[str], Launch]:
    def read(text: str) -> Launch:
        (found,) = read_launches(shell_document(text))
        return found

    return read


def values(found: Launch) -> dict[str, Any]:
    return {name: setting.value for name, setting in found.settings.items()}


@pytest.mark.parametrize(
    ("command", "launcher", "script"),
    [
        ("torchrun train.py", "torchrun", "train.py"),
        ("torchrun --standalone --nproc-per-node=2 src/train.py --lr 1", "torchrun", "src/train.py"),
        ("torchrun --nproc_per 2 train.py", "torchrun", "train.py"),
        ("torchrun -m pkg.train", "torchrun", "pkg/train.py"),
        ("CMD='torchrun --nproc_per_node 2 train.py --lr 1'\neval $CMD", "torchrun", "train.py"),
        ("NPROC_PER_NODE=2 xtuner train config.py", "xtuner", None),
        ("python -m torch.distributed.run --nproc_per_node 2 train.py", "torchrun", "train.py"),
        ("python3 -m torch.distributed.launch --use_env train.py", "torch.distributed.launch", "train.py"),
        ("deepspeed --num_gpus 2 train.py --deepspeed", "deepspeed", "train.py"),
        ("deepspeed --module pkg.train", "deepspeed", "pkg/train.py"),
        ("accelerate launch --multi_gpu --num_processes 2 train.py", "accelerate", "train.py"),
        ("python -m accelerate.commands.launch --num_processes 2 train.py", "accelerate", "train.py"),
        ("accelerate launch -m pkg.train", "accelerate", "pkg/train.py"),
        ("fabric run --devices 2 train.py", "fabric", "train.py"),
        ("python -u train.py", "python", "train.py"),
        ("/opt/conda/bin/python3.11 finetune_lora.py", "python", "finetune_lora.py"),
        ("python -m pkg.train", "python", "pkg/train.py"),
        ("python main.py --per_device_train_batch_size 2", "python", "main.py"),
        ("uv run train.py", "python", "train.py"),
        ("./train.py", "python", "./train.py"),
        ("nohup env A=1 torchrun train.py > log 2>&1 &", "torchrun", "train.py"),
        ("srun --nodes 2 torchrun train.py", "torchrun", "train.py"),
        ('bash -c "deepspeed train.py"', "deepspeed", "train.py"),
        ("srun bash -c ' cd /x; pip install . ; torchrun train.py --lr 1 ; echo done' &>> log", "torchrun", "train.py"),
        ("lightning run model --devices 8 pretrain.py --lr 1", "fabric", "pretrain.py"),
        ("python pretrain/tiny_llama.py --devices 8", "python", "pretrain/tiny_llama.py"),
        ("bash -c 'module load cuda && deepspeed train.py --lr 1 && ls'", "deepspeed", "train.py"),
        ("WANDB_MODE=offline uv run python train.py", "python", "train.py"),
        ("python submit.py --gpus 8 -- accelerate launch train.py", "accelerate", "train.py"),
        (r"uv run submit.py -- source setup.sh \&\& python train.py", "python", "train.py"),
        ("torchrun $SCRIPT --lr 1", "torchrun", None),
    ],
)
def test_commands_that_train(launch: Callable[[str], Launch], command: str, launcher: str, script: str | None) -> None:
    found = launch(command)
    assert (found.launcher, found.script) == (launcher, script)


@pytest.mark.parametrize(
    "command",
    [
        "pip install deepspeed accelerate",
        "echo torchrun train.py",
        "python setup.py install",
        "python eval.py --model x",
        "python convert_sft_data.py --learning_rate 1",
        "python merge_lora.py",
        "torchrun evaluate.py",
        "deepspeed chatbot.py --deepspeed ds.json",
        "accelerate config",
        "accelerate test",
        "python -c 'import train'",
        "python",
        "torchrun",
        "torchrun --help",
        "which deepspeed",
        "# torchrun train.py",
        "",
    ],
)
def test_commands_that_do_not(shell_document: Read, command: str) -> None:
    assert read_launches(shell_document(command)) == ()


def test_other_documents_launch_nothing(json_document: Callable[[str], DataDocument]) -> None:
    assert read_launches(json_document('{"torchrun": "train.py"}')) == ()


def test_several_launches_in_order(shell_document: Read) -> None:
    found = read_launches(shell_document("torchrun train_sft.py\n\nif maybe; then\n  deepspeed train_dpo.py\nfi\n"))
    assert [(one.script, one.line, one.conditional) for one in found] == [
        ("train_sft.py", 1, False),
        ("train_dpo.py", 4, True),
    ]


@pytest.mark.parametrize(
    ("text", "gpus", "nodes"),
    [
        ("torchrun train.py", 1, None),
        ("torchrun --nproc_per_node 8 train.py", 8, None),
        ("torchrun --nproc_per_node 8 --nnodes 2 train.py", 16, 2),
        ("torchrun --nproc_per_node 8 --nnodes 2:2 train.py", 16, 2),
        ("torchrun --nproc_per_node 8 --nnodes 1:4 train.py", UNKNOWN, UNKNOWN),
        ("torchrun --nproc_per_node gpu train.py", UNKNOWN, None),
        ("CUDA_VISIBLE_DEVICES=0,1 torchrun --nproc_per_node gpu train.py", 2, None),
        ("torchrun --nproc_per_node $GPUS train.py", UNKNOWN, None),
        ("GPUS=4\ntorchrun --nproc_per_node $GPUS train.py", 4, None),
        ("torchrun --nproc_per_node ${GPUS:-4} train.py", 4, None),
        ("torchrun $ARGS train.py", UNKNOWN, UNKNOWN),
        ('ARGS="--nproc_per_node 2 --nnodes 1"\ntorchrun $ARGS train.py', 2, 1),
        ('ARGS=(--nproc_per_node 2)\ntorchrun "${ARGS[@]}" train.py', 2, None),
        ("PET_NPROC_PER_NODE=3 torchrun train.py", 3, None),
        ("deepspeed train.py", UNKNOWN, None),
        ("deepspeed --num_gpus=4 train.py", 4, None),
        ("deepspeed --num_gpus 4 --num_nodes 2 train.py", 8, 2),
        ("deepspeed --num_gpus 4 --hostfile hosts train.py", UNKNOWN, UNKNOWN),
        ("deepspeed --include localhost:0,3 train.py", 2, None),
        ("deepspeed --include localhost:gpu_ids train.py", UNKNOWN, None),
        ("deepspeed -i host1:0,1@host2:0,1,2 train.py", 5, 2),
        ("deepspeed --include host1 train.py", UNKNOWN, None),
        ("deepspeed --exclude localhost:0 train.py", UNKNOWN, None),
        ("CUDA_VISIBLE_DEVICES=1,2,3 deepspeed train.py", 3, None),
        ("CUDA_VISIBLE_DEVICES=1,2,3 deepspeed --num_gpus 2 train.py", 2, None),
        ("CUDA_VISIBLE_DEVICES=1,2,3 deepspeed --num_nodes 1 train.py", UNKNOWN, 1),
        ("export CUDA_VISIBLE_DEVICES=$1\ndeepspeed train.py", UNKNOWN, None),
        ("accelerate launch --num_processes 8 train.py", 8, None),
        ("accelerate launch --num-processes 8 --num-machines 2 train.py", 8, 2),
        ("accelerate launch --config_file a.yaml train.py", None, None),
        ("accelerate launch train.py", UNKNOWN, None),
        ("CUDA_VISIBLE_DEVICES=0,1 accelerate launch train.py", 2, None),
        ("fabric run train.py", 1, None),
        ("fabric run train.py --devices 2 --num-nodes 3", 6, 3),
        ("fabric run train.py --devices=0,1,2", 3, None),
        ("fabric run train.py --devices=auto", UNKNOWN, None),
        ("python train.py", 1, None),
        ("CUDA_VISIBLE_DEVICES=0,1 python train.py", 1, None),
        ("export WORLD_SIZE=$N RANK=$R\npython train.py", UNKNOWN, None),
        ("RANK=0 WORLD_SIZE=4 python train.py", 4, None),
        ("WORLD_SIZE=4 python train.py", 1, None),
        ("export WORLD_SIZE=$N RANK=$R\nsrun --ntasks=8 python train.py", 8, None),
        ("srun python train.py", 1, None),
        ("srun --ntasks=8 python train.py", 8, None),
        ("srun -N 2 --ntasks-per-node 4 python train.py", 8, 2),
        ("srun --gpus-per-node 1 python train.py", 1, None),
        ("srun --gpus-per-node 4 python train.py", UNKNOWN, None),
        ("python submit.py --num_nodes 4 -- accelerate launch --num_processes 8 train.py", 32, 4),
        ("python submit.py --num_nodes 1 -- torchrun --nproc_per_node 8 train.py", 8, None),
        ("python submit.py --num_nodes 2 -- torchrun --nnodes 2 --nproc_per_node 8 train.py", 16, 2),
        ("python submit.py --num_nodes $N -- torchrun --nproc_per_node 8 train.py", UNKNOWN, UNKNOWN),
        ("axolotl train a.yaml --launcher torchrun -- --nproc_per_node=8 --nnodes=2", 16, 2),
        ("axolotl train a.yaml --launcher torchrun -- --nproc_per_node=$GPUS", UNKNOWN, None),
    ],
)
def test_processes(launch: Callable[[str], Launch], text: str, gpus: Any, nodes: Any) -> None:
    found = values(launch(text))
    assert (found.get("gpus"), found.get("nodes")) == (gpus, nodes)


BATCH = """#!/bin/bash
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=8
#SBATCH --gres=gpu:a100:8
"""


@pytest.mark.parametrize(
    ("command", "gpus"),
    [
        ("srun python train.py", 32),
        ("srun torchrun --nnodes $SLURM_NNODES --nproc_per_node 8 train.py", 32),
        ("srun torchrun --nnodes=$SLURM_JOB_NUM_NODES --nproc_per_node=gpu train.py", 32),
        ("srun torchrun --nnodes $SLURM_NNODES --nproc_per_node $SLURM_GPUS_ON_NODE train.py", 32),
        ('srun bash -c "torchrun --nnodes \\$SLURM_NNODES --nproc_per_node 8 train.py"', 32),
        ("T='--nnodes=$SLURM_JOB_NUM_NODES --nproc_per_node 8'\nsrun bash -c \"torchrun $T train.py\"", 32),
        ("deepspeed train.py", 8),
        ("torchrun --nnodes $OTHER --nproc_per_node 8 train.py", UNKNOWN),
    ],
)
def test_processes_of_a_batch_job(launch: Callable[[str], Launch], command: str, gpus: Any) -> None:
    assert values(launch(BATCH + command))["gpus"] == gpus


@pytest.mark.parametrize(
    "gres", ["gpu:<number_of_gpus>", "gpu:a100:XXX", "gpu:[NUM]", "gpu:YOUR_GPU:4", "gpu:...", "gpu:{n}", "gpu:$N"]
)
def test_a_count_that_is_to_be_filled_in_is_none(launch: Callable[[str], Launch], gres: str) -> None:
    found = values(launch(f"#!/bin/bash\n#SBATCH --gres={gres}\ndeepspeed train.py"))
    assert found["gpus"] is UNKNOWN
    assert "gpu" not in found


@pytest.mark.parametrize(
    ("line", "gpu"),
    [
        ("--gres=gpu:a100:8", "a100"),
        ("--gres gpu:a100:8", "a100"),
        ("--gres=gpu:8", None),
        ("--gpus=h100:4", "h100"),
        ("--gpus-per-node=v100:2", "v100"),
        ("-G l40s:2", "l40s"),
        ("--constraint=a100", "a100"),
        ("-C a100|h100", None),
        ("--constraint=haswell", None),
        ("--gres=shard:2", None),
        ("--gres=gpu:<number_of_gpus>", None),
    ],
)
def test_card_of_a_batch_job(launch: Callable[[str], Launch], line: str, gpu: str | None) -> None:
    found = launch(f"#!/bin/bash\n#SBATCH {line}\ntorchrun train.py")
    assert values(found).get("gpu") == gpu
    if gpu is not None:
        assert str(found.settings["gpu"].provenance) == "run.sh:2"


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("torchrun train.py --deepspeed ds.json", {"deepspeed": "ds.json"}),
        ("deepspeed train.py --deepspeed --deepspeed_config conf/ds.json", {"deepspeed": "conf/ds.json"}),
        ("deepspeed train.py --deepspeed", {}),
        ("deepspeed train.py --deepspeed=true", {}),
        ("torchrun train.py --deepspeed $DS", {"deepspeed": UNKNOWN}),
        ("torchrun train.py --deepspeed zero2", {"deepspeed": UNKNOWN}),
        ("torchrun train.py --deepspeed '{\"a\": 1}'", {"deepspeed": UNKNOWN}),
        ("accelerate launch --config_file a.yaml train.py", {"accelerate_config": "a.yaml"}),
        ("accelerate launch --config-file=a.yaml train.py", {"accelerate_config": "a.yaml"}),
        ("accelerate launch --mixed_precision bf16 train.py --mixed_precision fp16", {"mixed_precision": "bf16"}),
        (
            "accelerate launch --use_deepspeed --zero_stage 3 --offload_param_device cpu train.py",
            {"engine": "deepspeed", "zero_stage": 3, "offload_param": "cpu"},
        ),
        (
            "accelerate launch --use_deepspeed --gradient_clipping 0.5 --gradient_accumulation_steps auto train.py",
            {"engine": "deepspeed", "max_grad_norm": 0.5, "gradient_accumulation_steps": AUTO},
        ),
        (
            "accelerate launch --use_deepspeed --deepspeed_config_file d.json train.py",
            {"engine": "deepspeed", "deepspeed_config_file": "d.json"},
        ),
        ("accelerate launch --multi_gpu train.py", {"engine": "ddp"}),
        (
            "ACCELERATE_USE_DEEPSPEED=true ACCELERATE_DEEPSPEED_ZERO_STAGE=3 torchrun train.py",
            {"engine": "deepspeed", "zero_stage": 3},
        ),
        ("export ACCELERATE_USE_DEEPSPEED=True\npython train.py", {"engine": "deepspeed"}),
        ("ACCELERATE_USE_DEEPSPEED=false ACCELERATE_DEEPSPEED_ZERO_STAGE=3 python train.py", {}),
        ("ACCELERATE_USE_FSDP=true torchrun train.py", {"engine": "fsdp", "fsdp": UNKNOWN}),
        ("ACCELERATE_USE_DEEPSPEED=true accelerate launch --multi_gpu train.py", {"engine": "ddp"}),
        ("accelerate launch --zero_stage $Z train.py", {"zero_stage": UNKNOWN}),
        (
            "accelerate launch --use_fsdp --fsdp_sharding_strategy 2 --fsdp_offload_params true train.py",
            {
                "engine": "fsdp",
                "fsdp": Fsdp(1, "SHARD_GRAD_OP", True),
                "fsdp_strategy": "SHARD_GRAD_OP",
                "fsdp_cpu_offload": True,
            },
        ),
        (
            "accelerate launch --use_fsdp --fsdp_version 2 --fsdp_activation_checkpointing true train.py",
            {"engine": "fsdp", "fsdp": Fsdp(2), "fsdp_version": 2, "gradient_checkpointing": True},
        ),
        (
            "fabric run train.py --precision bf16-mixed --strategy deepspeed_stage_3_offload",
            {
                "mixed_precision": "bf16",
                "engine": "deepspeed",
                "zero_stage": 3,
                "offload_optimizer": "cpu",
                "offload_param": "cpu",
            },
        ),
    ],
)
def test_settings(launch: Callable[[str], Launch], command: str, expected: dict[str, Any]) -> None:
    found = values(launch(command))
    found.pop("gpus", None)
    assert found == expected


def test_flags(launch: Callable[[str], Launch]) -> None:
    found = launch(
        "torchrun train.py conf.yaml --lr -1e-5 --bf16 --targets q_proj v_proj --max-len=2048 --bs $BS --x=$Y\n"
    )
    assert found.positional == ("conf.yaml",)
    assert [(flag.name, flag.value, flag.words) for flag in found.flags] == [
        ("lr", "-1e-5", ()),
        ("bf16", None, ()),
        ("targets", "q_proj", ("q_proj", "v_proj")),
        ("max_len", "2048", ()),
        ("bs", "$BS", ()),
        ("x", "$Y", ()),
    ]
    places = {flag.name: flag.value_place.text for flag in found.flags if flag.value_place}
    assert places == {"lr": "-1e-5", "targets": "q_proj v_proj", "max_len": "2048", "bs": "$BS", "x": "$Y"}
    assert [flag.place.text for flag in found.flags][:2] == ["--lr -1e-5", "--bf16"]


def test_a_value_from_a_variable_points_at_the_assignment(launch: Callable[[str], Launch]) -> None:
    found = launch("BS=16\ntorchrun train.py --per_device_train_batch_size $BS\n")
    flag = found.flag("per_device_train_batch_size")
    assert flag is not None and flag.value_place is not None
    assert (flag.value, str(flag.value_place)) == ("16", "run.sh:1")


def test_a_backtick_is_no_known_value(launch: Callable[[str], Launch]) -> None:
    flag = launch("torchrun train.py --n `nproc`").flag("n")
    assert flag is not None
    assert flag.value == "$(nproc)"


def test_places_and_environment(launch: Callable[[str], Launch]) -> None:
    text = "export A=1\nB=2 \\\n  torchrun \\\n  --nproc_per_node 2 \\\n  train.py \\\n  --lr 1 > log\n"
    found = launch(text)
    assert found.line == 2
    assert found.place.text == text[text.index("B=2") : text.index(" > log")]
    assert found.script_place is not None
    assert found.script_place.text == "train.py"
    assert dict(found.environment) == {"A": "1", "B": "2"}


def written(found: Launch, name: str, value: Any) -> str | None:
    edits = found.write(name, value)
    return None if edits is None else apply(found.document.text, [edit.edit for edit in edits])


@pytest.mark.parametrize(
    ("command", "name", "value", "expected"),
    [
        ("torchrun train.py", "deepspeed", "ds.json", "torchrun train.py --deepspeed ds.json"),
        ("torchrun train.py --deepspeed a.json", "deepspeed", "b.json", "torchrun train.py --deepspeed b.json"),
        (
            "torchrun \\\n    train.py \\\n    --lr 1\n",
            "deepspeed",
            "ds.json",
            "torchrun \\\n    train.py \\\n    --lr 1 \\\n    --deepspeed ds.json\n",
        ),
        ("torchrun --nproc_per_node 8 train.py", "gpus", 4, "torchrun --nproc_per_node 4 train.py"),
        (
            "torchrun --nproc_per_node=8 --nnodes 2 train.py",
            "gpus",
            8,
            "torchrun --nproc_per_node=4 --nnodes 2 train.py",
        ),
        ("N=8\ntorchrun --nproc_per_node $N train.py", "gpus", 4, "N=4\ntorchrun --nproc_per_node $N train.py"),
        ("torchrun train.py", "gpus", 4, "torchrun --nproc_per_node 4 train.py"),
        ("torchrun --nproc_per_node 8 --nnodes 2 train.py", "gpus", 7, None),
        ("deepspeed train.py", "gpus", 4, "deepspeed --num_gpus 4 train.py"),
        ("deepspeed --include localhost:0 train.py", "gpus", 4, None),
        (
            "accelerate launch --num_machines 2 --num_processes 8 train.py",
            "gpus",
            16,
            "accelerate launch --num_machines 2 --num_processes 16 train.py",
        ),
        (
            "accelerate launch --mixed_precision fp16 train.py --mixed_precision fp16",
            "mixed_precision",
            "bf16",
            "accelerate launch --mixed_precision bf16 train.py --mixed_precision fp16",
        ),
        ("accelerate launch train.py", "zero_stage", 3, "accelerate launch --zero_stage 3 train.py"),
        ("accelerate launch --use_fsdp train.py", "engine", "ddp", "accelerate launch --multi_gpu train.py"),
        ("accelerate launch -m pkg.train", "engine", "fsdp", "accelerate launch --use_fsdp -m pkg.train"),
        (
            "accelerate launch \\\n    train.py",
            "engine",
            "fsdp",
            "accelerate launch \\\n    --use_fsdp \\\n    train.py",
        ),
        ("torchrun train.py", "zero_stage", 3, None),
        ("python train.py", "gpus", 2, None),
        ("torchrun train.py", "gpus", UNKNOWN, None),
    ],
)
def test_write(launch: Callable[[str], Launch], command: str, name: str, value: Any, expected: str | None) -> None:
    assert written(launch(command), name, value) == expected


SHARED = "A=$((32 / N))\ntorchrun t.py --bs $N --acc $A"
"""What a script works out of a value follows it."""


@pytest.mark.parametrize(
    ("command", "flag", "value", "expected"),
    [
        ("torchrun t.py --bs 4 --lr 1", "bs", "2", "torchrun t.py --bs 2 --lr 1"),
        ("torchrun t.py --b-s=4", "b_s", "2", "torchrun t.py --b-s=2"),
        ("BS=4\ntorchrun t.py --bs $BS", "bs", "2", "BS=2\ntorchrun t.py --bs $BS"),
        ("torchrun t.py --bs ${BS:-4}", "bs", "2", "torchrun t.py --bs ${BS:-2}"),
        (f"N=8\n{SHARED}", "bs", "4", f"N=4\n{SHARED}"),
        (f"N=8\n{SHARED} --out x$N", "bs", "4", f"N=8\n{SHARED.replace('bs $N', 'bs 4')} --out x$N"),
    ],
)
def test_a_flag_rewrites_itself(
    launch: Callable[[str], Launch], command: str, flag: str, value: str, expected: str
) -> None:
    found = launch(command).flag(flag)
    assert found is not None and found.write is not None
    edits = found.write(value)
    assert edits is not None
    assert apply(command, [edit.edit for edit in edits]) == expected


def test_a_number_that_follows_from_others_is_no_literal(launch: Callable[[str], Launch]) -> None:
    found = launch(f"N=8\n{SHARED}").flag("acc")
    assert found is not None and found.write is not None and found.write("2") is None


def test_a_launchers_own_flag_is_not_the_scripts(launch: Callable[[str], Launch]) -> None:
    assert launch("accelerate launch --mixed_precision no train.py").set_flag("mixed_precision", "bf16") is None


@pytest.mark.parametrize(
    ("text", "scripts"),
    [
        ("torchrun train.py --a 'b", ["train.py"]),
        ("if torchrun train.py; then", ["train.py"]),
        ("torchrun $(( train.py", [None]),
        ("\x00", []),
    ],
)
def test_broken_scripts_are_read_as_far_as_they_go(shell_document: Read, text: str, scripts: list[str | None]) -> None:
    assert [launch.script for launch in read_launches(shell_document(text))] == scripts


@pytest.mark.parametrize(("module", "found"), [("pkg.cli.train_sft", True), ("train.cli.serve", False)])
def test_a_modules_last_name_says_what_it_does(shell_document: Read, module: str, found: bool) -> None:
    assert bool(read_launches(shell_document(f"deepspeed --module {module} --x 1"))) is found


def test_an_array_of_who_knows_how_many(launch: Callable[[str], Launch]) -> None:
    text = "CARDS='0,1,2'\nEACH=(${CARDS//,/ })\ntorchrun --nproc_per_node ${#EACH[@]} train.py\n"
    assert values(launch(text))["gpus"] in (UNKNOWN, 3)


@pytest.mark.parametrize(
    ("line", "gpus"),
    [
        ("tune run --nproc_per_node 8 full_finetune_distributed --config llama3/8B_full", 8),
        ("srun tune run --nnodes 2 --nproc_per_node 4 lora_finetune_distributed --config x batch_size=2", 8),
        ("tune run lora_finetune_single_device --config llama3/8B_lora_single_device", 1),
    ],
)
def test_torchtune_trains_by_recipes(launch: Callable[[str], Launch], line: str, gpus: int) -> None:
    found = launch(line)
    assert (found.launcher, found.script, found.settings["gpus"].value) == ("torchtune", None, gpus)


@pytest.mark.parametrize("line", ["tune run eleuther_eval --config x", "tune download a/b", "tune ls"])
def test_torchtune_does_other_things_too(shell_document: Read, line: str) -> None:
    assert read_launches(shell_document(line)) == ()


def test_the_arguments_of_a_string_that_is_run_end_with_its_command(launch: Callable[[str], Launch]) -> None:
    found = launch("bash -c 'torchrun train.py --lr 1 ; python plot.py --size 3'")
    assert [flag.name for flag in found.flags] == ["lr"]


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("accelerate launch -m axolotl.cli.train a.yml", "train"),
        ("accelerate launch --num_processes 4 -m axolotl.cli.train a.yml --lora_r 8", "train"),
        ("python -m axolotl.cli.train a.yml", "train"),
        ("python -m project.train a.yml", None),
    ],
)
def test_a_front_ends_module_is_its_command(launch: Callable[[str], Launch], text: str, action: str | None) -> None:
    found = launch(text)
    assert found.action == action
    assert (found.launcher == "axolotl") is (action is not None)


@pytest.mark.parametrize(
    "line",
    [
        "bash run.sh --backend deepspeed train.py --learning_rate 1e-5",
        "sh -x scripts/run.sh torchrun train.py",
        "srun bash scripts/run.sh accelerate launch train.py",
        "torchrun bench.py --size 4",
    ],
)
def test_the_words_of_another_script_are_no_launch(shell_document: Read, line: str) -> None:
    assert read_launches(shell_document(line)) == ()


def test_a_shell_that_is_handed_commands_launches_them(launch: Callable[[str], Launch]) -> None:
    assert launch('bash -lc "torchrun train.py --lr 1"').script == "train.py"


def test_a_switch_of_the_launcher_that_a_branch_adds_leaves_its_options_open(launch: Callable[[str], Launch]) -> None:
    found = launch('A=(accelerate launch)\n[ "$Q" ] && A+=(--multi_gpu)\n"${A[@]}" train.py\n')
    assert found.script == "train.py" and found.invocation.opaque
    assert "multi_gpu" not in found.invocation.options


@pytest.mark.parametrize(
    ("line", "launches"),
    [
        ("docker build -t deepspeed -f dockerfile .", 0),
        ("NAME=deepspeed\ndocker push ${NAME}", 0),
        ("docker run --gpus all image deepspeed train.py", 1),
        ("docker exec box torchrun --nproc_per_node 2 train.py", 1),
    ],
)
def test_an_image_may_be_called_like_a_launcher(shell_document: Read, line: str, launches: int) -> None:
    assert len(list(read_launches(shell_document(line)))) == launches


@pytest.mark.parametrize(
    ("given", "value", "comes_to"),
    [
        ("--config_file a.yaml", "b.yaml", "--config_file b.yaml"),
        ('--config_file "a.yaml"', "b.yaml", '--config_file "b.yaml"'),
        ("--config_file=a.yaml", "b.yaml", "--config_file=b.yaml"),
        ('--config_file="a.yaml"', "b.yaml", '--config_file="b.yaml"'),
        ('"--config_file=a.yaml"', "b.yaml", '"--config_file=b.yaml"'),
        ("--config_file a.yaml", "my b.yaml", "--config_file 'my b.yaml'"),
        ("--config_file='my a.yaml'", "my b.yaml", "--config_file='my b.yaml'"),
        ('--config_file "a.yaml"', '"$b".yaml', """--config_file '"$b".yaml'"""),
    ],
)
def test_an_option_of_the_launcher_keeps_its_quotes(
    launch: Callable[[str], Launch], given: str, value: str, comes_to: str
) -> None:
    before = f"accelerate launch {given} train.py"
    edits = launch(before).set_option("config_file", value)
    assert edits is not None
    assert apply(before, [each.edit for each in edits]) == before.replace(given, comes_to)


@pytest.mark.parametrize(
    ("flag", "on"),
    [
        ("--bf16", True),
        ("--bf16 True", True),
        ("--bf16=t", True),
        ("--bf16 Y", True),
        ("--bf16 1", True),
        ("--bf16 false", False),
        ("--bf16 0", False),
        ("--bf16 auto", False),
        ("--bf16 $BF16", False),
    ],
)
def test_a_flag_that_switches_something_on(launch: Callable[[str], Launch], flag: str, on: bool) -> None:
    (found,) = launch(f"python train.py {flag}").flags
    assert found.is_on is on


@pytest.mark.parametrize(("flag", "count"), [("--help", 0), ("-h", 0), ("--learning_rate 1e-5", 1)])
def test_a_command_that_asks_for_help_trains_nothing(shell_document: Read, flag: str, count: int) -> None:
    assert len(read_launches(shell_document(f"python train.py {flag}\n"))) == count


@pytest.mark.parametrize(
    ("flags", "flag", "value", "written"),
    [
        ("--bf16 true --do_eval false --tf32 True", "use_liger_kernel", "True", "--use_liger_kernel true"),
        ("--do_train True --max_samples 5", "enable_liger_kernel", "true", "--enable_liger_kernel True"),
        (
            "--gradient_checkpointing false --bf16 True",
            "gradient_checkpointing",
            "True",
            "--gradient_checkpointing true",
        ),
        ("--bf16 --lr 1e-5", "use_liger_kernel", "True", "--use_liger_kernel True"),
        ("--bf16 true", "model", "True/x", "--model True/x"),
    ],
)
def test_a_boolean_is_spelled_as_the_others(
    launch: Callable[[str], Launch], flags: str, flag: str, value: str, written: str
) -> None:
    found = launch(f"torchrun --nproc_per_node 2 train.py {flags}\n")
    edits = found.set_flag(flag, value)
    assert edits is not None
    assert written in apply(found.document.text, [each.edit for each in edits])
