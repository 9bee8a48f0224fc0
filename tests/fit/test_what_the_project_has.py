"""Plans take what the project has: its engine, the packages that it names, before anything that has to be installed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lintfit.commands.check import check
from lintfit.documents.workspace import Workspace
from lintfit.findings.model import Plan
from lintfit.findings.results import RunResult
from lintfit.fit.confirm import texts_after
from lintfit.fit.packages import BITSANDBYTES, DEEPSPEED, FLASH, FSDP, LIGER, Packages, packages_of
from lintfit.options.model import Options

TRAIN = """\
from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments

(args,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-{size}")
Trainer(model=model, args=args).train()
"""


def _checked(folder: Path, launch: str, size: str = "3B") -> RunResult:
    (folder / "train.py").write_text(TRAIN.format(size=size))
    (folder / "run.sh").write_text(launch)
    stated: dict[str, Any] = {"gpu": "RTX 3090", "gpus": 8, "seq_len": 1024}
    options = Options(**stated, isolated=True, origins=dict.fromkeys(stated, "--flag"))
    return next(each for each in check([folder / "run.sh"], options).runs if each.run.launch is not None)


def _has(folder: Path) -> Packages:
    run = _checked(folder, "python train.py --output_dir out --bf16 True\n").run
    return packages_of(run, Workspace())


@pytest.mark.parametrize(
    ("name", "text", "named", "stated"),
    [
        ("requirements.txt", "transformers\n# deepspeed\nbitsandbytes>=0.40\n", {BITSANDBYTES}, True),
        ("pyproject.toml", 'dependencies = ["trl[deepspeed]", "flash-attn"]\n', {DEEPSPEED, FLASH}, True),
        ("Dockerfile", "RUN pip install liger-kernel\n", {LIGER}, True),
        ("README.md", "Needs no liger kernel.\n\n    pip install deepspeed trl\n", {DEEPSPEED}, True),
        ("README.md", "Needs no liger kernel, no bitsandbytes.\n", set(), False),
        ("setup.sh", "# no liger\ndeepspeed other.py --fsdp full_shard\n", {DEEPSPEED, FSDP}, False),
        ("other.yaml", "distributed_type: FSDP\nfsdp_config:\n  x: 1\n", {FSDP}, False),
        ("other.yaml", "optim: paged_adamw_8bit  # not deepspeed: x\n", {BITSANDBYTES}, False),
        ("other.py", "import deepspeed\nx = BitsAndBytesConfig() if args.qlora else None\n", {DEEPSPEED}, False),
        ("other.py", "# import deepspeed\n", set(), False),
    ],
)  # fmt: skip
def test_what_files_name(tmp_path: Path, name: str, text: str, named: set[str], stated: bool) -> None:
    (tmp_path / name).write_text(text)
    found = _has(tmp_path)
    asked = {BITSANDBYTES, DEEPSPEED, FLASH, FSDP, LIGER}
    assert (found.named & asked, found.stated) == (named, stated)


FLAGS = "--output_dir out --bf16 True --gradient_checkpointing True --per_device_train_batch_size 1"


def _plan(folder: Path, launch: str, size: str = "3B") -> Plan:
    found = _checked(folder, launch, size).plan
    assert found is not None
    return found


def test_ddp_takes_the_engine_of_the_tree(tmp_path: Path) -> None:
    launch = f"torchrun --nproc_per_node 8 train.py {FLAGS}\n"
    (tmp_path / "other.yaml").write_text("distributed_type: FSDP\n")
    (tmp_path / "requirements.txt").write_text("transformers\n")
    assert "FSDP" in _plan(tmp_path, launch).name
    (tmp_path / "other.yaml").write_text("distributed_type: DEEPSPEED\n")
    (tmp_path / "requirements.txt").write_text("transformers\ndeepspeed\n")
    assert "ZeRO" in _plan(tmp_path, launch).name


def test_fsdp_stays_where_its_own_offload_may_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ZeRO-3 is sure to do, and FSDP would be with larger micro-batches, which nobody makes to save memory."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "requirements.txt").write_text("transformers\ndeepspeed\n")
    sharded = f'{FLAGS} --gradient_accumulation_steps 2 --fsdp "full_shard auto_wrap"'
    plan = _plan(tmp_path, f"torchrun --nproc_per_node 4 train.py {sharded}\n", "7B")
    assert plan.name == "FSDP2 FULL_SHARD offloaded to the host" and not plan.by_hand


LOOP = """\
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-3B", torch_dtype="bfloat16")
args = TrainingArguments(
    output_dir="out", bf16=True, per_device_train_batch_size=1, gradient_checkpointing=True, max_grad_norm=1.0
)
Trainer(model=model, args=args).train()
"""
ZERO = """
compute_environment: LOCAL_MACHINE
deepspeed_config:
  zero3_init_flag: {init}
  zero_stage: {stage}
distributed_type: DEEPSPEED
mixed_precision: bf16
num_machines: 1
num_processes: 4
"""


def _written(folder: Path, monkeypatch: pytest.MonkeyPatch, launch: str) -> dict[str, str]:
    monkeypatch.chdir(folder)
    (folder / "train.py").write_text(LOOP)
    (folder / "run.sh").write_text(launch)
    stated: dict[str, Any] = {"gpu": "RTX 3090", "gpus": 8, "seq_len": 1024}
    options = Options(**stated, isolated=True, origins=dict.fromkeys(stated, "--flag"))
    found = next(each for each in check([Path("run.sh")], options).runs if each.run.launch is not None)
    assert found.plan is not None and not found.plan.by_hand
    return {path.as_posix(): text for path, text in texts_after(found.plan.fix.edits, Workspace()).items()}


def test_a_bare_launch_takes_the_file_of_the_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its number of processes is no reason for another file: it goes to the command line."""
    (tmp_path / "configs").mkdir()
    for stage in (2, 3):
        (tmp_path / "configs" / f"zero{stage}.yaml").write_text(ZERO.format(stage=stage, init="true"))
    texts = _written(tmp_path, monkeypatch, "accelerate launch --num_processes 8 train.py\n")
    assert "--config_file configs/zero" in texts["run.sh"]
    assert "--use_deepspeed" not in texts["run.sh"]


def test_a_copy_says_what_belongs_to_its_stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "train.py").write_text(LOOP)
    (tmp_path / "zero2.yaml").write_text(ZERO.format(stage=2, init="false"))
    monkeypatch.setattr(f"{__name__}.LOOP", LOOP.replace("2.5-3B", "2.5-7B"))
    texts = _written(tmp_path, monkeypatch, "accelerate launch --config_file zero2.yaml --num_processes 8 train.py\n")
    (copy,) = (text for name, text in texts.items() if name.endswith(".yaml"))
    assert not copy.startswith("\n")
    assert "zero_stage: 3" in copy and "zero3_init_flag: true" in copy and "zero3_save_16bit_model: true" in copy


def test_a_config_of_the_project_is_no_run_that_gets_slower(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    zero3: dict[str, Any] = {"zero_optimization": {"stage": 3}, "train_micro_batch_size_per_gpu": "auto"}
    on_host = {**zero3["zero_optimization"], "offload_optimizer": {"device": "cpu"}}
    (tmp_path / "zero3.json").write_text(json.dumps(zero3))
    (tmp_path / "zero3_offload.json").write_text(json.dumps({**zero3, "zero_optimization": on_host}))
    (tmp_path / "train.py").write_text(TRAIN.format(size="7B"))
    (tmp_path / "run.sh").write_text(f"torchrun --nproc_per_node 4 train.py {FLAGS} --deepspeed zero3.json\n")
    monkeypatch.chdir(tmp_path)
    stated: dict[str, Any] = {"gpu": "RTX 3090", "gpus": 4, "seq_len": 1024}
    result = check([Path()], Options(**stated, isolated=True, origins=dict.fromkeys(stated, "--flag")))
    (plan,) = [each.plan for each in result.runs if each.plan is not None]
    assert any(step.path == Path("zero3_offload.json") for step in plan.steps)
    assert plan.readers == ()
