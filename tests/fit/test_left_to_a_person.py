"""What could be written and is shown instead: engines of scripts that no launcher starts, examples in pages, packages
that a project does not install."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lintfit.commands.check import check
from lintfit.findings.model import Plan
from lintfit.options.model import Options

SCRIPT = """\
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-{size}", torch_dtype="float32")
args = TrainingArguments(output_dir="out", per_device_train_batch_size={micro}, bf16=True{more})
Trainer(model=model, args=args).train()
"""
FLAGS = """\
from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments

(args,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-0.5B")
Trainer(model=model, args=args).train()
"""


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def _plan(file: Path, gpus: int = 1) -> Plan:
    stated: dict[str, Any] = {"gpu": "RTX 3090", "gpus": gpus, "seq_len": 1024}
    options = Options(**stated, isolated=True, origins=dict.fromkeys(stated, "--flag"))
    return next(each.plan for each in check([file], options).runs if each.plan is not None)


def test_an_engine_is_not_hard_wired_into_a_script_that_nothing_launches(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT.format(size="3B", micro=1, more=""))
    plan = _plan(script, gpus=8)
    assert "launcher" in plan.by_hand
    assert plan.fix.changes["engine"] in ("deepspeed", "fsdp") and plan.actions
    script.write_text(SCRIPT.format(size="0.5B", micro=32, more=""))
    plan = _plan(script, gpus=8)
    assert not plan.by_hand and "engine" not in plan.fix.changes


@pytest.mark.parametrize(("steps", "by_hand"), [("", True), (" --gradient_accumulation_steps 1", False)])
def test_an_example_of_a_page_gets_no_new_flags(tmp_path: Path, steps: str, by_hand: bool) -> None:
    page = tmp_path / "README.md"
    (tmp_path / "train.py").write_text(FLAGS)
    command = f"python train.py --output_dir out --bf16 True --per_device_train_batch_size=32{steps}"
    page.write_text(f"# Training\n\n```bash\n{command} --gradient_checkpointing True\n```\n")
    plan = _plan(page)
    assert bool(plan.by_hand) is by_hand
    assert plan.fix.changes["micro_batch_size"] < 32
    assert any(action.lines for action in plan.actions)


@pytest.mark.parametrize(
    ("asked", "offered"), [(None, True), ("transformers\n", False), ("transformers\nbitsandbytes\n", True)]
)
def test_a_package_that_is_not_installed_is_left_to_a_person(tmp_path: Path, asked: str | None, offered: bool) -> None:
    (tmp_path / "run.sh").write_text("python train.py\n")
    (tmp_path / "train.py").write_text(SCRIPT.format(size="1.5B", micro=2, more=", gradient_checkpointing=True"))
    if asked is not None:
        (tmp_path / "requirements.txt").write_text(asked)
    plan = _plan(tmp_path / "run.sh")
    assert not plan.by_hand
    assert ("optimizer" in plan.fix.changes) is offered


@pytest.mark.parametrize("folder", ["full_finetune", "sft"])
def test_adapters_are_no_pull_request_to_what_is_called_full(tmp_path: Path, folder: str) -> None:
    (tmp_path / folder).mkdir()
    script = tmp_path / folder / "run.sh"
    script.write_text("python ../train.py\n")
    (tmp_path / "train.py").write_text(SCRIPT.format(size="7B", micro=1, more=", gradient_checkpointing=True"))
    plan = _plan(script)
    assert plan.fix.changes["method"] == "lora"
    assert ("trains all weights" in plan.by_hand) is (folder == "full_finetune")


GRPO = """\
from peft import LoraConfig
from transformers import AutoModelForCausalLM
from trl import GRPOConfig, GRPOTrainer

model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-1.5B", torch_dtype="bfloat16")
args = GRPOConfig(
    "out", bf16=True, per_device_train_batch_size=16, max_completion_length=2048, gradient_checkpointing=True{more}
)
GRPOTrainer(model=model, args=args, reward_funcs=len, train_dataset=data, peft_config=LoraConfig()).train()
"""
OLDER = "trl==0.21.0\ntransformers==4.55.0\n"


@pytest.mark.parametrize("more", ["", ", steps_per_generation=4"])
def test_a_micro_batch_that_says_how_much_is_generated_is_left_to_a_person(tmp_path: Path, more: str) -> None:
    script = tmp_path / "train.py"
    script.write_text(GRPO.format(more=more))
    (tmp_path / "requirements.txt").write_text(OLDER)
    options = Options(gpu="A100-SXM4-80GB", isolated=True, origins={"gpu": "--gpu"})
    plan = next(each.plan for each in check([script], options).runs if each.plan is not None)
    assert plan.fix.changes["micro_batch_size"] < 16
    assert ("steps_per_generation" in plan.by_hand) is bool(more)


@pytest.mark.parametrize(("share", "planned"), [(0.05, False), (0.5, True)])
def test_nothing_is_planned_where_vllm_does_not_start(tmp_path: Path, share: float, planned: bool) -> None:
    script = tmp_path / "train.py"
    more = f', use_vllm=True, vllm_mode="colocate", vllm_gpu_memory_utilization={share}'
    script.write_text(GRPO.format(more=more))
    (tmp_path / "requirements.txt").write_text(OLDER)
    options = Options(gpu="RTX 3090", isolated=True, origins={"gpu": "--gpu"})
    (run,) = check([script], options).runs
    assert (run.plan is not None) is planned
